//! Patterns of times as PostgreSQL's `to_char` shows and `to_date` reads them, with names and without fixed widths.
//!
//! | pattern | is | read |
//! |---|---|---|
//! | `YYYY`, `YYY`, `YY`, `Y` | year, or its last digits: of 1970 to 2069 | yes |
//! | `IYYY`, `IYY`, `IY`, `I`, `IW`, `ID` | year, week, and day 1 to 7 from Monday on, of ISO 8601 | yes |
//! | `MM`, `Month`, `Mon` | month; its name, padded to 9; three letters of it | yes |
//! | `DD`, `DDD` | day of the month, of the year | yes |
//! | `Day`, `Dy` | name of the day of the week, padded to 9; three letters of it | passed over |
//! | `Q`, `WW`, `W`, `D`, `CC` | quarter, week of the year and of the month, day 1 to 7 from Sunday on, century | no |
//! | `HH24`, `HH12` or `HH`, `AM` or `PM`, `A.M.` | hour, half of the day | yes |
//! | `MI`, `SS`, `SSSS` or `SSSSS` | minute, second, second of the day | yes |
//! | `MS` or `FF3`, `US` or `FF6` | thousandths and millionths of the second | yes |
//! | `FM` before one of them | without padding | |
//! | `TH`, `th` behind a number | `1ST`, `2nd` | yes |
//! | `"text"`, punctuation, blanks | themselves | yes |
//!
//! [`TimePattern::parse_fixed`] takes those alone whose texts have one width, for rowkeys (`key/time_format.rs`).
//!
//! Names are written as the pattern is, `MONTH`, `Month` or `month`, and read in any case. Numbers may have fewer digits
//! than their pattern, where something else follows.

mod read;

use chrono::{Datelike, NaiveDateTime, Timelike};

use self::read::{Seen, after_text};
use super::{ValueRef, date_of, datetime_of, timestamp_in_range};

/// A parsed pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimePattern(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Field(Field, Style),
    Text(String),
}

/// A part of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table above tells them")]
pub enum Field {
    /// The last digits of a year (count).
    Year(usize),
    IsoYear(usize),
    Quarter,
    Month,
    MonthName {
        short: bool,
    },
    Week,
    IsoWeek,
    WeekOfMonth,
    DayOfYear,
    Day,
    DayOfWeek,
    IsoDay,
    DayName {
        short: bool,
    },
    Century,
    Hour24,
    Hour12,
    Half {
        dots: bool,
    },
    Minute,
    SecondOfDay,
    Second,
    Milli,
    Micro,
}

/// How a field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Style {
    case: Case,
    /// `FM`: without padding.
    is_bare: bool,
    /// `TH` or `th`.
    ordinal: Option<Case>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Upper,
    Capital,
    Lower,
}

/// Which patterns are taken.
#[derive(Clone, Copy)]
enum Width {
    Any,
    /// Texts of the pattern have one width, for years 0 to 9999.
    Fixed,
}

/// Patterns; where one is a prefix of another, the longer one comes first.
const PATTERNS: [(&str, Field); 37] = [
    ("YYYY", Field::Year(4)),
    ("YYY", Field::Year(3)),
    ("YY", Field::Year(2)),
    ("Y", Field::Year(1)),
    ("IYYY", Field::IsoYear(4)),
    ("IYY", Field::IsoYear(3)),
    ("IY", Field::IsoYear(2)),
    ("IW", Field::IsoWeek),
    ("ID", Field::IsoDay),
    ("I", Field::IsoYear(1)),
    ("Q", Field::Quarter),
    ("MONTH", Field::MonthName { short: false }),
    ("MON", Field::MonthName { short: true }),
    ("MM", Field::Month),
    ("MI", Field::Minute),
    ("MS", Field::Milli),
    ("WW", Field::Week),
    ("W", Field::WeekOfMonth),
    ("DAY", Field::DayName { short: false }),
    ("DY", Field::DayName { short: true }),
    ("DDD", Field::DayOfYear),
    ("DD", Field::Day),
    ("D", Field::DayOfWeek),
    ("CC", Field::Century),
    ("HH24", Field::Hour24),
    ("HH12", Field::Hour12),
    ("HH", Field::Hour12),
    ("AM", Field::Half { dots: false }),
    ("PM", Field::Half { dots: false }),
    ("A.M.", Field::Half { dots: true }),
    ("P.M.", Field::Half { dots: true }),
    ("SSSSS", Field::SecondOfDay),
    ("SSSS", Field::SecondOfDay),
    ("SS", Field::Second),
    ("US", Field::Micro),
    ("FF3", Field::Milli),
    ("FF6", Field::Micro),
];

/// Patterns of PostgreSQL that begin with others and mean something else.
const UNKNOWN: [&str; 2] = ["IDDD", "Y,YYY"];

const KNOWN: &str = "YYYY, YY, IYYY, Q, MM, Month, Mon, WW, IW, W, DDD, DD, Day, Dy, D, ID, CC, HH24, HH12, HH, AM, PM, \
                     MI, SS, MS, US, FF3, FF6, SSSS, SSSSS, FM before and TH behind them, punctuation and \"quoted text\"";

const KNOWN_FIXED: &str =
    "YYYY, YY, MM, DD, DDD, HH24, HH12, HH, AM, PM, MI, SS, MS, US, punctuation and \"quoted text\"";

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// From Monday on.
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Width of the names of months and days (characters): that of the longest.
const NAME_WIDTH: usize = 9;

impl TimePattern {
    /// Parses a pattern. Errors: what is not understood, with a list of patterns.
    pub fn parse(pattern: &str) -> Result<TimePattern, String> {
        TimePattern::of(pattern, Width::Any)
    }

    /// Like [`TimePattern::parse`], of fields that are always as wide.
    pub fn parse_fixed(pattern: &str) -> Result<TimePattern, String> {
        TimePattern::of(pattern, Width::Fixed)
    }

    fn of(pattern: &str, width: Width) -> Result<TimePattern, String> {
        let (mut pieces, mut text, mut rest) = (Vec::new(), String::new(), pattern);
        while let Some(first) = rest.chars().next() {
            if let Some(quoted) = rest.strip_prefix('"') {
                let (inside, after) = quoted.split_once('"').ok_or("a quoted text has no closing '\"'")?;
                text.push_str(inside);
                rest = after;
            } else if let Some((field, style, after)) = field_at(rest, width) {
                if !text.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut text)));
                }
                pieces.push(Piece::Field(field, style));
                rest = after;
            } else if first.is_alphanumeric() {
                let before = &pattern[..pattern.len() - rest.len()];
                let from = before.trim_end_matches(char::is_alphanumeric).len();
                let word: String = pattern[from..].chars().take_while(|c| c.is_alphanumeric()).collect();
                return Err(match width {
                    Width::Any => format!("'{word}' is no pattern; there are {KNOWN}"),
                    Width::Fixed => format!("'{word}' is not a pattern of fixed width; use {KNOWN_FIXED}"),
                });
            } else {
                text.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
        if pieces.is_empty() {
            let known = match width {
                Width::Any => format!("there are {KNOWN}"),
                Width::Fixed => format!("it may hold {KNOWN_FIXED}"),
            };
            return Err(format!("'{pattern}' shows no part of a time; {known}"));
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        Ok(TimePattern(pieces))
    }

    /// Its fields, in order.
    pub fn fields(&self) -> impl Iterator<Item = Field> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Field(field, _) => Some(*field),
            Piece::Text(_) => None,
        })
    }

    /// Length in bytes of every text of a pattern of fixed width, for years 0 to 9999.
    pub fn width(&self) -> usize {
        let width = |piece: &Piece| match piece {
            Piece::Field(field, _) => field.width(),
            Piece::Text(text) => text.len(),
        };
        self.0.iter().map(width).sum()
    }

    /// Appends a DATE, TIMESTAMP or TIMESTAMPTZ (in UTC) to `out`; `None` for other values and outside of the calendar.
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

    /// Appends a time.
    pub fn put(&self, time: NaiveDateTime, out: &mut Vec<u8>) {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Field(field, style) => put_field(*field, *style, time, out),
            }
        }
    }

    /// Reads a time of the years 1 to 9999, in microseconds since 1970. Units that the pattern does not have are the first
    /// ones of the year, month and day.
    ///
    /// Errors: why the text is none.
    pub fn read(&self, text: &str) -> Result<i64, String> {
        let us = self.time_of(text)?.and_utc().timestamp_micros();
        if timestamp_in_range(us) { Ok(us) } else { Err("years are 1 to 9999".into()) }
    }

    /// Like [`TimePattern::read`], of any year.
    pub fn time_of(&self, text: &str) -> Result<NaiveDateTime, String> {
        let (mut seen, mut rest) = (Seen::default(), text);
        for piece in &self.0 {
            rest = match piece {
                Piece::Text(text) => after_text(rest, text)?,
                Piece::Field(field, style) => seen.read(*field, *style, rest.trim_start())?,
            };
        }
        if !rest.trim().is_empty() {
            return Err(format!("'{rest}' is left over"));
        }
        Ok(seen.date()?.and_time(seen.time_of_day()?))
    }
}

/// The field that a pattern begins with, if it is as wide as asked, and what follows it.
fn field_at(rest: &str, width: Width) -> Option<(Field, Style, &str)> {
    let begins =
        |rest: &str, name: &str| rest.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name));
    let is_bare = begins(rest, "FM");
    let rest = if is_bare { &rest[2..] } else { rest };
    if UNKNOWN.iter().any(|name| begins(rest, name)) {
        return None;
    }
    let (name, field) = *PATTERNS.iter().find(|(name, _)| begins(rest, name))?;
    let (written, after) = rest.split_at(name.len());
    let is_upper = |at: usize| written.as_bytes().get(at).is_some_and(u8::is_ascii_uppercase);
    let case = match (is_upper(0), is_upper(1)) {
        (true, true) => Case::Upper,
        (true, false) => Case::Capital,
        (false, _) => Case::Lower,
    };
    let ordinal = match after.get(..2) {
        _ if !field.is_number() => None,
        Some("TH") => Some(Case::Upper),
        Some("th") => Some(Case::Lower),
        _ => None,
    };
    let after = if ordinal.is_some() { &after[2..] } else { after };
    let style = Style { case, is_bare, ordinal };
    let is_taken = match width {
        Width::Any => true,
        Width::Fixed => field.is_fixed() && !is_bare && ordinal.is_none(),
    };
    is_taken.then_some((field, style, after))
}

impl Field {
    fn is_number(self) -> bool {
        !matches!(self, Field::MonthName { .. } | Field::DayName { .. } | Field::Half { .. })
    }

    /// Is it in every text of the same width, and of some use in a rowkey?
    fn is_fixed(self) -> bool {
        use Field::*;
        matches!(
            self,
            Year(2 | 4)
                | Month
                | Day
                | DayOfYear
                | Hour24
                | Hour12
                | Half { dots: false }
                | Minute
                | Second
                | Milli
                | Micro
        )
    }

    /// Most digits that it has (count).
    fn width(self) -> usize {
        match self {
            Field::Year(digits) | Field::IsoYear(digits) => digits,
            Field::Quarter | Field::WeekOfMonth | Field::DayOfWeek | Field::IsoDay => 1,
            Field::DayOfYear | Field::Milli => 3,
            Field::SecondOfDay => 5,
            Field::Micro => 6,
            _ => 2,
        }
    }

    fn number(self, t: NaiveDateTime) -> i64 {
        let last = |year: i32, digits: usize| match digits {
            4.. => i64::from(year),
            digits => i64::from(year).rem_euclid(10i64.pow(digits as u32)),
        };
        let from_one = |n: u32, many: u32| i64::from((n - 1) / many + 1);
        match self {
            Field::Year(digits) => last(t.year(), digits),
            Field::IsoYear(digits) => last(t.iso_week().year(), digits),
            Field::Quarter => from_one(t.month(), 3),
            Field::Month => t.month().into(),
            Field::Week => from_one(t.ordinal(), 7),
            Field::IsoWeek => t.iso_week().week().into(),
            Field::WeekOfMonth => from_one(t.day(), 7),
            Field::DayOfYear => t.ordinal().into(),
            Field::Day => t.day().into(),
            Field::DayOfWeek => t.weekday().number_from_sunday().into(),
            Field::IsoDay => t.weekday().number_from_monday().into(),
            Field::Century => (i64::from(t.year()) - 1).div_euclid(100) + 1,
            Field::Hour24 => t.hour().into(),
            Field::Hour12 => t.hour12().1.into(),
            Field::Minute => t.minute().into(),
            Field::SecondOfDay => t.num_seconds_from_midnight().into(),
            Field::Second => t.second().into(),
            Field::Milli => i64::from(t.nanosecond() / 1_000_000 % 1_000),
            Field::Micro => i64::from(t.nanosecond() / 1_000 % 1_000_000),
            Field::MonthName { .. } | Field::DayName { .. } | Field::Half { .. } => 0,
        }
    }
}

fn put_field(field: Field, style: Style, time: NaiveDateTime, out: &mut Vec<u8>) {
    match field {
        Field::MonthName { short } => put_name(MONTHS[time.month0() as usize], short, style, out),
        Field::DayName { short } => {
            put_name(DAYS[time.weekday().num_days_from_monday() as usize], short, style, out);
        }
        Field::Half { dots } => {
            let half = match (time.hour() < 12, dots) {
                (true, false) => "AM",
                (false, false) => "PM",
                (true, true) => "A.M.",
                (false, true) => "P.M.",
            };
            // As in PostgreSQL, either all letters are small or none.
            let case = if style.case == Case::Lower { Case::Lower } else { Case::Upper };
            out.extend_from_slice(cased(half, case).as_bytes());
        }
        number => {
            let n = number.number(time);
            // Thousandths and millionths are digits behind a point; the second of the day is never padded.
            let width = match number {
                Field::Milli | Field::Micro => number.width(),
                Field::SecondOfDay => 0,
                _ if style.is_bare => 0,
                _ => number.width(),
            };
            put_number(n, width, out);
            if let Some(case) = style.ordinal {
                out.extend_from_slice(cased(ordinal(n), case).as_bytes());
            }
        }
    }
}

fn put_name(name: &str, short: bool, style: Style, out: &mut Vec<u8>) {
    let shown = cased(if short { &name[..3] } else { name }, style.case);
    let width = if short || style.is_bare { 0 } else { NAME_WIDTH };
    out.extend_from_slice(format!("{shown:width$}").as_bytes());
}

/// Appends a number, padded with zeros.
fn put_number(n: i64, width: usize, out: &mut Vec<u8>) {
    if width > 0 && (0..10i64.pow(width as u32)).contains(&n) {
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

fn cased(text: &str, case: Case) -> String {
    match case {
        Case::Upper => text.to_ascii_uppercase(),
        Case::Capital => text.to_owned(),
        Case::Lower => text.to_ascii_lowercase(),
    }
}

fn ordinal(n: i64) -> &'static str {
    match (n % 100, n % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> i64 {
        NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f").unwrap().and_utc().timestamp_micros()
    }

    fn show(pattern: &str, us: i64) -> String {
        let mut out = String::new();
        TimePattern::parse(pattern).unwrap().show(ValueRef::Timestamp(us), &mut out).unwrap();
        out
    }

    fn read(pattern: &str, text: &str) -> Result<i64, String> {
        TimePattern::parse(pattern).unwrap().read(text)
    }

    #[test]
    fn times_are_shown_as_in_postgres() {
        let time = at("2021-01-03 16:05:06.007008");
        let cases = [
            ("Mon MON mon", "Jan JAN jan"),
            ("[Month] [MONTH] [FMmonth]", "[January  ] [JANUARY  ] [january]"),
            ("Dy DY dy FMDay day.", "Sun SUN sun Sunday sunday   ."),
            ("Q WW IW W IYYY IY", "1 01 53 1 2020 20"),
            ("D ID DDD FMDDD", "1 7 003 3"),
            ("FMDD.FMMM.YY", "3.1.21"),
            ("FMDDth \"of\" FMMonth", "3rd of January"),
            ("DDTH", "03RD"),
            ("CC YYY Y", "21 021 1"),
            ("FMHH12 a.m. HH24 AM pm", "4 p.m. 16 PM pm"),
            ("SSSS MS US FMMS", "57906 007 007008 007"),
        ];
        for (pattern, shown) in cases {
            assert_eq!(show(pattern, time), shown, "{pattern}");
        }
        assert_eq!(show("FMDDth", at("2021-01-12 00:00:00")), "12th");
        assert_eq!(show("CC", at("2000-01-12 00:00:00")), "20");
    }

    #[test]
    fn times_are_read_as_in_postgres() {
        let cases = [
            ("DD/MM/YYYY HH24:MI:SS", "3/2/2017 09:05:6", "2017-02-03 09:05:06"),
            ("YYYYMMDD", "20170203", "2017-02-03 00:00:00"),
            ("DD Mon YY", "03 FEB 69", "2069-02-03 00:00:00"),
            ("Day, DD Month YYYY", "Friday   , 03 February  2017", "2017-02-03 00:00:00"),
            ("FMMonth FMDDth, YYYY", "February 3rd, 2017", "2017-02-03 00:00:00"),
            ("YYYY-MM-DD HH12:MI PM", "2017-02-03 12:05 am", "2017-02-03 00:05:00"),
            ("IYYY-\"W\"IW-ID", "2020-W53-7", "2021-01-03 00:00:00"),
            ("YYYY DDD SSSS", "2017 34 57906", "2017-02-03 16:05:06"),
            ("YYYY-MM-DD\"T\"HH24:MI:SS.MS", "2017-02-03T16:05:06.5", "2017-02-03 16:05:06.5"),
            ("YYYY", "2017", "2017-01-01 00:00:00"),
        ];
        for (pattern, text, time) in cases {
            assert_eq!(read(pattern, text), Ok(at(time)), "{pattern}");
        }
        for (pattern, text) in [
            ("YYYY-MM-DD", "2017-02-30"),
            ("YYYY-MM-DD", "2017-02"),
            ("YYYY-MM-DD", "2017-02-03 04"),
            ("YYYY-MM-DD", "2017/02/03"),
            ("DD Mon YYYY", "03 Fex 2017"),
            ("YYYY HH24", "2017 24"),
            ("HH24:MI", "10:00"),
            ("YYYY Q", "2017 1"),
            ("YYYY", "é"),
            ("YYYY", "0000"),
            ("YYYY HH12 AM", "2017 13 AM"),
        ] {
            assert!(read(pattern, text).is_err(), "{pattern} {text}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_named() {
        for pattern in ["", "--", "YYYY-XX", "\"open", "DDTHH24", "Month of"] {
            assert!(TimePattern::parse(pattern).is_err(), "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(
            us in -62_135_596_800_000_000i64..253_402_300_800_000_000,
            pattern in prop::sample::select(vec![
                "YYYY-MM-DD HH24:MI:SS.US",
                "FMMonth FMDDth YYYY FMHH12:FMMI:FMSS.US am",
                "Day DD Mon YYYY SSSS US",
                "IYYYIWID HH24MISSUS",
                "DDDYYYY HH24MISSUS",
            ]),
        ) {
            prop_assert_eq!(read(pattern, &show(pattern, us)), Ok(us));
        }

        #[test]
        fn nothing_panics(pattern in "[YMDIHSAQWFTondayth24\" .:é-]{0,12}", text in "[0-9a-zé :.]{0,12}") {
            if let Ok(pattern) = TimePattern::parse(&pattern) {
                let mut out = String::new();
                let _ = (pattern.read(&text), pattern.show(ValueRef::Timestamp(0), &mut out));
            }
        }
    }
}
