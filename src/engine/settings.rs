//! SET and SHOW: the settings of a session, which limit what its statements may cost.

use std::time::Duration;

use arrow::array::RecordBatch;

use super::show::{TextTable, rows_of, text};
use crate::access::Guards;
use crate::error::{Error, Result, sqlstate};
use crate::value::Value;

/// Settings of one session; `None`: no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionSettings {
    /// Limits on what an access may read.
    pub guards: Guards,
    /// Longest time of a statement, including the reading of its rows.
    pub statement_timeout: Option<Duration>,
    /// Bytes of memory for a statement's sorts, joins and groups; the rest spills to disk.
    pub memory_limit: Option<u64>,
}

/// Name and description of each setting, in order.
const ALL: [(&str, &str); 6] = [
    ("max_full_scan_rows", "most rows of a table that is read whole"),
    ("max_ranges", "most key ranges of a scan"),
    ("max_gets", "most GETs of an access, fetches for index entries included"),
    (
        "memory_limit",
        "most memory of sorts, joins and groups, such as 512MB; more of sorts and groups goes to disk",
    ),
    ("statement_timeout", "longest time of a statement, such as 5s or 500ms"),
    ("time_zone", "time zone of times without one; always UTC"),
];

/// Settings of PostgreSQL that its dumps and clients begin with: the values that say what holds here anyway, and what
/// to do about others.
const ELSEWHERE: [(&str, &[&str], &str); 14] = [
    (
        "client_encoding",
        &["utf8", "utf-8", "unicode"],
        "every text is UTF-8: convert files before COPY reads them",
    ),
    ("standard_conforming_strings", &["true"], "a backslash stands for itself; E'...' has escapes"),
    (
        "search_path",
        &["", "public", "main", "pg_catalog", "$user"],
        "leave it out: there is one schema, public",
    ),
    ("client_min_messages", &["notice", "warning", "error"], LEAVE_OUT),
    ("check_function_bodies", &["false"], LEAVE_OUT),
    ("row_security", &["false"], LEAVE_OUT),
    ("xmloption", &["content"], LEAVE_OUT),
    ("default_tablespace", &[""], LEAVE_OUT),
    ("default_table_access_method", &["heap"], LEAVE_OUT),
    ("default_with_oids", &["false"], LEAVE_OUT),
    ("lock_timeout", &["0"], "there are no locks to wait for: statement_timeout limits a statement"),
    ("idle_in_transaction_session_timeout", &["0"], "an idle transaction holds nobody up"),
    ("transaction_timeout", &["0"], "statement_timeout limits a statement"),
    ("foreign_key_checks", &[], "leave it out: foreign keys are checked when a statement ends"),
];

/// The least `memory_limit`, in bytes.
const MEMORY_LEAST: u64 = 8 << 10;

const LEAVE_OUT: &str = "leave it out";

const UNITS_OF_TIME: [(&str, u64); 6] =
    [("ms", 1), ("s", 1000), ("min", 60_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
const UNITS_OF_SIZE: [(&str, u64); 7] = [
    ("b", 1),
    ("kb", 1 << 10),
    ("mb", 1 << 20),
    ("gb", 1 << 30),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
];

impl SessionSettings {
    /// `SET name = value`; NULL stands for DEFAULT. Errors: no such setting; a value that does not fit.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<()> {
        match name {
            "all" if value.is_null() => *self = SessionSettings::default(),
            "max_full_scan_rows" => self.guards.full_scan_rows = count(name, value)?,
            "max_ranges" => self.guards.ranges = count(name, value)?,
            "max_gets" => self.guards.gets = count(name, value)?,
            "memory_limit" => {
                let bytes = quantity(name, value, "512MB", &UNITS_OF_SIZE)?;
                if bytes.is_some_and(|bytes| bytes < MEMORY_LEAST) {
                    return Err(unfit(name, value, "a number with a unit, such as '512MB': kB, MB or GB")
                        .why("without a unit it is in bytes, and less than 8kB hold no rows"));
                }
                self.memory_limit = bytes;
            }
            "statement_timeout" => {
                let millis = quantity(name, value, "5s", &UNITS_OF_TIME)?;
                self.statement_timeout = millis.map(Duration::from_millis);
            }
            "time_zone" => match value {
                Value::Null => {}
                Value::Text(zone) if ["utc", "local"].contains(&zone.to_ascii_lowercase().as_str()) => {}
                _ => {
                    return Err(unfit(name, value, "'UTC', in which all times without a zone are")
                        .why("times are shown in UTC")
                        .hint("write t AT TIME ZONE 'Europe/Berlin' for a time there"));
                }
            },
            other => return set_elsewhere(other, value),
        }
        Ok(())
    }

    /// `SHOW name`
    pub fn show(&self, name: &str) -> Result<RecordBatch> {
        let (known, _) = ALL.iter().find(|(n, _)| *n == name).ok_or_else(|| unknown(name, &SHOWN))?;
        rows_of(vec![(known, text(vec![self.value(known)]))])
    }

    /// `SHOW SETTINGS`
    pub fn show_all(&self) -> Result<RecordBatch> {
        let mut rows = TextTable::new(["setting", "value", "description"]);
        ALL.iter().for_each(|(name, meaning)| {
            rows.row([(*name).to_owned(), self.value(name), (*meaning).to_owned()]);
        });
        rows.finish()
    }

    fn value(&self, name: &str) -> String {
        let number = |n: Option<u64>| n.map_or_else(|| "none".to_owned(), |n| n.to_string());
        match name {
            "max_full_scan_rows" => number(self.guards.full_scan_rows),
            "max_ranges" => number(self.guards.ranges),
            "max_gets" => number(self.guards.gets),
            "memory_limit" => {
                written(self.memory_limit, &UNITS_OF_SIZE[..4]).to_uppercase().replace("NONE", "none")
            }
            "statement_timeout" => {
                let millis = self.statement_timeout.map(|t| u64::try_from(t.as_millis()).unwrap_or(u64::MAX));
                written(millis, &UNITS_OF_TIME[..3])
            }
            _ => "UTC".to_owned(),
        }
    }
}

/// SET of what is no setting here. Errors: it would ask for something else than what holds.
fn set_elsewhere(name: &str, value: &Value) -> Result<()> {
    let Some((_, held, instead)) = ELSEWHERE.iter().find(|(theirs, ..)| *theirs == name) else {
        return Err(unknown(name, &[]));
    };
    let wanted = value.to_string().to_lowercase();
    let holds = |wanted: &str| held.contains(&wanted);
    if value.is_null() || holds(&wanted) || wanted.split(", ").all(holds) {
        return Ok(());
    }
    Err(unknown(name, &[]).hint(*instead))
}

fn count(name: &str, value: &Value) -> Result<Option<u64>> {
    match value {
        Value::Null => Ok(None),
        Value::Int(n) if *n >= 0 => Ok(Some(n.unsigned_abs())),
        Value::Text(none) if none.eq_ignore_ascii_case("none") => Ok(None),
        _ => Err(unfit(name, value, "a whole number, or DEFAULT for no limit")),
    }
}

/// A number with a unit; without one, in the smallest unit. Zero is no limit, as in PostgreSQL.
fn quantity(name: &str, value: &Value, example: &str, units: &[(&str, u64)]) -> Result<Option<u64>> {
    let bad =
        || unfit(name, value, &format!("a number with a unit, such as '{example}', or DEFAULT for no limit"));
    let n = match value {
        Value::Null => None,
        Value::Int(n) => Some(u64::try_from(*n).map_err(|_| bad())?),
        Value::Text(none) if none.eq_ignore_ascii_case("none") => None,
        Value::Text(written) => {
            let written = written.trim().to_ascii_lowercase();
            let digits = written.find(|c: char| !c.is_ascii_digit()).unwrap_or(written.len());
            let (number, unit) = written.split_at(digits);
            let number: u64 = number.parse().map_err(|_| bad())?;
            let factor = match unit.trim() {
                "" => 1,
                unit => units.iter().find(|(u, _)| *u == unit).ok_or_else(bad)?.1,
            };
            Some(number.checked_mul(factor).ok_or_else(bad)?)
        }
        _ => return Err(bad()),
    };
    Ok(n.filter(|n| *n > 0))
}

/// The number in the largest of `units` (sorted ascending) that divides it.
fn written(n: Option<u64>, units: &[(&str, u64)]) -> String {
    let Some(n) = n else { return "none".to_owned() };
    let unit = units.iter().rev().find(|(_, factor)| n.is_multiple_of(*factor));
    unit.map_or_else(|| n.to_string(), |(unit, factor)| format!("{}{unit}", n / factor))
}

fn unfit(name: &str, value: &Value, wanted: &str) -> Error {
    Error::invalid(format!("{name} cannot be {value}"))
        .about(value.to_string())
        .hint(format!("give {wanted}"))
        .state(sqlstate::INVALID_PARAMETER)
}

/// Other words that SHOW takes.
const SHOWN: [&str; 10] = [
    "tables",
    "indexes",
    "columns",
    "functions",
    "settings",
    "views",
    "snapshots",
    "regions",
    "traffic",
    "statistics",
];

/// What SET takes.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, _)| *name)
}

/// What SHOW takes.
pub fn shown() -> impl Iterator<Item = &'static str> {
    names().chain(SHOWN)
}

/// The error for an unknown setting; `others`: further words to suggest.
fn unknown(name: &str, others: &[&'static str]) -> Error {
    let error = Error::invalid(format!("there is no setting \"{name}\"")).state(sqlstate::UNDEFINED_OBJECT);
    if matches!(name, "databases" | "schemas") {
        return error.hint("one database is open at a time, with one schema: SHOW TABLES lists its tables");
    }
    let names = names().chain(others.iter().copied());
    crate::suggest::with_suggestion(error, name, names, "SHOW SETTINGS lists them")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, value: Value) -> Result<String> {
        let mut settings = SessionSettings::default();
        settings.set(name, &value)?;
        Ok(settings.value(name))
    }

    #[test]
    fn numbers_with_units() {
        let text = |t: &str| Value::Text(t.into());
        assert_eq!(set("memory_limit", text("512MB")).unwrap(), "512MB");
        assert_eq!(set("memory_limit", text("2048 kb")).unwrap(), "2MB");
        assert_eq!(set("memory_limit", Value::Int(10_000)).unwrap(), "10000B");
        let too_little = set("memory_limit", Value::Int(5)).unwrap_err();
        assert_eq!(too_little.what(), "memory_limit cannot be 5");
        assert!(too_little.fix().is_some_and(|fix| fix.contains("512MB")), "{too_little}");
        assert_eq!(set("statement_timeout", text("90s")).unwrap(), "90s");
        assert_eq!(set("statement_timeout", text("2min")).unwrap(), "2min");
        assert_eq!(set("statement_timeout", Value::Int(250)).unwrap(), "250ms");
        assert_eq!(set("statement_timeout", Value::Int(0)).unwrap(), "none");
        assert_eq!(set("max_gets", Value::Int(0)).unwrap(), "0");
        assert_eq!(set("max_gets", Value::Null).unwrap(), "none");
        for (name, value) in [
            ("client_encoding", text("UTF8")),
            ("standard_conforming_strings", Value::Boolean(true)),
            ("search_path", text("$user, public")),
            ("search_path", text("")),
            ("lock_timeout", Value::Int(0)),
        ] {
            assert_eq!(
                SessionSettings::default().set(name, &value).map_err(|e| e.to_string()),
                Ok(()),
                "{name}"
            );
        }
        for (name, value) in [
            ("memory_limit", text("lots")),
            ("memory_limit", text("1 parsec")),
            ("memory_limit", text("99999999999999999999")),
            ("memory_limit", text("17179869184gb")),
            ("statement_timeout", Value::Int(-1)),
            ("max_gets", Value::Double(1.5)),
            ("time_zone", text("Europe/Oslo")),
            ("client_encoding", text("LATIN1")),
            ("search_path", text("public, sales")),
            ("lock_timeout", Value::Int(5)),
            ("max_getz", Value::Int(1)),
        ] {
            assert!(set(name, value.clone()).is_err(), "{name} {value:?}");
        }
    }
}
