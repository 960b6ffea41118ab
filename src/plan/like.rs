//! `LIKE` patterns, parsed once and matched without allocation or backtracking.
//!
//! A pattern is cut at its `%` into *runs* of literal text and `_`. The first run is anchored at the start of
//! the text, the last one at its end, and each one between is matched at its leftmost place, which is always
//! as good as any other.

use memchr::memmem::Finder;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, sqlstate};

/// A parsed `LIKE` pattern: `%` stands for any text, `_` for any one character.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "PatternText", into = "PatternText")]
pub struct LikePattern {
    written: PatternText,
    /// Never empty: one more than the number of `%` (consecutive `%` count once).
    runs: Vec<PatternRun>,
}

/// SQL's default escape character.
pub const PLAIN_ESCAPE: char = '\\';

/// The pattern as written in SQL, which is what is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PatternText {
    text: String,
    escape: Option<char>,
}

/// The part of a pattern between two `%`.
#[derive(Clone, Debug, Default)]
struct PatternRun {
    pieces: Vec<PatternPiece>,
    /// Searches for the run, if it is one literal between two `%`.
    finder: Option<Finder<'static>>,
}

impl PartialEq for PatternRun {
    fn eq(&self, other: &PatternRun) -> bool {
        self.pieces == other.pieces
    }
}

impl Eq for PatternRun {}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternPiece {
    Literal(String),
    AnyChar,
}

impl LikePattern {
    /// Parses `text`; `escape` takes the meaning from the character after it (SQL's default is `\`).
    ///
    /// Errors: invalid, if nothing follows the last escape.
    pub fn new(text: impl Into<String>, escape: Option<char>) -> Result<Self> {
        let written = PatternText { text: text.into(), escape };
        let mut runs = vec![PatternRun::default()];
        let mut chars = written.text.chars();
        while let Some(c) = chars.next() {
            let run = runs.len() - 1;
            if Some(c) == escape {
                let plain = chars.next().ok_or_else(|| dangling_escape(&written.text))?;
                runs[run].push(plain);
            } else if c == '%' {
                // The empty run between two `%` matches anywhere: drop it, but keep a leading one.
                if run == 0 || !runs[run].pieces.is_empty() {
                    runs.push(PatternRun::default());
                }
            } else if c == '_' {
                runs[run].pieces.push(PatternPiece::AnyChar);
            } else {
                runs[run].push(c);
            }
        }
        if let [_, middle @ .., _] = &mut runs[..] {
            middle.iter_mut().for_each(PatternRun::prepare);
        }
        Ok(LikePattern { written, runs })
    }

    /// The pattern that matches `text` literally; an open side matches anything before or after it.
    pub fn plain(text: &str, open_start: bool, open_end: bool) -> String {
        let mut pattern = String::with_capacity(text.len() + 2);
        pattern.extend(open_start.then_some('%'));
        for c in text.chars() {
            pattern.extend(matches!(c, '%' | '_' | PLAIN_ESCAPE).then_some(PLAIN_ESCAPE));
            pattern.push(c);
        }
        pattern.extend((open_end && pattern != "%").then_some('%'));
        pattern
    }

    /// The same pattern for texts of which some characters are `known`, by their places (from 0 on): each `_` in such a
    /// place, as far as it is told by what the pattern begins with, stands for that character.
    #[must_use]
    pub fn knowing(&self, known: impl Fn(usize) -> Option<char>) -> LikePattern {
        let (mut run, mut at) = (PatternRun::default(), 0);
        for piece in &self.runs[0].pieces {
            match piece {
                PatternPiece::Literal(text) => {
                    text.chars().for_each(|c| run.push(c));
                    at += text.chars().count();
                }
                PatternPiece::AnyChar => {
                    match known(at) {
                        Some(c) => run.push(c),
                        None => run.pieces.push(PatternPiece::AnyChar),
                    }
                    at += 1;
                }
            }
        }
        let runs = std::iter::once(run).chain(self.runs[1..].iter().cloned()).collect();
        LikePattern { written: self.written.clone(), runs }
    }

    /// The pattern as written.
    pub fn text(&self) -> &str {
        &self.written.text
    }

    /// The escape character.
    pub fn escape(&self) -> Option<char> {
        self.written.escape
    }

    /// Whether `text` as a whole matches. `case_insensitive`: characters compare by their lower case.
    pub fn matches(&self, text: &str, case_insensitive: bool) -> bool {
        let how = if case_insensitive { Case::Ignored } else { Case::Exact };
        let Some(mut text) = self.runs[0].strip_start(text, how) else { return false };
        let [_, middle @ .., last] = &self.runs[..] else { return text.is_empty() };
        for run in middle {
            match run.skip_past(text, how) {
                Some(after) => text = after,
                None => return false,
            }
        }
        last.ends(text, how)
    }

    /// The only text that matches, if there are no wildcards.
    pub fn as_exact(&self) -> Option<&str> {
        match &self.runs[..] {
            [only] => only.as_literal(),
            _ => None,
        }
    }

    /// Text that every match starts with; empty if there is none.
    pub fn prefix(&self) -> &str {
        match self.runs[0].pieces.first() {
            Some(PatternPiece::Literal(text)) => text,
            _ => "",
        }
    }

    /// Is the pattern `prefix%`, so that [`LikePattern::prefix`] decides?
    pub fn is_prefix(&self) -> bool {
        matches!(&self.runs[..], [first, last] if first.as_literal().is_some() && last.pieces.is_empty())
    }

    /// Text that every match ends with, unless the pattern has no wildcard; empty if there is none.
    pub fn suffix(&self) -> &str {
        match &self.runs[self.runs.len() - 1].pieces[..] {
            [PatternPiece::Literal(_)] if self.runs.len() == 1 => "",
            [.., PatternPiece::Literal(text)] => text,
            _ => "",
        }
    }

    /// Is the pattern `%suffix`, so that [`LikePattern::suffix`] decides?
    pub fn is_suffix(&self) -> bool {
        matches!(&self.runs[..], [first, last] if first.pieces.is_empty() && last.as_literal().is_some())
    }
}

/// The error for a pattern whose last character is its escape.
pub fn dangling_escape(text: &str) -> Error {
    Error::invalid(format!("the pattern '{text}' ends with its escape character"))
        .why("an escape takes the special meaning from the character after it")
        .hint("double it to mean the character itself")
        .state(sqlstate::ESCAPE_SEQUENCE)
}

impl TryFrom<PatternText> for LikePattern {
    type Error = Error;

    fn try_from(written: PatternText) -> Result<Self> {
        LikePattern::new(written.text, written.escape)
    }
}

impl From<LikePattern> for PatternText {
    fn from(pattern: LikePattern) -> Self {
        pattern.written
    }
}

/// How characters compare.
#[derive(Clone, Copy, PartialEq)]
enum Case {
    Exact,
    Ignored,
}

impl PatternRun {
    fn push(&mut self, c: char) {
        match self.pieces.last_mut() {
            Some(PatternPiece::Literal(text)) => text.push(c),
            _ => self.pieces.push(PatternPiece::Literal(c.into())),
        }
    }

    /// Builds the finder.
    fn prepare(&mut self) {
        if let [PatternPiece::Literal(literal)] = &self.pieces[..] {
            self.finder = Some(Finder::new(literal).into_owned());
        }
    }

    /// The run as plain text, if it is that; it may be empty.
    fn as_literal(&self) -> Option<&str> {
        match &self.pieces[..] {
            [] => Some(""),
            [PatternPiece::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// The rest of `text` after the run at its start, if it is there.
    fn strip_start<'t>(&self, mut text: &'t str, case: Case) -> Option<&'t str> {
        for piece in &self.pieces {
            text = match piece {
                PatternPiece::Literal(literal) => strip_start(text, literal, case)?,
                PatternPiece::AnyChar => {
                    let mut chars = text.chars();
                    chars.next()?;
                    chars.as_str()
                }
            };
        }
        Some(text)
    }

    /// Does `text` end with the run?
    fn ends(&self, mut text: &str, case: Case) -> bool {
        for piece in self.pieces.iter().rev() {
            let before = match piece {
                PatternPiece::Literal(literal) => strip_end(text, literal, case),
                PatternPiece::AnyChar => {
                    let mut chars = text.chars();
                    chars.next_back().map(|_| chars.as_str())
                }
            };
            match before {
                Some(before) => text = before,
                None => return false,
            }
        }
        true
    }

    /// The rest of `text` after the leftmost match of the run.
    fn skip_past<'t>(&self, mut text: &'t str, case: Case) -> Option<&'t str> {
        if let Some(finder) = &self.finder {
            let (bytes, literal) = (text.as_bytes(), finder.needle());
            let at = match case {
                Case::Exact => Some(finder.find(bytes)),
                // A match of bytes starts at a character boundary, as UTF-8 is self-synchronising.
                Case::Ignored if is_by_bytes(literal, text) => Some(find_ascii(bytes, literal)),
                Case::Ignored => None,
            };
            if let Some(at) = at {
                return text.get(at? + literal.len()..);
            }
        }
        loop {
            if let Some(after) = self.strip_start(text, case) {
                return Some(after);
            }
            let mut chars = text.chars();
            chars.next()?;
            text = chars.as_str();
        }
    }
}

fn strip_start<'t>(text: &'t str, literal: &str, case: Case) -> Option<&'t str> {
    if case == Case::Exact {
        return text.strip_prefix(literal);
    }
    let mut chars = text.chars();
    literal.chars().all(|l| chars.next().is_some_and(|c| same_letter(l, c))).then_some(chars.as_str())
}

fn strip_end<'t>(text: &'t str, literal: &str, case: Case) -> Option<&'t str> {
    if case == Case::Exact {
        return text.strip_suffix(literal);
    }
    let mut chars = text.chars();
    literal
        .chars()
        .rev()
        .all(|l| chars.next_back().is_some_and(|c| same_letter(l, c)))
        .then_some(chars.as_str())
}

/// The position of `literal`, which is not empty, in `text`, ignoring the case of ASCII letters.
fn find_ascii(text: &[u8], literal: &[u8]) -> Option<usize> {
    let last = text.len().checked_sub(literal.len())?;
    let first = literal.first()?;
    let starts = memchr::memchr2_iter(first.to_ascii_lowercase(), first.to_ascii_uppercase(), &text[..=last]);
    starts.into_iter().find(|at| text[*at..*at + literal.len()].eq_ignore_ascii_case(literal))
}

/// Can `literal` be found in `text` bytewise, ignoring the case of ASCII letters? The Kelvin sign is the only
/// other character whose lower case is ASCII (`k`).
fn is_by_bytes(literal: &[u8], text: &str) -> bool {
    literal.is_ascii() && (!literal.iter().any(|b| matches!(b, b'k' | b'K')) || text.is_ascii())
}

fn same_letter(a: char, b: char) -> bool {
    if a.is_ascii() && b.is_ascii() {
        return a.eq_ignore_ascii_case(&b);
    }
    a == b || a.to_lowercase().eq(b.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn like(pattern: &str) -> LikePattern {
        LikePattern::new(pattern, Some('\\')).unwrap()
    }

    #[test]
    fn wildcards() {
        let cases = [
            ("", "", true),
            ("", "a", false),
            ("%", "", true),
            ("_", "é", true),
            ("_", "", false),
            ("a%", "abc", true),
            ("%c", "abc", true),
            ("a%a", "a", false),
            ("a%bc%bcd", "abcbcd", true),
            ("%aab%", "aaab", true),
            ("%a_c%e", "xabcabcde", true),
            (r"10\%", "10%", true),
            (r"10\%", "100", false),
            (r"\_%", "ab", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(like(pattern).matches(text, false), expected, "{text:?} LIKE {pattern:?}");
        }
        assert!(like("ÄB%z").matches("äbxyZ", true));
    }

    #[test]
    fn an_escape_must_escape_something() {
        assert!(LikePattern::new("50!", Some('!')).is_err());
        assert!(LikePattern::new("50\\", None).unwrap().matches("50\\", false));
    }

    #[test]
    fn what_every_match_starts_and_ends_with() {
        let shapes = |p: &str| {
            let p = like(p);
            (p.prefix().to_owned(), p.is_prefix(), p.suffix().to_owned(), p.is_suffix())
        };
        assert_eq!(shapes("ab%%"), ("ab".into(), true, "".into(), false));
        assert_eq!(shapes("%ab"), ("".into(), false, "ab".into(), true));
        assert_eq!(shapes("a_b%c_d"), ("a".into(), false, "d".into(), false));
        assert_eq!(shapes("a_b"), ("a".into(), false, "b".into(), false));
        assert_eq!(shapes("ab"), ("ab".into(), false, "".into(), false));
        assert_eq!(like(r"a\%").as_exact(), Some("a%"));
    }

    #[test]
    fn letters_are_the_same_by_their_lower_case() {
        // `is_by_bytes` relies on this.
        let to_ascii = |c: &char| c.to_lowercase().all(|lower| lower.is_ascii());
        assert_eq!(('\u{80}'..=char::MAX).filter(to_ascii).collect::<String>(), "\u{212a}");
        let cases = [
            ("%ok%", "a bo\u{212a}e", true),
            ("%OK%", "é boke", true),
            ("%\u{212a}%", "boke", true),
            ("%s%", "\u{17f}", false),
            ("%i%", "\u{130}", false),
            ("%İ%", "aİb", true),
            ("%fire_ox%", "Mozilla FIREfox", true),
            ("%firefox%", "Mozilla é FireFox/1", true),
            ("%firefox", "Mozilla é FireFo", false),
            ("%é%", "CAFÉ", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(like(pattern).matches(text, true), expected, "{text:?} ILIKE {pattern:?}");
        }
    }

    /// A reference implementation, straight from the standard.
    fn slow(pattern: &[char], text: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['%', rest @ ..] => (0..=text.len()).any(|i| slow(rest, &text[i..])),
            [p, rest @ ..] => !text.is_empty() && (*p == '_' || *p == text[0]) && slow(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(pattern in "[ab%_]{0,7}", text in "[ab]{0,7}") {
            let chars = |s: &str| s.chars().collect::<Vec<_>>();
            let expected = slow(&chars(&pattern), &chars(&text));
            prop_assert_eq!(like(&pattern).matches(&text, false), expected);
            prop_assert_eq!(like(&pattern).matches(&text.to_uppercase(), true), expected);
        }

        #[test]
        fn case_is_ignored_as_lower_case_has_it(
            pattern in "[akKſé%_\u{212a}]{0,6}", text in "[aAkKsſéÉ\u{212a}]{0,7}",
        ) {
            let lower = |s: &str| s.to_lowercase().chars().collect::<Vec<_>>();
            let expected = slow(&lower(&pattern), &lower(&text));
            prop_assert_eq!(like(&pattern).matches(&text, true), expected);
        }

        #[test]
        fn serde_gives_it_back(pattern in "[a%_é]{0,5}") {
            let json = serde_json::to_string(&like(&pattern)).unwrap();
            prop_assert_eq!(serde_json::from_str::<LikePattern>(&json).unwrap(), like(&pattern));
        }
    }
}
