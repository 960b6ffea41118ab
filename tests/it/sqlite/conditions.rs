//! Conditions as the index family writes them.

use super::tables::{COLUMNS, integer, real, text};
use crate::dice::Dice;

const COMPARE: [&str; 7] = ["=", "<>", "<", "<=", ">", ">=", "!="];

/// AND, OR and NOT over [`simple`] conditions on the columns of `table` (`""`, or a name and a period).
pub fn deep(dice: &mut Dice, table: &str) -> String {
    nested(dice, table, 3)
}

fn nested(dice: &mut Dice, table: &str, depth: usize) -> String {
    if depth == 0 || dice.chance(30) {
        return simple(dice, table);
    }
    let word = dice.pick(&[" AND ", " OR "]);
    let terms: Vec<String> = (0..2 + dice.below(2)).map(|_| nested(dice, table, depth - 1)).collect();
    let not = if dice.chance(12) { "NOT " } else { "" };
    format!("{not}({})", terms.join(word))
}

/// One condition on one column.
pub fn simple(dice: &mut Dice, table: &str) -> String {
    let column = dice.below(COLUMNS.len() + 1);
    let (name, ty) = if column == COLUMNS.len() { ("pk", "INTEGER") } else { COLUMNS[column] };
    let name = format!("{table}{name}");
    let value = |dice: &mut Dice| match ty {
        "TEXT" => text(dice),
        // An integer may be compared with a fraction, and the other way round.
        "INTEGER" if dice.chance(85) => integer(dice),
        _ if dice.chance(20) => integer(dice),
        _ => real(dice),
    };
    let not = if dice.chance(20) { "NOT " } else { "" };
    match dice.below(14) {
        0 | 1 => {
            let n = 1 + dice.below(6);
            let mut list: Vec<String> = (0..n).map(|_| value(dice)).collect();
            if dice.chance(8) {
                list.push("NULL".into());
            }
            format!("{name} {not}IN ({})", list.join(", "))
        }
        2 | 3 => format!("{name} {not}BETWEEN {} AND {}", value(dice), value(dice)),
        4 => format!("{name} IS {not}NULL"),
        5 if ty == "TEXT" => {
            let pattern = dice.pick(&["a%", "%b", "_", "%", "a_c", "", "b c", "Z%"]);
            format!("{name} {not}LIKE '{pattern}'")
        }
        6 => format!("({} {} {name})", value(dice), dice.pick(&COMPARE)),
        7 => {
            let other = match ty {
                "TEXT" => dice.pick(&["col2", "col5"]),
                _ => dice.pick(&["pk", "col0", "col1", "col3", "col4"]),
            };
            format!("{name} {} {table}{other}", dice.pick(&COMPARE))
        }
        8 => format!("(({name} {} {}))", dice.pick(&COMPARE), value(dice)),
        9 => {
            let subtable = dice.below(super::tables::TABLES);
            let inner =
                if dice.chance(60) { format!(" WHERE {}", simple_inner(dice)) } else { String::new() };
            let column = match ty {
                "TEXT" => dice.pick(&["col2", "col5"]),
                "FLOAT" => dice.pick(&["col1", "col4"]),
                _ => dice.pick(&["pk", "col0", "col3"]),
            };
            format!("{name} {not}IN (SELECT {column} FROM tab{subtable}{inner})")
        }
        // With other numbers in it, the column may be read or not.
        10 => {
            let (switch, compared) =
                (dice.below(2), format!("{name} {} {}", dice.pick(&COMPARE), value(dice)));
            let otherwise = integer(dice);
            match dice.below(3) {
                0 => format!("({switch} = 1 OR {compared})"),
                1 => format!("(NOT {switch} = 1 AND {compared})"),
                _ => format!("CASE WHEN {switch} = 1 THEN {compared} ELSE {table}pk <> {otherwise} END"),
            }
        }
        _ => format!("{name} {} {}", dice.pick(&COMPARE), value(dice)),
    }
}

/// A condition of a subquery, without another one inside.
fn simple_inner(dice: &mut Dice) -> String {
    let column = dice.pick(&["pk", "col0", "col3"]);
    format!("{column} {} {}", dice.pick(&COMPARE), integer(dice))
}
