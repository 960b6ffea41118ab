//! Reads texts by patterns of times: numbers and names in any case, perhaps shorter than they are shown.

use chrono::{NaiveDate, NaiveTime, Weekday};

use super::{DAYS, Field, MONTHS, Style};

/// What follows a text of a pattern; a blank stands for any number of them.
pub(super) fn after_text<'a>(mut rest: &'a str, text: &str) -> Result<&'a str, String> {
    for c in text.chars() {
        rest = match c.is_whitespace() {
            true => rest.trim_start(),
            false => rest.strip_prefix(c).ok_or_else(|| match rest {
                "" => format!("it ends where '{c}' is expected"),
                rest => format!("'{rest}' does not begin with '{c}'"),
            })?,
        };
    }
    Ok(rest)
}

/// What follows a name, behind its padding.
fn behind_name(after: &str, short: bool, style: Style) -> &str {
    if short || style.is_bare { after } else { after.trim_start() }
}

/// What has been read.
#[derive(Default)]
pub(super) struct Seen {
    year: Option<i32>,
    iso_year: Option<i32>,
    month: Option<u32>,
    iso_week: Option<u32>,
    iso_day: Option<u32>,
    day: Option<u32>,
    day_of_year: Option<u32>,
    hour24: Option<u32>,
    hour12: Option<u32>,
    afternoon: bool,
    minute: u32,
    second: u32,
    micro: u32,
    second_of_day: Option<u32>,
}

impl Seen {
    /// Reads a field that `rest` begins with, and gives what follows.
    pub(super) fn read<'a>(&mut self, field: Field, style: Style, rest: &'a str) -> Result<&'a str, String> {
        let named = |names: &[&str], short: bool| {
            let begins = |name: &&str| {
                let name = if short { &name[..3] } else { name };
                rest.get(..name.len()).filter(|head| head.eq_ignore_ascii_case(name)).map(str::len)
            };
            let found = names.iter().enumerate().find_map(|(at, name)| Some((at as u32, begins(name)?)));
            found.map(|(at, len)| (at, &rest[len..]))
        };
        match field {
            Field::MonthName { short } => {
                let (at, after) = named(&MONTHS, short)
                    .ok_or_else(|| format!("'{rest}' begins with no name of a month"))?;
                self.month = Some(at + 1);
                return Ok(behind_name(after, short, style));
            }
            Field::DayName { short } => {
                let found = named(&DAYS, short).map(|(_, after)| behind_name(after, short, style));
                return found.ok_or_else(|| format!("'{rest}' begins with no name of a day"));
            }
            Field::Half { dots } => {
                let halves = if dots { ["A.M.", "P.M."] } else { ["AM", "PM"] };
                let begins =
                    |half: &&str| rest.get(..half.len()).is_some_and(|head| head.eq_ignore_ascii_case(half));
                let at = halves.iter().position(begins);
                let at = at
                    .ok_or_else(|| format!("'{rest}' begins with neither {} nor {}", halves[0], halves[1]))?;
                self.afternoon = at == 1;
                return Ok(&rest[halves[at].len()..]);
            }
            _ => {}
        }
        let len = rest.bytes().take(field.width()).take_while(u8::is_ascii_digit).count();
        let (digits, mut after) = rest.split_at(len);
        let n: u32 = digits.parse().map_err(|_| match rest {
            "" => "it ends where a number is expected".to_owned(),
            rest => format!("'{rest}' does not begin with a number"),
        })?;
        if style.ordinal.is_some() {
            let suffix = after.get(..2).filter(|suffix| suffix.bytes().all(|c| c.is_ascii_alphabetic()));
            after = &after[suffix.map_or(0, str::len)..];
        }
        self.note(field, n, len)?;
        Ok(after)
    }

    /// Takes a number of so many digits.
    fn note(&mut self, field: Field, n: u32, digits: usize) -> Result<(), String> {
        let fraction = |of: usize| n * 10u32.pow((of - digits) as u32);
        match field {
            Field::Year(width) => self.year = Some(whole_year(n, width)),
            Field::IsoYear(width) => self.iso_year = Some(whole_year(n, width)),
            Field::Month => self.month = Some(n),
            Field::IsoWeek => self.iso_week = Some(n),
            Field::IsoDay => self.iso_day = Some(n),
            Field::Day => self.day = Some(n),
            Field::DayOfYear => self.day_of_year = Some(n),
            Field::Hour24 => self.hour24 = Some(n),
            Field::Hour12 if !(1..=12).contains(&n) => return Err(format!("{n} is no hour of 1 to 12")),
            Field::Hour12 => self.hour12 = Some(n % 12),
            Field::Minute => self.minute = n,
            Field::Second => self.second = n,
            Field::SecondOfDay => self.second_of_day = Some(n),
            // Millionths that are there already tell the thousandths, too.
            Field::Milli if self.micro / 1_000 == fraction(3) => {}
            Field::Milli => self.micro = fraction(3) * 1_000,
            Field::Micro => self.micro = fraction(6),
            _ => {
                return Err(
                    "a quarter, a century, and weeks and days of a week, but for IW and ID, tell no day"
                        .into(),
                );
            }
        }
        Ok(())
    }

    pub(super) fn date(&self) -> Result<NaiveDate, String> {
        if let Some(year) = self.iso_year {
            let (week, day) = (self.iso_week.unwrap_or(1), self.iso_day.unwrap_or(1));
            let weekday = u8::try_from(day).ok().and_then(|day| Weekday::try_from(day.checked_sub(1)?).ok());
            let date = weekday.and_then(|weekday| NaiveDate::from_isoywd_opt(year, week, weekday));
            return date.ok_or_else(|| format!("there is no day {day} of week {week} of {year}"));
        }
        let year = self.year.ok_or("it has no year")?;
        if let Some(day) = self.day_of_year {
            return NaiveDate::from_yo_opt(year, day)
                .ok_or_else(|| format!("there is no day {day} of {year}"));
        }
        let (month, day) = (self.month.unwrap_or(1), self.day.unwrap_or(1));
        NaiveDate::from_ymd_opt(year, month, day)
            .ok_or_else(|| format!("there is no day {year:04}-{month:02}-{day:02}"))
    }

    pub(super) fn time_of_day(&self) -> Result<NaiveTime, String> {
        let (hour, minute, second) = match (self.second_of_day, self.hour24, self.hour12) {
            (Some(n), ..) => (n / 3_600, n / 60 % 60, n % 60),
            (None, Some(hour), _) => (hour, self.minute, self.second),
            (None, None, Some(hour)) => (hour + 12 * u32::from(self.afternoon), self.minute, self.second),
            (None, None, None) => (0, self.minute, self.second),
        };
        NaiveTime::from_hms_micro_opt(hour, minute, second, self.micro)
            .ok_or_else(|| format!("there is no time {hour:02}:{minute:02}:{second:02}"))
    }
}

/// The year with these last digits that is nearest to 2020, as in PostgreSQL.
fn whole_year(n: u32, digits: usize) -> i32 {
    let n = n as i32;
    match (digits, n) {
        (4.., _) => n,
        (_, ..70) => n + 2_000,
        (_, ..100) => n + 1_900,
        (_, ..520) => n + 2_000,
        _ => n + 1_000,
    }
}
