//! Intervals written with a clock, or in ISO 8601: put into units, which DataFusion reads.

use sqlparser::ast::{DataType, Expr, Interval, Value, ValueWithSpan};

/// Puts the literal of `INTERVAL '1 day 04:05:06'`, `INTERVAL 'P1Y2M'` and of a cast to INTERVAL into units.
pub(super) fn in_units(expr: &mut Expr) {
    let length = match expr {
        Expr::Interval(Interval { value, leading_field: None, .. }) => value,
        Expr::Cast { expr: value, data_type: DataType::Interval { .. }, .. } => value,
        _ => return,
    };
    if let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) = &mut **length
        && let Some(units) = units_of(text)
    {
        *text = units;
    }
}

/// `1 day 4 hours 5 minutes 6 seconds`; `None` if the text has units already, or is no interval.
fn units_of(text: &str) -> Option<String> {
    let text = text.trim();
    if let Some(iso) = text.strip_prefix('P') {
        return of_iso(iso);
    }
    if !text.contains([':', '+']) {
        return None;
    }
    let words = text.split_whitespace().map(|word| match word.contains(':') {
        true => of_clock(word),
        false => Some(word.strip_prefix('+').unwrap_or(word).to_owned()),
    });
    Some(words.collect::<Option<Vec<_>>>()?.join(" "))
}

/// `-04:05:06.5`, or `04:05`
fn of_clock(clock: &str) -> Option<String> {
    let (sign, clock) = match clock.strip_prefix('-') {
        Some(clock) => ("-", clock),
        None => ("", clock.strip_prefix('+').unwrap_or(clock)),
    };
    let mut parts = clock.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next().unwrap_or("0"));
    let is_whole = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let below_60 = |part: &str| part.len() <= 2 && part.parse::<u8>().is_ok_and(|n| n < 60);
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let is_clock = is_whole(hours)
        && [minutes, whole].into_iter().all(|part| is_whole(part) && below_60(part))
        && is_whole(fraction)
        && parts.next().is_none();
    is_clock.then(|| format!("{sign}{hours} hours {sign}{minutes} minutes {sign}{seconds} seconds"))
}

/// What follows the P of `P1Y2M3DT4H5M6.5S`, or of `P2W`.
fn of_iso(iso: &str) -> Option<String> {
    let (days, clock) = iso.split_once('T').unwrap_or((iso, ""));
    let mut units = Vec::new();
    let in_days = [('Y', "years"), ('M', "months"), ('W', "weeks"), ('D', "days")];
    let in_clock = [('H', "hours"), ('M', "minutes"), ('S', "seconds")];
    for (mut rest, known) in [(days, &in_days[..]), (clock, &in_clock[..])] {
        while let Some(at) = rest.find(|c: char| c.is_ascii_alphabetic()) {
            let (number, from) = rest.split_at(at);
            let unit = known.iter().find(|(letter, _)| from.starts_with(*letter))?.1;
            number.parse::<f64>().ok()?;
            units.push(format!("{} {unit}", number.strip_prefix('+').unwrap_or(number)));
            rest = &from[1..];
        }
        if !rest.is_empty() {
            return None;
        }
    }
    (!units.is_empty()).then(|| units.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_and_iso_become_units() {
        let cases = [
            ("04:05:06", Some("04 hours 05 minutes 06 seconds")),
            ("1 day -04:05:06.5", Some("1 day -04 hours -05 minutes -06.5 seconds")),
            ("-1 days +00:01", Some("-1 days 00 hours 01 minutes 0 seconds")),
            ("P1Y2M", Some("1 years 2 months")),
            ("P1DT-2H30.5M", Some("1 days -2 hours 30.5 minutes")),
            ("PT86400S", Some("86400 seconds")),
            ("1 day 2 hours", None),
            ("P", None),
            ("P1Y2", None),
            ("PT1Y", None),
            ("04:60", None),
            ("4:5:6:7", None),
            (":05", None),
            ("04:05:06.", None),
        ];
        for (from, to) in cases {
            assert_eq!(units_of(from).as_deref(), to, "{from}");
        }
    }
}
