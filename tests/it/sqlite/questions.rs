//! Queries as the index family and its siblings (`random`, `select`) write them.
//!
//! What SQLite's dynamic types answer and SQL does not is left out: arithmetic on text, comparisons of
//! text with numbers, columns beside an aggregate that are not grouped by.

use super::answers::{difference, sqlite};
use super::conditions;
use super::tables::{COLUMNS, TABLES, integer, real, text};
use super::world::World;
use super::{DIVISION, INTEGER, Tally};
use crate::dice::Dice;

/// A query, and the output columns whose order counts.
pub struct Question {
    pub sql: String,
    pub ordered: Vec<usize>,
}

impl From<String> for Question {
    fn from(sql: String) -> Question {
        Question { sql, ordered: Vec::new() }
    }
}

/// Asks all three databases, of world `n`, and counts what they say.
pub fn ask(world: &World, question: &Question, n: usize, tally: &mut Tally) {
    let sql = &question.sql;
    let expected = match sqlite(&world.sqlite, sql) {
        Ok(rows) => rows,
        Err(e) => panic!("SQLite does not take {sql}: {e}"),
    };
    for (ours, which) in world.ours(sql).into_iter().zip(["indexes", "no indexes"]) {
        match ours {
            Ok(rows) => match difference(&rows, &expected, &question.ordered) {
                None => tally.answered += 1,
                Some(difference) => tally.wrong(world, sql, format!("world {n}, with {which}: {difference}")),
            },
            Err(e) if e.what().contains(DIVISION) => tally.refused(sql, DIVISION),
            Err(e) if e.what().contains(INTEGER) => tally.refused(sql, INTEGER),
            Err(e) => tally.refused(sql, &e.to_string()),
        }
    }
}

/// The same question with other numbers in its comparisons, as a plan that was kept has to answer it.
pub fn again(dice: &mut Dice, question: &Question) -> Question {
    let mut compared = false;
    let words: Vec<String> = question
        .sql
        .split(' ')
        .map(|word| {
            let number = word.trim_end_matches(')');
            let is_number = number.parse::<f64>().is_ok() && compared;
            compared = ["=", "<>", "!=", "<", "<=", ">", ">=", "BETWEEN"].contains(&word);
            match is_number {
                // An integer or a fraction, whatever was there.
                true => format!("{}{}", real(dice), &word[number.len()..]),
                false => word.to_owned(),
            }
        })
        .collect();
    Question { sql: words.join(" "), ordered: question.ordered.clone() }
}

/// What the values of an expression are.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Integer,
    Real,
    Text,
}

const KINDS: [Kind; 3] = [Kind::Integer, Kind::Real, Kind::Text];

impl Kind {
    fn of_column(ty: &str) -> Kind {
        match ty {
            "INTEGER" => Kind::Integer,
            "FLOAT" => Kind::Real,
            _ => Kind::Text,
        }
    }
}

/// What an expression may name: columns of these tables, each with a period behind it, or `""`.
struct Names<'a> {
    tables: Vec<String>,
    dice: &'a mut Dice,
}

impl Names<'_> {
    fn column(&mut self, kind: Kind) -> String {
        let names: Vec<&str> =
            COLUMNS.iter().filter(|(_, ty)| Kind::of_column(ty) == kind).map(|(name, _)| *name).collect();
        let table = self.dice.below(self.tables.len());
        let name = if kind == Kind::Integer && self.dice.chance(15) { "pk" } else { self.dice.pick(&names) };
        format!("{}{name}", self.tables[table])
    }

    fn literal(&mut self, kind: Kind) -> String {
        match kind {
            Kind::Integer => (self.dice.below(99) + 1).to_string(),
            // Without a point it would be an integer.
            Kind::Real => format!("{}.{}", self.dice.below(100), self.dice.below(100)),
            Kind::Text => text(self.dice),
        }
    }

    fn kind(&mut self) -> Kind {
        KINDS[self.dice.below(KINDS.len())]
    }

    fn number_kind(&mut self) -> Kind {
        KINDS[self.dice.below(2)]
    }

    fn sign(&mut self) -> &'static str {
        self.dice.pick(&["", "", "", "+ ", "- ", "- - ", "+ + ", "- + ", "+ - ", "- ( + ", "+ ( - "])
    }

    /// An expression of columns and literals.
    fn scalar(&mut self, kind: Kind, depth: usize) -> String {
        if kind == Kind::Text {
            return self.text(depth);
        }
        let sign = self.sign();
        let inner = self.unsigned(kind, depth);
        let close = if sign.contains('(') { " )" } else { "" };
        format!("{sign}{inner}{close}")
    }

    fn unsigned(&mut self, kind: Kind, depth: usize) -> String {
        if depth == 0 || self.dice.chance(35) {
            return match self.dice.below(20) {
                0 => "CAST ( NULL AS INTEGER )".into(),
                1..=6 => self.literal(kind),
                _ => self.column(kind),
            };
        }
        let depth = depth - 1;
        // A double somewhere makes a double of all.
        let other = if kind == Kind::Real && self.dice.chance(40) { Kind::Integer } else { kind };
        match self.dice.below(14) {
            0..=5 => {
                let op = self.dice.pick(&["+", "-", "*"]);
                let (left, right) = if self.dice.chance(50) { (kind, other) } else { (other, kind) };
                format!("{} {op} {}", self.scalar(left, depth), self.scalar(right, depth))
            }
            6 | 7 => format!("( {} )", self.scalar(kind, depth)),
            8 => {
                let below = match self.dice.below(10) {
                    0 => self.column(kind),
                    1..=3 => format!("NULLIF ( {}, 0 )", self.column(kind)),
                    _ => format!("{}{}", self.sign().replace('(', ""), self.literal(kind)),
                };
                format!("{} / {below}", self.scalar(kind, depth))
            }
            9 => {
                let first = self.scalar(kind, depth);
                let null = if self.dice.chance(20) { "NULL, " } else { "" };
                format!("COALESCE ( {null}{first}, {} )", self.scalar(kind, depth))
            }
            10 => format!("NULLIF ( {}, {} )", self.scalar(kind, depth), self.scalar(other, depth)),
            11 => self.case(kind, depth),
            12 if kind == Kind::Integer => {
                // SQLite cuts off what is behind the point.
                match self.number_kind() {
                    Kind::Real => format!("CAST ( ROUND ( {} ) AS INTEGER )", self.scalar(Kind::Real, depth)),
                    from => format!("CAST ( {} AS INTEGER )", self.scalar(from, depth)),
                }
            }
            // REAL has 32 bits here and 64 in SQLite.
            12 => format!(
                "CAST ( {} AS {} )",
                self.scalar(other, depth),
                self.dice.pick(&["DOUBLE PRECISION", "FLOAT"])
            ),
            _ => format!("ABS ( {} )", self.scalar(kind, depth)),
        }
    }

    fn text(&mut self, depth: usize) -> String {
        match self.dice.below(if depth == 0 { 3 } else { 10 }) {
            0 => self.literal(Kind::Text),
            1 | 2 => self.column(Kind::Text),
            3 | 4 => format!("+ {}", self.column(Kind::Text)),
            5 => format!("COALESCE ( {}, {} )", self.column(Kind::Text), self.text(depth - 1)),
            6 => self.case(Kind::Text, depth - 1),
            7 => format!("{} || {}", self.column(Kind::Text), self.text(depth - 1)),
            8 => format!("CAST ( {} AS TEXT )", self.column(Kind::Integer)),
            _ => format!("NULLIF ( {}, {} )", self.column(Kind::Text), self.literal(Kind::Text)),
        }
    }

    fn case(&mut self, kind: Kind, depth: usize) -> String {
        let (then, or) = (self.scalar(kind, depth), self.scalar(kind, depth));
        match self.dice.below(4) {
            0 => format!("CASE WHEN {} THEN {then} END", self.condition(depth.min(1))),
            1 => {
                let of = self.number_kind();
                let (subject, value) = (self.scalar(of, depth), self.scalar(of, depth));
                let null = if self.dice.chance(30) {
                    "WHEN NULL THEN 1 ".replace('1', &then)
                } else {
                    String::new()
                };
                format!("CASE {subject} {null}WHEN {value} THEN {then} ELSE {or} END")
            }
            _ => format!("CASE WHEN {} THEN {then} ELSE {or} END", self.condition(depth.min(1))),
        }
    }

    /// A condition in the style of the random files.
    fn condition(&mut self, depth: usize) -> String {
        if depth > 0 && self.dice.chance(35) {
            let word = self.dice.pick(&["AND", "OR"]);
            let not = if self.dice.chance(25) { "NOT " } else { "" };
            let (left, right) = (self.condition(depth - 1), self.condition(depth - 1));
            return format!("{not}( {left} ) {word} {not}( {right} )");
        }
        let not = if self.dice.chance(35) { "NOT " } else { "" };
        let kind = self.kind();
        let numbers = kind != Kind::Text;
        let depth = 2;
        let left = match self.dice.below(12) {
            0 => "NULL".to_owned(),
            1 | 2 => format!("( {} )", self.scalar(kind, depth)),
            _ => self.scalar(kind, depth),
        };
        let other = |names: &mut Self| match names.dice.below(14) {
            0 => "NULL".to_owned(),
            1 => "( NULL )".to_owned(),
            n => {
                let kind = if numbers && n < 6 { names.number_kind() } else { kind };
                names.scalar(kind, depth - 1)
            }
        };
        let negated = if self.dice.chance(40) { "NOT " } else { "" };
        match self.dice.below(10) {
            0..=2 => format!("{not}{left} IS {negated}NULL"),
            3 | 4 => format!("{not}{left} {negated}BETWEEN {} AND {}", other(self), other(self)),
            5 | 6 => {
                let n = 1 + self.dice.below(3);
                let list: Vec<String> = (0..n).map(|_| other(self)).collect();
                format!("{not}{left} {negated}IN ( {} )", list.join(", "))
            }
            _ => {
                let op = self.dice.pick(&["=", "<>", "<", "<=", ">", ">="]);
                format!("{not}{left} {op} {}", other(self))
            }
        }
    }

    /// An expression of aggregates and literals.
    fn aggregate(&mut self, depth: usize) -> String {
        let sign = self.sign().replace('(', "");
        let quantifier = self.dice.pick(&["", "", "DISTINCT ", "ALL "]);
        let kind = self.number_kind();
        let call = match self.dice.below(9) {
            0 | 1 => "COUNT ( * )".into(),
            2 => {
                let kind = self.kind();
                format!("COUNT ( {quantifier}{} )", self.scalar(kind, 1))
            }
            3 | 4 => format!("SUM ( {quantifier}{} )", self.scalar(kind, 1)),
            // The average of decimals keeps six digits, that of a column all of them.
            5 => format!("AVG ( {quantifier}{} )", self.column(kind)),
            n => format!("{} ( {quantifier}{} )", ["MIN", "MAX"][n % 2], self.scalar(kind, 1)),
        };
        if depth > 0 && self.dice.chance(30) {
            let op = self.dice.pick(&["+", "-", "*"]);
            return match self.dice.below(3) {
                0 => format!("{sign}{call} {op} {}", self.literal(kind)),
                1 => format!("{sign}{call} {op} {}", self.aggregate(depth - 1)),
                _ => format!("COALESCE ( {sign}{call}, {} )", self.literal(kind)),
            };
        }
        format!("{sign}{call}")
    }
}

/// `FROM` and how its columns are named.
fn from(dice: &mut Dice) -> (String, Vec<String>) {
    let table = |dice: &mut Dice| match dice.below(8) {
        0 => dice.pick(&["view0", "view1"]).to_owned(),
        _ => format!("tab{}", dice.below(TABLES)),
    };
    match dice.below(10) {
        0..=4 => (table(dice), vec![String::new()]),
        5 | 6 => {
            let dot = if dice.chance(50) { "cor0." } else { "" };
            (format!("{} {}cor0", table(dice), dice.pick(&["AS ", ""])), vec![dot.into()])
        }
        7 => (
            format!("{} AS cor0 CROSS JOIN {} AS cor1", table(dice), table(dice)),
            vec!["cor0.".into(), "cor1.".into()],
        ),
        8 => {
            let on = dice.pick(&[
                "cor0.pk = cor1.pk",
                "cor0.col0 = cor1.col3",
                "cor0.col2 = cor1.col5",
                "cor0.col0 < cor1.col0",
                "cor0.pk = cor1.col0 AND cor1.col3 > 5",
            ]);
            let join = dice.pick(&["JOIN", "INNER JOIN", "LEFT JOIN", "LEFT OUTER JOIN"]);
            (
                format!("{} AS cor0 {join} {} AS cor1 ON {on}", table(dice), table(dice)),
                vec!["cor0.".into(), "cor1.".into()],
            )
        }
        _ => (
            "tab0, tab1 AS cor0, tab2 cor1 ".to_string(),
            vec!["tab0.".into(), "cor0.".into(), "cor1.".into()],
        ),
    }
}

/// One query.
pub fn question(dice: &mut Dice) -> Question {
    match dice.below(16) {
        0..=2 => lookup(dice),
        3..=5 => ordered(dice),
        6..=9 => random(dice).into(),
        10 | 11 => aggregates(dice).into(),
        12 | 13 => grouped(dice).into(),
        14 => set_operation(dice),
        _ => subqueries(dice).into(),
    }
}

fn table_of(dice: &mut Dice) -> String {
    match dice.below(8) {
        0 => "view0".into(),
        1 => "view1".into(),
        n => format!("tab{}", n % TABLES),
    }
}

/// Rows by a deep condition: the `between`, `commute`, `in` and `view` files.
fn lookup(dice: &mut Dice) -> Question {
    let list = dice.pick(&["pk", "pk, col0", "*", "col3, pk, col3", "col2", "DISTINCT col0", "col1, col4"]);
    format!("SELECT {list} FROM {} WHERE {}", table_of(dice), conditions::deep(dice, "")).into()
}

/// Rows in an order: the `orderby` files.
fn ordered(dice: &mut Dice) -> Question {
    let table = table_of(dice);
    let filter =
        if dice.chance(70) { format!(" WHERE {}", conditions::deep(dice, "")) } else { String::new() };
    let mut directions = || dice.pick(&["", " ASC", " DESC"]).to_owned();
    let (a, b, c) = (directions(), directions(), directions());
    let limit = match dice.below(4) {
        0 => format!(" LIMIT {}", dice.below(8)),
        1 => format!(" LIMIT {} OFFSET {}", dice.below(8), dice.below(5)),
        _ => String::new(),
    };
    let columns: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    let (x, y) = (dice.pick(&columns), dice.pick(&columns));
    let (list, order, ordered): (String, String, Vec<usize>) = match dice.below(7) {
        0 => ("pk".into(), format!("1{a}"), vec![0]),
        1 => (format!("pk, {x}"), format!("2{a}, 1{b}"), vec![0, 1]),
        2 => ("pk".into(), format!("{x}{a}, {y}{b}, pk{c}"), vec![0]),
        3 => ("*".into(), format!("{x}{a}, pk{b}"), vec![0]),
        4 => (format!("pk AS k, {x} AS v"), format!("v{a}, k{b}"), vec![0, 1]),
        5 => (format!("pk, - col0 AS n, {x}"), format!("- col0{a}, {x}{b}, pk"), vec![0, 1, 2]),
        _ => {
            return format!("SELECT {x}, {y} FROM {table}{filter} ORDER BY {x}{a}, {y}{b}{limit}")
                .ordered(&[0, 1]);
        }
    };
    Question { sql: format!("SELECT {list} FROM {table}{filter} ORDER BY {order}{limit}"), ordered }
}

trait Ordered {
    fn ordered(self, columns: &[usize]) -> Question;
}

impl Ordered for String {
    fn ordered(self, columns: &[usize]) -> Question {
        Question { sql: self, ordered: columns.to_vec() }
    }
}

fn quantifier(dice: &mut Dice) -> &'static str {
    dice.pick(&["", "", "ALL ", "DISTINCT "])
}

/// Expressions over rows: the `random` files.
fn random(dice: &mut Dice) -> String {
    let (from, tables) = from(dice);
    let quantifier = quantifier(dice);
    let conditioned = dice.chance(80);
    let deep = dice.chance(25);
    let filter = if deep { Some(conditions::deep(dice, &tables[0])) } else { None };
    let mut names = Names { tables, dice };
    let n = 1 + names.dice.below(3);
    let mut list: Vec<String> = Vec::new();
    for _ in 0..n {
        let kind = names.kind();
        let alias = names.dice.pick(&["", "", "", " AS col0", " AS col3", " col2"]);
        list.push(format!("{}{alias}", names.scalar(kind, 3)));
    }
    if names.dice.chance(8) {
        list = vec!["*".into()];
    }
    let filter = match filter {
        Some(filter) => format!(" WHERE {filter}"),
        None if conditioned => format!(" WHERE {}", names.condition(2)),
        None => String::new(),
    };
    format!("SELECT {quantifier}{} FROM {from}{filter}", list.join(", "))
}

/// Aggregates over everything.
fn aggregates(dice: &mut Dice) -> String {
    let (from, tables) = from(dice);
    let quantifier = quantifier(dice);
    let deep = dice.chance(40);
    let filter = if deep { Some(conditions::deep(dice, &tables[0])) } else { None };
    let mut names = Names { tables, dice };
    let n = 1 + names.dice.below(3);
    let list: Vec<String> = (0..n)
        .map(|_| {
            let alias = names.dice.pick(&["", "", " AS col1", " AS col0"]);
            format!("{}{alias}", names.aggregate(2))
        })
        .collect();
    let filter = match filter {
        Some(filter) => format!(" WHERE {filter}"),
        None if names.dice.chance(60) => format!(" WHERE {}", names.condition(1)),
        None => String::new(),
    };
    format!("SELECT {quantifier}{} FROM {from}{filter}", list.join(", "))
}

/// Groups: the `groupby` files.
fn grouped(dice: &mut Dice) -> String {
    let (from, tables) = from(dice);
    let quantifier = quantifier(dice);
    let mut names = Names { tables, dice };
    let kind = names.kind();
    let first = names.column(kind);
    let second = {
        let kind = names.number_kind();
        names.column(kind)
    };
    let two = names.dice.chance(40);
    let keys = if two { format!("{first}, {second}") } else { first.clone() };
    let mut list = Vec::new();
    if names.dice.chance(70) {
        let plus = names.dice.pick(&["", "+ "]);
        list.push(format!("{plus}{first}"));
    }
    if two && names.dice.chance(50) {
        list.push(format!("- {second} + {}", names.literal(Kind::Integer)));
    }
    if list.is_empty() || names.dice.chance(70) {
        list.push(names.aggregate(1));
    }
    if names.dice.chance(15) {
        list.push(names.literal(Kind::Integer));
    }
    let filter = if names.dice.chance(50) { format!(" WHERE {}", names.condition(1)) } else { String::new() };
    let having = match names.dice.below(8) {
        0 => " HAVING NULL IS NULL".into(),
        1 => " HAVING NOT NULL IS NOT NULL".into(),
        2 => format!(" HAVING {} > {}", names.aggregate(1), names.literal(Kind::Integer)),
        3 => format!(" HAVING NOT {first} IS NULL"),
        4 => format!(" HAVING NOT ( {} ) BETWEEN NULL AND {}", names.aggregate(0), names.literal(Kind::Real)),
        _ => String::new(),
    };
    format!("SELECT {quantifier}{} FROM {from}{filter} GROUP BY {keys}{having}", list.join(", "))
}

/// UNION and its kin.
fn set_operation(dice: &mut Dice) -> Question {
    let lists = ["pk, col0", "col3, col0", "col2", "col1, col5", "pk", "col0 + 1, col2"];
    let list = dice.pick(&lists);
    let n = 2 + dice.below(2);
    let sides: Vec<String> = (0..n)
        .map(|_| format!("SELECT {list} FROM {} WHERE {}", table_of(dice), conditions::deep(dice, "")))
        .collect();
    // The same operator throughout: SQLite gives INTERSECT no precedence.
    let op = dice.pick(&[" UNION ", " UNION ALL ", " INTERSECT ", " EXCEPT "]);
    let sql = sides.join(op);
    match dice.below(3) {
        0 => format!("{sql} ORDER BY 1 DESC").ordered(&[0]),
        1 if list.contains(',') => format!("{sql} ORDER BY 2, 1 DESC").ordered(&[0, 1]),
        _ => sql.into(),
    }
}

/// CTEs that are read more than once, also by other CTEs.
fn read_twice(dice: &mut Dice, a: usize, deep: &str) -> String {
    let n = integer(dice);
    let query = dice.pick(&[
        "SELECT col0 AS g, count(*) AS n, max(col3) AS m FROM tab{a} WHERE {deep} GROUP BY col0",
        "SELECT DISTINCT col0 AS g, col3 AS n, pk % 3 AS m FROM tab{a} WHERE {deep}",
        "SELECT col3 AS g, pk AS n, col0 AS m FROM tab{a} WHERE {deep} ORDER BY pk DESC LIMIT 7",
        "SELECT pk AS g, row_number() OVER (ORDER BY pk) AS n, col3 AS m FROM tab{a} WHERE {deep}",
    ]);
    let query = query.replace("{a}", &a.to_string()).replace("{deep}", deep);
    let outer = dice.pick(&[
        "SELECT x.g, y.n FROM w x JOIN w y ON x.m = y.m",
        "SELECT x.g, y.n FROM w x JOIN w y ON x.g = y.n WHERE x.g > {n}",
        "SELECT x.g, y.n FROM w x LEFT JOIN w y ON x.n = y.n AND y.m < {n}",
        "SELECT g, n FROM w WHERE n >= (SELECT avg(n) FROM w)",
        "SELECT g, (SELECT count(*) FROM w y WHERE y.n < x.n) FROM w x WHERE EXISTS (SELECT 1 FROM w z WHERE z.m = x.g)",
        "SELECT g FROM w WHERE n > {n} UNION ALL SELECT m FROM w UNION ALL SELECT max(n) FROM w",
        "SELECT x.g, v.c FROM w x JOIN (SELECT m, count(*) AS c FROM w GROUP BY m) v ON v.m = x.m",
        "SELECT g FROM w WHERE g NOT IN (SELECT m FROM w WHERE m IS NOT NULL) AND g IS NOT NULL",
        "SELECT (SELECT min(g) FROM w), (SELECT max(n) FROM w), count(*) FROM w WHERE m > {n}",
        "SELECT x.k, y.k FROM v x JOIN v y ON x.k = y.k WHERE x.k IN (SELECT n FROM w)",
    ]);
    let more = match outer.contains("FROM v x") {
        true => ", v AS (SELECT x.n AS k, count(*) AS c FROM w x JOIN w y ON x.n >= y.n GROUP BY x.n)",
        false => "",
    };
    format!("WITH w AS ({query}){more} {outer}").replace("{n}", &n.to_string())
}

/// Subqueries of joined tables that depend on a row by columns of the same names.
fn of_joined(dice: &mut Dice, a: usize) -> String {
    let (b, c) = (dice.below(TABLES), dice.below(TABLES));
    let not = dice.pick(&["", "NOT "]);
    let on = dice.pick(&["x.pk = z.pk", "x.col0 = z.col3", "x.col3 <= z.col3 AND x.pk > z.pk", "x.pk < 3"]);
    let joined = dice.pick(&["JOIN", "LEFT JOIN"]);
    let depends = dice.pick(&[
        "x.col0 = y.col0 AND z.col0 = y.col3",
        "x.col0 >= y.col0 AND z.col0 < y.col0",
        "(x.col3 > y.col3 OR z.col3 < x.col3)",
        "x.pk + z.pk = y.pk + 3",
        "x.col0 = y.col0 AND z.pk > 1",
        "x.col0 BETWEEN z.col0 AND y.col0",
    ]);
    let from = format!("FROM tab{b} AS x {joined} tab{c} AS z ON {on} WHERE {depends}");
    match dice.below(5) {
        0 => format!("SELECT pk FROM tab{a} AS y WHERE {not}EXISTS (SELECT z.pk, x.pk {from})"),
        1 => format!("SELECT pk FROM tab{a} AS y WHERE pk > 2 OR {not}EXISTS (SELECT 1 {from})"),
        2 => format!("SELECT pk FROM tab{a} AS y WHERE y.col3 {not}IN (SELECT z.col3 AS col0 {from})"),
        3 => format!("SELECT pk, (SELECT count(*) {from}) FROM tab{a} AS y"),
        _ => format!("SELECT pk FROM tab{a} AS y WHERE col0 <= (SELECT max(x.col3) AS col0 {from})"),
    }
}

/// EXISTS, scalar subqueries, correlated ones, derived tables and CTEs.
fn subqueries(dice: &mut Dice) -> String {
    let (a, b) = (dice.below(TABLES), dice.below(TABLES));
    let (deep, inner) = (conditions::deep(dice, ""), conditions::simple(dice, "x."));
    let n = integer(dice);
    let not = dice.pick(&["", "NOT "]);
    match dice.below(12) {
        9 | 10 => of_joined(dice, a),
        0 => format!(
            "SELECT pk FROM tab{a} AS y WHERE {not}EXISTS (SELECT 1 FROM tab{b} AS x WHERE x.col0 = y.col3)"
        ),
        1 => format!(
            "SELECT pk FROM tab{a} AS y WHERE col0 > (SELECT AVG(x.col3) FROM tab{b} AS x WHERE {inner})"
        ),
        2 => format!("SELECT pk, (SELECT count(*) FROM tab{b} AS x WHERE x.col3 < y.col0) FROM tab{a} AS y"),
        3 => format!(
            "SELECT s.col0, s.n FROM (SELECT col0, count(*) AS n FROM tab{a} WHERE {deep} GROUP BY col0) AS s WHERE s.n > 1"
        ),
        4 => format!(
            "WITH w AS (SELECT * FROM tab{a} WHERE {deep}) SELECT w.pk, x.col0 FROM w JOIN tab{b} x ON w.pk = x.pk"
        ),
        5 => format!(
            "SELECT pk FROM tab{a} AS y WHERE {not}col0 IN (SELECT x.col3 FROM tab{b} AS x WHERE x.pk <> y.pk)"
        ),
        6 => format!(
            "SELECT pk FROM tab{a} WHERE {not}col0 {not}IN (SELECT col3 FROM tab{b} WHERE col3 IS NOT NULL)"
        ),
        7 => format!("SELECT count(*) FROM tab{a} AS x, tab{b} AS y WHERE x.col0 = y.col0 AND {inner}"),
        8 => read_twice(dice, a, &deep),
        _ => format!(
            "SELECT max(pk), {n} FROM tab{a} WHERE ({deep}) AND pk IN (SELECT pk FROM tab{b} WHERE {deep})"
        ),
    }
}
