//! Queries by chance: joins, totals, sorts and limits of each in any order.

use super::Same;
use crate::dice::Dice;

/// A table whose rows look for others.
struct Base {
    name: &'static str,
    key: &'static str,
    columns: &'static [&'static str],
    /// What its rows look for others by.
    equal: &'static [&'static str],
    conditions: &'static [&'static str],
}

const BASES: [Base; 3] = [
    Base {
        name: "orders",
        key: "x.id",
        columns: &["x.customer", "x.by_whom", "x.at", "x.status", "x.amount", "x.weight"],
        equal: &["x.customer", "x.by_whom", "x.id"],
        conditions: &[
            "x.customer = $1",
            "x.by_whom = $1",
            "x.id <= $1",
            "x.customer <= $1 % 4",
            "x.id > $1 - 70",
        ],
    },
    Base {
        name: "customers",
        key: "x.id",
        columns: &["x.name", "x.city"],
        equal: &["x.id"],
        conditions: &["x.id = $1", "x.id <= $1", "x.id > $1 - 70", "x.city = 'c1' AND x.id > $1 % 7"],
    },
    Base {
        name: "lines",
        key: "x.order_id, x.n",
        columns: &["x.product", "x.code", "x.amount"],
        equal: &["x.order_id", "x.product"],
        conditions: &["x.order_id = $1", "x.product = $1 % 41", "x.order_id <= $1 % 9", "x.n = $1 % 3"],
    },
];

/// A query's parts.
struct Parts {
    from: String,
    /// Columns, and what is computed.
    outputs: Vec<String>,
    conditions: Vec<String>,
    /// What it can be sorted by.
    by: Vec<String>,
    /// What tells each of its rows from all others.
    keys: Vec<String>,
}

/// A query of `$1`, whose rows are sorted and limited before others are joined to them, behind that, or both.
pub fn query(dice: &mut Dice) -> (String, Same) {
    let base = &BASES[dice.below(BASES.len())];
    let mut parts = Parts::of(base, dice);
    for n in 0..dice.below(3) {
        parts.join(n, base, dice);
    }
    for n in 0..dice.below(3) {
        parts.add_up(n, base, dice);
    }
    if dice.chance(15) {
        let (exists, equal) = (dice.pick(&["EXISTS", "NOT EXISTS"]), dice.pick(base.equal));
        parts
            .conditions
            .push(format!("{exists} (SELECT 1 FROM lines z WHERE z.order_id = {equal} AND z.amount > 3)"));
    }
    if dice.chance(20) {
        let (exists, equal) = (dice.pick(&["EXISTS", "NOT EXISTS"]), dice.pick(base.equal));
        let several = dice.pick(&[
            "lines z JOIN products w ON w.id = z.product WHERE z.order_id = {} AND w.title < 't3'",
            "products w JOIN lines z ON w.id = z.product WHERE z.order_id = {} AND z.n < 2",
            "orders y JOIN lines z ON z.order_id = y.id JOIN products w ON w.code = z.code WHERE y.customer = {}",
            "lines z JOIN orders y ON y.id = z.order_id WHERE z.product = {} AND y.status = 's2'",
        ]);
        parts.conditions.push(format!("{exists} (SELECT 1 FROM {})", several.replace("{}", equal)));
    }
    if dice.chance(30) {
        parts.outputs.push(format!("{} + 1 AS more", base.equal[0]));
        parts.by.push("more".to_owned());
    }
    let (sql, same) = parts.sql(dice);
    if same != Same::Count && dice.chance(25) {
        let above = dice.pick(&[
            "count(*), min(k), max(k) FROM ({}) x",
            "k % 3, count(*) AS n, count(DISTINCT k) FROM ({}) x GROUP BY k % 3 HAVING count(*) <> 2",
            "DISTINCT k FROM ({}) x",
            "k, row_number() OVER (PARTITION BY k % 3 ORDER BY k), sum(k) OVER (ORDER BY k) FROM ({}) x",
        ]);
        return (format!("SELECT {}", above.replace("{}", &sql)), Same::Rows);
    }
    (sql, same)
}

impl Parts {
    /// Rows of the table, all that are asked for or the first of them.
    fn of(base: &Base, dice: &mut Dice) -> Parts {
        let Base { name, key, columns, conditions, .. } = base;
        let condition = dice.pick(conditions).to_owned();
        let (from, conditions) = match dice.chance(45) {
            true => {
                let by = if dice.chance(70) {
                    format!("{}, ", ordered(dice.pick(columns), dice))
                } else {
                    String::new()
                };
                let first = format!("WHERE {condition} ORDER BY {by}{key}{}", limit(dice));
                (format!("(SELECT * FROM {name} x {first}) x"), Vec::new())
            }
            false => (format!("{name} x"), vec![condition]),
        };
        let outputs = vec![format!("{key} AS k, {}", dice.pick(columns))];
        let by = columns.iter().map(|column| (*column).to_owned()).collect();
        Parts { from, outputs, conditions, by, keys: vec![(*key).to_owned()] }
    }

    fn join(&mut self, n: usize, base: &Base, dice: &mut Dice) {
        let (kind, equal) = (dice.pick(&["JOIN", "LEFT JOIN", "LEFT JOIN"]), dice.pick(base.equal));
        let (table, on, key, column) = match dice.below(5) {
            0 => ("customers", "id", "id", "name"),
            1 => ("orders", dice.pick(&["customer", "by_whom", "id"]), "id", "at"),
            2 => ("lines", dice.pick(&["order_id", "product"]), "n", "amount"),
            3 => ("products", "id", "id", "title"),
            _ => (
                "(SELECT customer, count(*) AS n, max(amount) AS m FROM orders GROUP BY customer)",
                "customer",
                "n",
                "m",
            ),
        };
        self.from.push_str(&format!(" {kind} {table} j{n} ON j{n}.{on} = {equal}"));
        if dice.chance(30) && !table.starts_with('(') {
            // A range of a key, or a filter on what is found.
            let (column, other) = (if table == "lines" { "n" } else { "id" }, dice.pick(base.equal));
            let also = dice.pick(&[
                "{j} > {x} - 9",
                "{j} <= {x} % 3",
                "{j} BETWEEN {x} AND {x} + 20",
                "{j} <> {x}",
                "{j} * 2 < {x} + $1",
            ]);
            let also = also.replace("{j}", &format!("j{n}.{column}")).replace("{x}", other);
            self.from.push_str(&format!(" AND {also}"));
        }
        if table == "lines" {
            self.keys.push(format!("j{n}.order_id"));
        }
        self.keys.push(format!("j{n}.{key}"));
        self.outputs.push(format!("j{n}.{key} AS k{n}, j{n}.{column} AS v{n}"));
        self.by.push(format!("j{n}.{column}"));
    }

    /// With a subquery of one value for each row.
    fn add_up(&mut self, n: usize, base: &Base, dice: &mut Dice) {
        let (equal, other) = (dice.pick(base.equal), dice.pick(base.equal));
        let total = match dice.below(8) {
            // The first by a comparison.
            5 => format!(
                "(SELECT y.amount FROM lines y WHERE y.order_id = {equal} AND y.n <= {other} % 4 ORDER BY y.n DESC LIMIT 1)"
            ),
            6 => format!(
                "(SELECT y.id FROM orders y WHERE y.customer = {equal} AND y.id > {other} AND y.weight < 9 ORDER BY y.id LIMIT 1)"
            ),
            7 => format!("(SELECT y.id FROM products y WHERE y.id >= {equal} ORDER BY y.id LIMIT 1)"),
            0 => format!("(SELECT count(*) FROM lines y WHERE y.order_id = {equal})"),
            1 => format!("(SELECT count(*) FROM orders y WHERE y.customer = {equal} AND y.status = 's1')"),
            2 => format!("(SELECT sum(y.amount) FROM orders y WHERE y.by_whom = {equal})"),
            3 => format!("coalesce((SELECT max(y.n) FROM lines y WHERE y.product = {equal}), -1) * 2"),
            _ => format!("(SELECT y.title FROM products y WHERE y.id = {equal})"),
        };
        self.outputs.push(format!("{total} AS t{n}"));
        self.by.push(format!("t{n}"));
    }

    /// The query, sorted or not, limited or not.
    fn sql(self, dice: &mut Dice) -> (String, Same) {
        let mut sql = format!("SELECT {} FROM {}", self.outputs.join(", "), self.from);
        if !self.conditions.is_empty() {
            sql.push_str(&format!(" WHERE {}", self.conditions.join(" AND ")));
        }
        let (is_sorted, is_limited, is_total) = (dice.chance(75), dice.chance(60), dice.chance(80));
        if is_sorted {
            let by = ordered(&self.by[dice.below(self.by.len())], dice);
            let keys = if is_total { format!(", {}", self.keys.join(", ")) } else { String::new() };
            sql.push_str(&format!(" ORDER BY {by}{keys}"));
        }
        if is_limited {
            sql.push_str(&limit(dice));
        }
        let same = match (is_sorted && is_total, is_limited) {
            (true, _) => Same::Order,
            (false, false) => Same::Rows,
            (false, true) => Same::Count,
        };
        (sql, same)
    }
}

fn ordered(by: &str, dice: &mut Dice) -> String {
    format!("{by}{}", dice.pick(&["", " DESC", " ASC NULLS LAST", " DESC NULLS FIRST"]))
}

fn limit(dice: &mut Dice) -> String {
    let offset = if dice.chance(30) { format!(" OFFSET {}", dice.below(6)) } else { String::new() };
    format!(" LIMIT {}{offset}", dice.below(12))
}
