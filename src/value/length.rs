//! Lengths of time that do not depend on the calendar: `1 day 12 hours`.

/// Units and their lengths in microseconds, from small to large; the first of each unit's names is its singular.
const UNITS: [(&[&str], i64); 5] = [
    (&["second", "seconds", "sec", "secs", "s"], 1_000_000),
    (&["minute", "minutes", "min", "mins", "m"], 60 * 1_000_000),
    (&["hour", "hours", "h"], 3_600 * 1_000_000),
    (&["day", "days", "d"], 86_400 * 1_000_000),
    (&["week", "weeks", "w"], 7 * 86_400 * 1_000_000),
];

/// Parses whole numbers of units into microseconds; `None` if the text is empty, malformed, or too long a time.
pub fn length_of(text: &str) -> Option<i64> {
    let (mut sum, mut rest) = (0_i64, text.trim());
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (number, behind) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let behind = behind.trim_start();
        let (unit, next) =
            behind.split_at(behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len()));
        let is_unit = |name: &&str| name.eq_ignore_ascii_case(unit);
        let (_, length) = UNITS.iter().find(|(names, _)| names.iter().any(is_unit))?;
        sum = sum.checked_add(number.parse::<i64>().ok()?.checked_mul(*length)?)?;
        rest = next.trim_start();
    }
    Some(sum)
}

/// The text that [`length_of`] reads back, in the largest possible units except weeks; fractions of a second are
/// dropped.
pub fn length_text(mut micros: i64) -> String {
    let mut parts = Vec::new();
    for (names, length) in UNITS.iter().rev().skip(1) {
        match micros / length {
            0 => {}
            1 => parts.push(format!("1 {}", names[0])),
            n => parts.push(format!("{n} {}s", names[0])),
        }
        micros %= length;
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_as_they_are_written() {
        for (text, shown) in [
            ("30 days", "30 days"),
            (" 1 DAY 12 hours ", "1 day 12 hours"),
            ("2w", "14 days"),
            ("90 min", "1 hour 30 minutes"),
            ("1s", "1 second"),
            ("3600 seconds", "1 hour"),
        ] {
            assert_eq!(length_of(text).map(length_text).as_deref(), Some(shown), "{text}");
            assert_eq!(length_of(shown), length_of(text));
        }
        assert_eq!(length_of("1 minute 1 second"), Some(61_000_000));
        assert_eq!(length_of("0 days"), Some(0));
        for wrong in
            ["", "30", "days", "-1 day", "1 month", "1.5 days", "1 day 2", "99999999999999 weeks", "1 dayx"]
        {
            assert_eq!(length_of(wrong), None, "{wrong}");
        }
    }
}
