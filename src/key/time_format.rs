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
//! `DD-MM-YYYY HH24:MI:SS` shows 2017-01-01 09:00 as `01-01-2017 09:00:00`. [`TimePattern`] parses, shows and reads them;
//! here is what follows for keys: whether texts sort, to which unit they round, and which time comes first.

use chrono::{Datelike, Duration, NaiveDate, NaiveDateTime, Timelike};
use serde::{Deserialize, Serialize};

use crate::value::{TimeField as Field, TimePattern, datetime_of};

/// A parsed pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TimeFormat {
    pattern: String,
    parsed: TimePattern,
    /// The unit to which the format rounds down; `None` if a shown time is ambiguous.
    precision: Option<Precision>,
    sorts: bool,
    /// Within one value of this unit, texts sort: it is what the first fields show, in any order.
    sorted_unit: Option<Precision>,
    /// Texts with all digits are read back without a doubt.
    is_plain: bool,
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

impl TimeFormat {
    /// Parses a pattern. Errors: what is not understood, with a list of patterns.
    pub fn parse(pattern: &str) -> Result<TimeFormat, String> {
        if pattern.contains('\0') {
            return Err("a format may not hold a NUL character".into());
        }
        let parsed = TimePattern::parse_fixed(pattern)?;
        let fields: Vec<Field> = parsed.fields().collect();
        let sorted_unit = sorted_unit(&fields);
        let (precision, sorts) = (precision(&fields), sorts(&fields));
        let is_plain = !pattern.contains(char::is_whitespace) && are_plain(&fields);
        Ok(TimeFormat { pattern: pattern.to_owned(), parsed, precision, sorts, sorted_unit, is_plain })
    }

    /// The pattern as written.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Length in bytes of every text in this format, for years 0 to 9999.
    pub fn width(&self) -> usize {
        self.parsed.width()
    }

    /// Do texts sort as their times do? They do if they show the year first, then each next finer unit.
    pub fn sorts(&self) -> bool {
        self.sorts
    }

    /// Do the texts of all times from one to another sort as these do? Those of `DD-MM-YYYY HH24:MI` do within a day.
    pub fn sorts_within(&self, first: NaiveDateTime, last: NaiveDateTime) -> bool {
        self.sorts || self.sorted_unit.is_some_and(|unit| floor(first, unit) == floor(last, unit))
    }

    /// Does [`TimeFormat::parse_time`] give back every time that [`TimeFormat::floor`] does not change? It
    /// does if the format shows the whole date, and the time of day without a gap.
    pub fn decodable(&self) -> bool {
        self.precision.is_some_and(|p| p >= Precision::Day)
    }

    /// Appends a time as text. Years outside of 0 to 9999 are wider than [`TimeFormat::width`].
    pub fn put(&self, time: NaiveDateTime, out: &mut Vec<u8>) {
        self.parsed.put(time, out);
    }

    /// The first time with this text; `None` if there is none, or the format is not decodable.
    pub fn parse_time(&self, text: &str) -> Option<NaiveDateTime> {
        let time = self.decodable().then(|| self.parsed.time_of(text).ok())??;
        // Each number has all of its digits.
        if self.is_plain && text.len() == self.width() && !text.contains(|c: char| c.is_whitespace()) {
            return Some(time);
        }
        let mut shown = Vec::with_capacity(text.len());
        self.put(time, &mut shown);
        (shown == text.as_bytes()).then_some(time)
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
        self.precision.map_or(time, |precision| floor(time, precision))
    }
}

/// Rounds `time` down.
fn floor(time: NaiveDateTime, precision: Precision) -> NaiveDateTime {
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

/// The fields are numbers, each of which tells another part of a time.
fn are_plain(fields: &[Field]) -> bool {
    use Field::{Day, Hour24, Micro, Milli, Minute, Month, Second, Year};
    let known =
        |field: &Field| matches!(field, Year(4) | Month | Day | Hour24 | Minute | Second | Milli | Micro);
    let is_once = |(at, field): (usize, &Field)| !fields[..at].contains(field);
    fields.iter().all(known)
        && fields.iter().enumerate().all(is_once)
        && !(fields.contains(&Milli) && fields.contains(&Micro))
}

/// The finest unit down to which `fields` show everything.
fn precision(fields: &[Field]) -> Option<Precision> {
    let has = |f: Field| fields.contains(&f);
    let half = fields.iter().any(|f| matches!(f, Field::Half { .. }));
    let day = has(Field::DayOfYear) || (has(Field::Month) && has(Field::Day));
    let shown = [
        (Precision::Year, has(Field::Year(4))),
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

/// The unit that the first fields show, if finer ones follow in order without a gap.
fn sorted_unit(fields: &[Field]) -> Option<Precision> {
    let order = [
        (Precision::Year, Field::Month),
        (Precision::Month, Field::Day),
        (Precision::Day, Field::Hour24),
        (Precision::Hour, Field::Minute),
        (Precision::Minute, Field::Second),
        (Precision::Second, Field::Micro),
    ];
    (1..fields.len()).find_map(|at| {
        let (first, rest) = fields.split_at(at);
        let unit = precision(first)?;
        let from = order.iter().position(|(coarser, _)| *coarser == unit)?;
        let follows = |(field, (_, next)): (&Field, &(Precision, Field))| {
            field == next || (*field == Field::Milli && *next == Field::Micro)
        };
        let fits = rest.len() <= order.len() - from && rest.iter().zip(&order[from..]).all(follows);
        fits.then_some(unit)
    })
}

/// Do the fields go from the year to finer units without a gap?
fn sorts(fields: &[Field]) -> bool {
    let by_month =
        [Field::Year(4), Field::Month, Field::Day, Field::Hour24, Field::Minute, Field::Second, Field::Micro];
    let by_day =
        [Field::Year(4), Field::DayOfYear, Field::Hour24, Field::Minute, Field::Second, Field::Micro];
    let matches = |order: &[Field]| {
        fields.len() <= order.len()
            && fields.iter().zip(order).all(|(f, o)| f == o || (*f == Field::Milli && *o == Field::Micro))
    };
    matches(&by_month) || matches(&by_day)
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
        let shown = shown(&format, at(time));
        assert_eq!(shown.len(), format.width());
        shown
    }

    fn shown(format: &TimeFormat, time: NaiveDateTime) -> String {
        let mut out = Vec::new();
        format.put(time, &mut out);
        String::from_utf8(out).unwrap()
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
            let shown = |us: i64| shown(&format, datetime_of(us).unwrap());
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
        for text in ["2017 203", "2017 0203", "201702 3", "20170230", "2017020é", "2017\u{2003}3"] {
            assert_eq!(read("YYYYMMDD", text), None, "{text}");
        }
        assert_eq!(read("YYYYMMDD", "20170203"), Some(at("2017-02-03 00:00:00")));
        assert_eq!(read("YYYYMMDDMSUS", "20170203123456789"), None, "thousandths and millionths differ");
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
