//! `to_char` patterns of fixed width: times as text that sorts, when the pattern allows it.
//!
//! | pattern | shows | width |
//! |---|---|---|
//! | `YYYY`, `YY` | year, its last two digits | 4, 2 |
//! | `MM`, `DD`, `DDD` | month, day of the month, day of the year | 2, 2, 3 |
//! | `HH24`, `HH12` or `HH` | hour 00 to 23, 01 to 12 | 2 |
//! | `AM` or `PM` (`am`, `pm`) | half of the day | 2 |
//! | `MI`, `SS` | minute, second | 2 |
//! | `MS`, `US` | milliseconds, microseconds of the second | 3, 6 |
//! | `"text"`, punctuation, blanks | themselves | |
//!
//! After PostgreSQL's `to_char`; patterns of varying width (`Month`, `Day`, `FM...`) are refused.
//! `DD-MM-YYYY HH24:MI:SS` shows 2017-01-01 09:00 as `01-01-2017 09:00:00`.

use chrono::{Datelike, Duration, NaiveDate, NaiveDateTime, Timelike};
use serde::{Deserialize, Serialize};

use crate::value::{Value, ValueRef, date_of, datetime_of};

/// A parsed pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TimeFormat {
    pattern: String,
    pieces: Vec<FormatPiece>,
    /// The unit to which the format rounds down; `None` if a shown time is ambiguous.
    precision: Option<Precision>,
    sorts: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum FormatPiece {
    Field(Field),
    Text(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Year,
    ShortYear,
    Month,
    Day,
    DayOfYear,
    Hour24,
    Hour12,
    Half { upper: bool },
    Minute,
    Second,
    Milli,
    Micro,
}

/// Units of time, coarse to fine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Precision {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Milli,
    Micro,
}

/// 0001-01-01 and 10000-01-01, in microseconds since 1970.
const FIRST_US: i64 = -62_135_596_800_000_000;
const END_US: i64 = 253_402_300_800_000_000;

/// Patterns; where one is a prefix of another, the longer one comes first.
const PATTERNS: [(&str, Field); 14] = [
    ("YYYY", Field::Year),
    ("YY", Field::ShortYear),
    ("MM", Field::Month),
    ("DDD", Field::DayOfYear),
    ("DD", Field::Day),
    ("HH24", Field::Hour24),
    ("HH12", Field::Hour12),
    ("HH", Field::Hour12),
    ("AM", Field::Half { upper: true }),
    ("PM", Field::Half { upper: true }),
    ("MI", Field::Minute),
    ("SS", Field::Second),
    ("MS", Field::Milli),
    ("US", Field::Micro),
];

impl Field {
    fn width(self) -> usize {
        match self {
            Field::Year => 4,
            Field::DayOfYear | Field::Milli => 3,
            Field::Micro => 6,
            _ => 2,
        }
    }

    fn number(self, t: NaiveDateTime) -> i64 {
        match self {
            Field::Year => t.year().into(),
            Field::ShortYear => t.year().rem_euclid(100).into(),
            Field::Month => t.month().into(),
            Field::Day => t.day().into(),
            Field::DayOfYear => t.ordinal().into(),
            Field::Hour24 => t.hour().into(),
            Field::Hour12 => t.hour12().1.into(),
            Field::Half { .. } => i64::from(t.hour12().0),
            Field::Minute => t.minute().into(),
            Field::Second => t.second().into(),
            Field::Milli => i64::from(t.nanosecond() / 1_000_000 % 1000),
            Field::Micro => i64::from(t.nanosecond() / 1000 % 1_000_000),
        }
    }
}

impl TimeFormat {
    /// Parses a pattern. Errors: what is not understood, with a list of patterns.
    pub fn parse(pattern: &str) -> Result<TimeFormat, String> {
        let pieces = pieces(pattern)?;
        let fields: Vec<Field> = pieces
            .iter()
            .filter_map(|p| match p {
                FormatPiece::Field(f) => Some(*f),
                FormatPiece::Text(_) => None,
            })
            .collect();
        if fields.is_empty() {
            return Err(format!("'{pattern}' shows no part of a time; it may hold {KNOWN}"));
        }
        let precision = precision(&fields);
        let sorts = sorts(&fields);
        Ok(TimeFormat { pattern: pattern.to_owned(), pieces, precision, sorts })
    }

    /// The pattern as written.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Length in bytes of every text in this format, for years 0 to 9999.
    pub fn width(&self) -> usize {
        self.pieces
            .iter()
            .map(|p| match p {
                FormatPiece::Field(f) => f.width(),
                FormatPiece::Text(t) => t.len(),
            })
            .sum()
    }

    /// Do texts sort as their times do? They do if they show the year first, then each next finer unit.
    pub fn sorts(&self) -> bool {
        self.sorts
    }

    /// Does [`TimeFormat::parse_time`] give back every time that [`TimeFormat::floor`] does not change? It
    /// does if the format shows the whole date, and the time of day without a gap.
    pub fn decodable(&self) -> bool {
        self.precision.is_some_and(|p| p >= Precision::Day)
    }

    /// Formats a DATE, TIMESTAMP or TIMESTAMPTZ (in UTC); `None` for other values and outside of the
    /// calendar.
    pub fn format(&self, value: &Value) -> Option<String> {
        let mut out = String::with_capacity(self.width());
        self.show(value.as_ref(), &mut out)?;
        Some(out)
    }

    /// Like [`TimeFormat::format`], appending to `out`.
    pub fn show(&self, value: ValueRef<'_>, out: &mut String) -> Option<()> {
        let time = match value {
            ValueRef::Date(days) => date_of(days)?.into(),
            ValueRef::Timestamp(us) | ValueRef::TimestampTz(us) => datetime_of(us)?,
            _ => return None,
        };
        let mut bytes = std::mem::take(out).into_bytes();
        self.put(time, &mut bytes);
        *out = String::from_utf8(bytes).ok()?;
        Some(())
    }

    /// Appends a time as text. Years outside of 0 to 9999 are wider than [`TimeFormat::width`].
    pub fn put(&self, time: NaiveDateTime, out: &mut Vec<u8>) {
        for piece in &self.pieces {
            match piece {
                FormatPiece::Text(t) => out.extend_from_slice(t.as_bytes()),
                FormatPiece::Field(Field::Half { upper }) => {
                    let half = if time.hour() < 12 { ["am", "AM"] } else { ["pm", "PM"] };
                    out.extend_from_slice(half[usize::from(*upper)].as_bytes());
                }
                FormatPiece::Field(field) => put_number(field.number(time), field.width(), out),
            }
        }
    }

    /// Parses a text in this format; `None` if it does not match, or gives no whole date. Units that the
    /// format does not show are zero.
    pub fn parse_time(&self, text: &str) -> Option<NaiveDateTime> {
        let mut seen = ParsedFields::default();
        let mut rest = text;
        for piece in &self.pieces {
            match piece {
                FormatPiece::Text(t) => rest = rest.strip_prefix(t.as_str())?,
                FormatPiece::Field(field) => {
                    let (shown, after) = rest.split_at_checked(field.width())?;
                    seen.note(*field, shown)?;
                    rest = after;
                }
            }
        }
        if rest.is_empty() { seen.time() } else { None }
    }

    /// The first time (microseconds since 1970) with this text; `None` if there is none, or the text is
    /// ambiguous.
    pub fn micros_of(&self, text: &str) -> Option<i64> {
        let time = self.parse_time(text)?;
        let mut shown = Vec::with_capacity(text.len());
        self.put(time, &mut shown);
        (shown == text.as_bytes()).then(|| time.and_utc().timestamp_micros())
    }

    /// The first time (microseconds since 1970) whose text is greater than or equal to `text`; with `beyond`,
    /// greater. `None` if there is none. Years run from 1 to 9999. Only for formats that sort.
    pub fn first_at(&self, text: &str, beyond: bool) -> Option<i64> {
        let (mut first, mut end) = (FIRST_US, END_US);
        let mut shown = Vec::with_capacity(self.width());
        while first < end {
            let middle = first + (end - first) / 2;
            shown.clear();
            self.put(datetime_of(middle)?, &mut shown);
            let order = shown[..].cmp(text.as_bytes());
            if order.is_lt() || beyond && order.is_eq() { first = middle + 1 } else { end = middle }
        }
        (first < END_US).then_some(first)
    }

    /// The unit to which times are rounded down, named as for [`unit_around`](crate::value::unit_around).
    pub fn unit(&self) -> Option<&'static str> {
        Some(match self.precision? {
            Precision::Year => "year",
            Precision::Month => "month",
            Precision::Day => "day",
            Precision::Hour => "hour",
            Precision::Minute => "minute",
            Precision::Second => "second",
            Precision::Milli => "millisecond",
            Precision::Micro => "microsecond",
        })
    }

    /// Rounds `time` down to the precision of the format. If the precision is not known, `time` itself.
    pub fn floor(&self, time: NaiveDateTime) -> NaiveDateTime {
        let Some(precision) = self.precision else { return time };
        let (date, nanos) = (time.date(), time.nanosecond());
        let midnight = |date: Option<NaiveDate>| date.map_or(time, Into::into);
        let second = time - Duration::nanoseconds(nanos.into());
        match precision {
            Precision::Year => midnight(date.with_ordinal(1)),
            Precision::Month => midnight(date.with_day(1)),
            Precision::Day => midnight(Some(date)),
            Precision::Hour => second - Duration::seconds((time.minute() * 60 + time.second()).into()),
            Precision::Minute => second - Duration::seconds(time.second().into()),
            Precision::Second => second,
            Precision::Milli => time - Duration::nanoseconds((nanos % 1_000_000).into()),
            Precision::Micro => time - Duration::nanoseconds((nanos % 1000).into()),
        }
    }
}

const KNOWN: &str =
    "YYYY, YY, MM, DD, DDD, HH24, HH12, HH, AM, PM, MI, SS, MS, US, punctuation and \"quoted text\"";

fn pieces(pattern: &str) -> Result<Vec<FormatPiece>, String> {
    let (mut out, mut rest) = (Vec::new(), pattern);
    let mut text = String::new();
    while let Some(first) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (inside, after) = quoted.split_once('"').ok_or("a quoted text has no closing '\"'")?;
            text.push_str(inside);
            rest = after;
        } else if let Some((name, field)) = field_at(rest) {
            if !text.is_empty() {
                out.push(FormatPiece::Text(std::mem::take(&mut text)));
            }
            out.push(FormatPiece::Field(field));
            rest = &rest[name.len()..];
        } else if first.is_alphanumeric() || first == '\0' {
            let word: String = rest.chars().take_while(|c| c.is_alphanumeric()).collect();
            return Err(format!("'{word}' is not a pattern of fixed width; use {KNOWN}"));
        } else {
            text.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    if text.contains('\0') {
        return Err("a quoted text may not hold a NUL character".into());
    }
    if !text.is_empty() {
        out.push(FormatPiece::Text(text));
    }
    Ok(out)
}

fn field_at(rest: &str) -> Option<(&'static str, Field)> {
    let matching = |name: &str| rest.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name));
    // `SSSS`, seconds past midnight, varies in width; do not read it as seconds, twice.
    if matching("SSSS") {
        return None;
    }
    let (name, field) = *PATTERNS.iter().find(|(name, _)| matching(name))?;
    // The pattern's case is that of the text, `AM` or `am`, as in PostgreSQL.
    let field = match field {
        Field::Half { .. } => Field::Half { upper: rest.starts_with(['A', 'P']) },
        field => field,
    };
    Some((name, field))
}

/// The finest unit down to which `fields` show everything.
fn precision(fields: &[Field]) -> Option<Precision> {
    let has = |f: Field| fields.contains(&f);
    let half = fields.iter().any(|f| matches!(f, Field::Half { .. }));
    let day = has(Field::DayOfYear) || (has(Field::Month) && has(Field::Day));
    let shown = [
        (Precision::Year, has(Field::Year)),
        (Precision::Month, has(Field::Month) || day),
        (Precision::Day, day),
        (Precision::Hour, has(Field::Hour24) || (has(Field::Hour12) && half)),
        (Precision::Minute, has(Field::Minute)),
        (Precision::Second, has(Field::Second)),
        (Precision::Milli, has(Field::Milli) || has(Field::Micro)),
        (Precision::Micro, has(Field::Micro)),
    ];
    let whole = shown.iter().take_while(|(_, shown)| *shown).last().map(|(p, _)| *p);
    // With a gap, such as minutes without hours, equal texts need not be equal times.
    let gap = shown.iter().any(|(p, shown)| *shown && Some(*p) > whole);
    let lone = (has(Field::Day) && !day) || (has(Field::Hour12) && !half && !has(Field::Hour24));
    if gap || lone { None } else { whole }
}

/// Do the fields go from the year to finer units without a gap?
fn sorts(fields: &[Field]) -> bool {
    let by_month =
        [Field::Year, Field::Month, Field::Day, Field::Hour24, Field::Minute, Field::Second, Field::Micro];
    let by_day = [Field::Year, Field::DayOfYear, Field::Hour24, Field::Minute, Field::Second, Field::Micro];
    let matches = |order: &[Field]| {
        fields.len() <= order.len()
            && fields.iter().zip(order).all(|(f, o)| f == o || (*f == Field::Milli && *o == Field::Micro))
    };
    matches(&by_month) || matches(&by_day)
}

fn put_number(n: i64, width: usize, out: &mut Vec<u8>) {
    if (0..10i64.pow(width as u32)).contains(&n) {
        let start = out.len();
        out.resize(start + width, b'0');
        let mut n = n;
        for digit in out[start..].iter_mut().rev() {
            *digit = b'0' + (n % 10) as u8;
            n /= 10;
        }
    } else {
        out.extend_from_slice(format!("{n:0width$}").as_bytes());
    }
}

/// The numbers parsed so far.
#[derive(Default)]
struct ParsedFields {
    year: Option<i32>,
    month: Option<u32>,
    day: Option<u32>,
    day_of_year: Option<u32>,
    hour: Option<u32>,
    hour12: Option<u32>,
    afternoon: Option<bool>,
    minute: Option<u32>,
    second: Option<u32>,
    micro: Option<u32>,
}

impl ParsedFields {
    /// Records a field; `None` if its text is invalid, or contradicts earlier fields.
    fn note(&mut self, field: Field, text: &str) -> Option<()> {
        if let Field::Half { .. } = field {
            let afternoon = match text.to_ascii_uppercase().as_str() {
                "AM" => false,
                "PM" => true,
                _ => return None,
            };
            return agree(&mut self.afternoon, afternoon);
        }
        if !text.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let n: u32 = text.parse().ok()?;
        match field {
            Field::Year => agree(&mut self.year, n as i32),
            Field::Month => agree(&mut self.month, n),
            Field::Day => agree(&mut self.day, n),
            Field::DayOfYear => agree(&mut self.day_of_year, n),
            Field::Hour24 => agree(&mut self.hour, n),
            Field::Hour12 if (1..=12).contains(&n) => agree(&mut self.hour12, n % 12),
            Field::Minute => agree(&mut self.minute, n),
            Field::Second => agree(&mut self.second, n),
            Field::Milli if self.micro.is_some_and(|us| us / 1000 == n) => Some(()),
            Field::Milli => agree(&mut self.micro, n * 1000),
            Field::Micro if self.micro.is_none_or(|us| us % 1000 == 0 && us / 1000 == n / 1000) => {
                self.micro = Some(n);
                Some(())
            }
            Field::ShortYear => Some(()),
            _ => None,
        }
    }

    fn time(&self) -> Option<NaiveDateTime> {
        let date = match (self.month, self.day, self.day_of_year) {
            (Some(month), Some(day), _) => NaiveDate::from_ymd_opt(self.year?, month, day)?,
            (_, _, Some(day)) => NaiveDate::from_yo_opt(self.year?, day)?,
            _ => return None,
        };
        if self.day_of_year.is_some_and(|n| n != date.ordinal())
            || self.month.is_some_and(|n| n != date.month())
        {
            return None;
        }
        let hour = match (self.hour, self.hour12) {
            (Some(hour), _) => hour,
            (None, Some(hour)) => hour + 12 * u32::from(self.afternoon.unwrap_or(false)),
            (None, None) => 0,
        };
        if self.hour12.is_some_and(|n| n != hour % 12) || self.afternoon.is_some_and(|pm| pm != (hour >= 12))
        {
            return None;
        }
        date.and_hms_micro_opt(
            hour,
            self.minute.unwrap_or(0),
            self.second.unwrap_or(0),
            self.micro.unwrap_or(0),
        )
    }
}

fn agree<T: PartialEq>(slot: &mut Option<T>, n: T) -> Option<()> {
    match slot {
        Some(seen) => (*seen == n).then_some(()),
        None => {
            *slot = Some(n);
            Some(())
        }
    }
}

impl TryFrom<String> for TimeFormat {
    type Error = String;

    fn try_from(pattern: String) -> Result<Self, String> {
        TimeFormat::parse(&pattern)
    }
}

impl From<TimeFormat> for String {
    fn from(format: TimeFormat) -> String {
        format.pattern
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str) -> NaiveDateTime {
        NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f").unwrap()
    }

    fn show(pattern: &str, time: &str) -> String {
        let format = TimeFormat::parse(pattern).unwrap();
        let micros = at(time).and_utc().timestamp_micros();
        let shown = format.format(&Value::Timestamp(micros)).unwrap();
        assert_eq!(shown.len(), format.width());
        shown
    }

    proptest! {
        #[test]
        fn the_first_time_of_a_text_parts_the_times(
            us in FIRST_US..END_US,
            other in prop_oneof![(FIRST_US..END_US).prop_map(Ok), "[0-9]{0,5}[-0-9 a]{0,4}".prop_map(Err)],
            pattern in prop::sample::select(vec!["YYYY", "YYYY-MM", "YYYYDDD", "YYYYMMDDHH24", "\"a\"YYYY/MM/DD HH24:MI:SS.US"]),
        ) {
            let format = TimeFormat::parse(pattern).unwrap();
            assert!(format.sorts());
            let shown = |us: i64| format.format(&Value::Timestamp(us)).unwrap();
            let text = other.map_or_else(|text| text, shown);
            let is_at = |beyond| format.first_at(&text, beyond).is_some_and(|first| us >= first);
            prop_assert_eq!(is_at(false), shown(us) >= text);
            prop_assert_eq!(is_at(true), shown(us) > text);
        }
    }

    #[test]
    fn patterns_show_as_in_postgresql() {
        let time = "2017-02-03 16:05:06.007008";
        let cases = [
            ("DD-MM-YYYY HH24:MI:SS", "03-02-2017 16:05:06"),
            ("yyyymmdd", "20170203"),
            ("YY/DDD", "17/034"),
            ("HH12:MI AM", "04:05 PM"),
            ("hh:mi pm", "04:05 pm"),
            ("SS.MS", "06.007"),
            ("SS.US", "06.007008"),
            ("YYYY-MM-DD\"T\"HH24", "2017-02-03T16"),
            ("\"DD of MM: \"DD", "DD of MM: 03"),
        ];
        for (pattern, expected) in cases {
            assert_eq!(show(pattern, time), expected, "{pattern}");
        }
        assert_eq!(show("HH12 AM", "2017-01-01 00:00:00"), "12 AM");
        assert_eq!(show("HH12 AM", "2017-01-01 12:00:00"), "12 PM");
    }

    #[test]
    fn patterns_know_whether_they_sort_and_read_back() {
        // Pattern, sorts, decodable.
        let cases = [
            ("YYYY-MM-DD HH24:MI:SS", true, true),
            ("YYYYMMDDHH24MISSUS", true, true),
            ("YYYY-MM-DD HH24:MI:SS.MS", true, true),
            ("YYYY-DDD HH24", true, true),
            ("YYYY-MM", true, false),
            ("DD-MM-YYYY HH24:MI:SS", false, true),
            ("YYYY-MM-DD HH12 AM", false, true),
            ("YYYY-MM-DD HH12", false, false),
            ("YYYY-MM-DD MI", false, false),
            ("YYYY-DD", false, false),
            ("YY-MM-DD", false, false),
            ("MM-DD", false, false),
            ("HH24:MI", false, false),
        ];
        for (pattern, sorts, decodable) in cases {
            let format = TimeFormat::parse(pattern).unwrap();
            assert_eq!((format.sorts(), format.decodable()), (sorts, decodable), "{pattern}");
        }
    }

    #[test]
    fn times_are_rounded_to_what_is_shown_and_read_back() {
        let cases = [
            ("YYYY-MM-DD", "2017-02-03 00:00:00"),
            ("DDD YYYY HH24", "2017-02-03 16:00:00"),
            ("YYYY-MM-DD HH12:MI PM", "2017-02-03 16:05:00"),
            ("YYYYMMDD HH24MISS", "2017-02-03 16:05:06"),
            ("YYYYMMDD HH24MISS.MS", "2017-02-03 16:05:06.007"),
            ("US MS SS MI HH24 DD MM YYYY", "2017-02-03 16:05:06.007008"),
        ];
        let time = at("2017-02-03 16:05:06.007008");
        for (pattern, floor) in cases {
            let format = TimeFormat::parse(pattern).unwrap();
            assert_eq!(format.floor(time), at(floor), "{pattern}");
            assert_eq!(format.parse_time(&show(pattern, floor)), Some(at(floor)), "{pattern}");
        }
    }

    #[test]
    fn texts_that_are_no_time() {
        let read = |pattern: &str, text: &str| TimeFormat::parse(pattern).unwrap().parse_time(text);
        for text in ["", "2017-02-30", "2017-2-3", "2017-02-03 ", "+017-02-03", "2017-02-0é", "ééééé"] {
            assert_eq!(read("YYYY-MM-DD", text), None, "{text}");
        }
        assert_eq!(read("YYYY-MM-DD HH24", "2017-02-03 24"), None);
        assert_eq!(read("YYYY-MM-DD HH12 AM", "2017-02-03 13 AM"), None);
        assert_eq!(
            read("YYYY-MM-DD DDD", "2017-02-03 035"),
            None,
            "the day of the year contradicts the date"
        );
        assert_eq!(read("YYYY-MM", "2017-02"), None, "no whole date");
    }

    #[test]
    fn patterns_that_are_refused_name_what_is_known() {
        for pattern in ["Month", "YYYY-MON-DD", "DDTH", "YYY", "SSSS", "FMDD", "TZ", "\"open", "", "-/-", "Q"]
        {
            let error = TimeFormat::parse(pattern).unwrap_err();
            assert!(error.contains("HH24") || error.contains("quote"), "{error}");
        }
    }
}
