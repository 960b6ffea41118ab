//! Readable keys.

use std::fmt::Write as _;

use super::hex;
use super::layout::KeyLayout;
use super::part::{Ending, KeyPart};
use super::transform::Shape;
use crate::value::ColumnType;

/// Bytes of the widest binary part.
const PART_BYTES_MAX: usize = 16;

impl KeyLayout {
    /// A readable key or key prefix: as text if [`KeyLayout::is_text`], otherwise part by part, such as
    /// `7/'abc'/2017-01-01 09:00:00`. Cannot fail: bytes that cannot be decoded, or follow the layout, are
    /// shown as text or hex.
    pub fn show(&self, key: &[u8]) -> String {
        match std::str::from_utf8(key) {
            Ok(text) if self.is_text() => visible(text),
            _ => self.show_parts(key),
        }
    }

    /// The same, in quotes if it is text.
    pub fn show_quoted(&self, key: &[u8]) -> String {
        match std::str::from_utf8(key) {
            Ok(text) if self.is_text() && is_readable(text) => quoted(text),
            _ => self.show_parts(key),
        }
    }

    /// The last key before `end`, readable, where `end` splits a part and would not be readable itself: the
    /// end of a prefix, such as that of all times up to one. Also where `end` is the next value after a number or time
    /// that is shorter to write: after 32.0 comes 32.00000000000001.
    pub fn show_before(&self, end: &[u8]) -> Option<String> {
        if self.is_text() {
            return None;
        }
        let whole = self.whole_parts(end);
        if whole.len == end.len() {
            return self.text_before(end).or_else(|| self.shorter_before(end, &whole));
        }
        if let Some(text) = self.text_passed(end, &whole) {
            return Some(text);
        }
        let mut last = end.to_vec();
        let byte = last.last_mut()?;
        *byte = byte.checked_sub(1)?;
        for _ in 0..=PART_BYTES_MAX {
            let Whole { shown, len, .. } = self.whole_parts(&last);
            if len == last.len() {
                return Some(shown);
            }
            last.push(0xFF);
        }
        None
    }

    /// The beginning that the last keys before `end` share, if it is of a descending text: in that order, a text follows
    /// all others that begin with it. `whole`: the parts of `end`.
    fn text_passed(&self, end: &[u8], whole: &Whole) -> Option<String> {
        let part = self.parts().get(whole.count).filter(|part| part.is_descending())?;
        let mut text = part.begun(&end[whole.len..])?;
        let last = text.last_mut()?;
        *last = last.checked_add(1)?;
        let mut shown = whole.shown.clone();
        push(&mut shown, &part.show_content(&text));
        Some(shown)
    }

    /// The key before `end`, if that is the next after a text at the end of the key.
    fn text_before(&self, end: &[u8]) -> Option<String> {
        let last = self.parts().last().filter(|last| last.ending == Ending::Rest && last.is_text());
        let before = self.whole_parts(end.strip_suffix(b"\0").filter(|_| last.is_some())?);
        (before.count == self.parts().len()).then_some(before.shown)
    }

    /// The key before `end` whose last part is shorter to write, if that part has fractions. `whole`: the parts of `end`.
    fn shorter_before(&self, end: &[u8], whole: &Whole) -> Option<String> {
        let part = self.parts().get(whole.count.checked_sub(1)?)?;
        let has_fraction = |shown: &str| shown.rsplit('/').next().is_some_and(|last| last.contains('.'));
        let is_first = end.iter().all(|byte| *byte == 0);
        if is_first || !matches!(part.form.shape(), Shape::Binary(_)) || !has_fraction(&whole.shown) {
            return None;
        }
        let mut last = end.to_vec();
        for byte in last.iter_mut().rev() {
            *byte = byte.wrapping_sub(1);
            if *byte != u8::MAX {
                break;
            }
        }
        let before = self.whole_parts(&last);
        // 9.99 of a DECIMAL(8, 2) is not the neater end of what is below 10.00.
        let is_shorter = before.len == end.len() && before.shown.len() + 2 < whole.shown.len();
        (is_shorter && before.count == whole.count).then_some(before.shown)
    }

    fn show_parts(&self, bytes: &[u8]) -> String {
        let Whole { shown: mut out, count, len } = self.whole_parts(bytes);
        if len == bytes.len() {
            return out;
        }
        let (rest, part) = (&bytes[len..], self.parts().get(count));
        let rest = match part.map(|part| (part, part.form.shape())) {
            Some((_, Shape::Binary(_))) => show_hex(rest),
            // Skip the byte that says that a text is not NULL.
            Some((part, _)) => part.show_content(part.begun(rest).as_deref().unwrap_or(rest)),
            None => show_rest(rest),
        };
        push(&mut out, &rest);
        out
    }

    /// [`KeyLayout::show_quoted`] of the bound of a range, which may split a part: then as the first key behind it. From
    /// 0.0 on, doubles begin with the byte 80.
    pub fn show_bound(&self, bound: &[u8]) -> String {
        let Whole { count, len, .. } = self.whole_parts(bound);
        let is_split = |part: &KeyPart| {
            len < bound.len() && matches!(part.form.shape(), Shape::Binary(_)) && part.facts().decodable
        };
        let first = self.parts().get(count).filter(|part| is_split(part)).and_then(|_| {
            let mut first = bound.to_vec();
            (0..PART_BYTES_MAX).find_map(|_| {
                first.push(0);
                let whole = self.whole_parts(&first);
                (whole.len == first.len()).then_some(whole.shown)
            })
        });
        first.unwrap_or_else(|| self.show_quoted(bound))
    }

    /// The complete parts at the start of `bytes`.
    fn whole_parts(&self, bytes: &[u8]) -> Whole {
        let mut whole = Whole { shown: String::new(), count: 0, len: 0 };
        for part in self.parts() {
            // An empty last text is a part, but at the end of the bytes there is none.
            let at = whole.len;
            let Some(end) = part.end_in(bytes, at).filter(|_| at < bytes.len()) else { break };
            let Some(shown) = show_part(part, &bytes[at..end]) else { break };
            push(&mut whole.shown, &shown);
            whole.count += 1;
            whole.len = end;
        }
        whole
    }
}

/// The whole parts at the start of a key.
struct Whole {
    shown: String,
    /// Complete parts (count).
    count: usize,
    /// Length in bytes.
    len: usize,
}

fn push(out: &mut String, shown: &str) {
    if !out.is_empty() {
        out.push('/');
    }
    out.push_str(shown);
}

/// A readable part: text in quotes, binary decoded if possible.
pub(super) fn show_part(part: &KeyPart, bytes: &[u8]) -> Option<String> {
    let mut straight = bytes.to_vec();
    part.turn(&mut straight);
    let Some(content) = part.content(&straight)? else { return Some("NULL".into()) };
    if matches!(part.form.shape(), Shape::Binary(_)) {
        let mut shown = None;
        let decoded = part.get(bytes, &mut |value| {
            shown = Some(value.to_string());
        });
        return if part.facts().decodable { decoded.and(shown) } else { Some(show_hex(&content)) };
    }
    Some(match std::str::from_utf8(&content) {
        Ok(text) if !part.is_bytes() && is_readable(text) => quoted(text),
        _ => show_hex(&content),
    })
}

impl KeyPart {
    fn is_bytes(&self) -> bool {
        self.form.ty() == Some(ColumnType::Varbinary)
    }

    /// The beginning of a text or of bytes.
    fn show_content(&self, bytes: &[u8]) -> String {
        if self.is_bytes() { show_hex(bytes) } else { show_rest(bytes) }
    }
}

fn show_rest(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(char::is_control) => quoted(text),
        _ => show_hex(bytes),
    }
}

fn show_hex(bytes: &[u8]) -> String {
    format!("x'{}'", hex(bytes))
}

fn quoted(text: &str) -> String {
    format!("'{}'", visible(&text.replace('\'', "''")))
}

/// Has it no characters that mean nothing in a text? NUL is NULL, in a text part.
fn is_readable(text: &str) -> bool {
    !text.chars().any(|c| c.is_ascii_control() && !matches!(c, '\0' | '\t' | '\n' | '\r'))
}

/// Escapes control characters.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\0' => out.push_str("\\0"),
            c if c.is_ascii_control() && !matches!(c, '\t' | '\n' | '\r') => {
                out.push_str(&format!("\\x{:02x}", u32::from(c)));
            }
            // Writing to a String does not fail.
            c if c.is_control() => drop(write!(out, "{}", c.escape_default())),
            c => out.push(c),
        }
    }
    out
}
