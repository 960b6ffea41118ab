//! Tables, rows, indexes and views of the index family.

use crate::dice::Dice;

/// How many tables there are: `tab0`, `tab1`, ...
pub const TABLES: usize = 3;

/// Columns of every table behind its `pk`, and how they are declared.
pub const COLUMNS: [(&str, &str); 6] = [
    ("col0", "INTEGER"),
    ("col1", "FLOAT"),
    ("col2", "TEXT"),
    ("col3", "INTEGER"),
    ("col4", "FLOAT"),
    ("col5", "TEXT"),
];

/// Texts that columns hold and questions name.
pub const TEXTS: [&str; 9] = ["", "a", "ab", "abc", "B", "b c", "zz", "10", "é"];

/// A table without rows, some without a PRIMARY KEY.
pub fn create(dice: &mut Dice, n: usize) -> String {
    let columns: Vec<String> = COLUMNS.iter().map(|(name, ty)| format!("{name} {ty}")).collect();
    let key = if dice.chance(25) { "NOT NULL UNIQUE" } else { "PRIMARY KEY" };
    format!("CREATE TABLE tab{n}(pk INTEGER {key}, {})", columns.join(", "))
}

/// A value of a column, as a literal.
pub fn value(dice: &mut Dice, column: usize) -> String {
    if dice.chance(12) {
        return "NULL".into();
    }
    match COLUMNS[column].1 {
        "INTEGER" => integer(dice),
        "FLOAT" => real(dice),
        _ => text(dice),
    }
}

/// An integer as the columns hold them: few, so that rows meet.
pub fn integer(dice: &mut Dice) -> String {
    match dice.below(10) {
        0 => "0".into(),
        1 => format!("-{}", dice.below(50) + 1),
        2 => format!("{}", dice.below(100_000)),
        _ => format!("{}", dice.below(100) + 1),
    }
}

/// A number with a fraction, or without one.
pub fn real(dice: &mut Dice) -> String {
    let sign = if dice.chance(10) { "-" } else { "" };
    match dice.below(4) {
        0 => format!("{sign}{}", dice.below(100) + 1),
        1 => format!("{sign}{}.{}", dice.below(10_000), dice.below(100)),
        _ => format!("{sign}{}.{}", dice.below(100) + 1, dice.below(10)),
    }
}

/// A text.
pub fn text(dice: &mut Dice) -> String {
    format!("'{}'", dice.pick(&TEXTS))
}

/// The row with this key.
pub fn row(dice: &mut Dice, pk: usize) -> String {
    let values: Vec<String> = (0..COLUMNS.len()).map(|c| value(dice, c)).collect();
    format!("({pk},{})", values.join(","))
}

/// An index on one to four columns of a table, which `named` gives its name.
pub fn index(dice: &mut Dice, table: usize, name: &str, unique: bool) -> String {
    let mut columns: Vec<String> = COLUMNS.iter().map(|(name, _)| (*name).to_owned()).collect();
    if dice.chance(15) {
        columns.push("pk".into());
    }
    dice.shuffle(&mut columns);
    columns.truncate(1 + dice.below(4));
    for column in &mut columns {
        column.push_str(dice.pick(&["", "", " ASC", " DESC"]));
    }
    let (on, space) = if dice.chance(50) { ("on", " ") } else { ("ON", "") };
    let unique = if unique { "UNIQUE " } else { "" };
    format!("CREATE {unique}INDEX {name} {on} tab{table}{space}({})", columns.join(", "))
}
