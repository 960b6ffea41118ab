//! Parts of JSON texts, as PostgreSQL's `->`, `->>` and `#>` find them.
//!
//! A part is a slice of the whole text: what is on the way to it is checked and passed over, and nothing is copied.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Deserializer;
use serde_json::value::RawValue;

use super::ValueRef;

/// A step from a JSON value to a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonStep<'a> {
    /// To a member of an object. Of several with this name, the last one.
    Member(&'a str),
    /// To an element of an array: from 0 on, or, if negative, from the end.
    Element(i64),
    /// To an element of an array, if the text is a number, or to a member of an object.
    Either(&'a str),
}

impl<'a> JsonStep<'a> {
    /// The step that an argument of `->` is, or of `#>`, if it is one `of_path`; `None` if it is of another type.
    pub fn new(step: ValueRef<'a>, of_path: bool) -> Option<JsonStep<'a>> {
        match step {
            ValueRef::Text(text) if of_path => Some(JsonStep::Either(text)),
            ValueRef::Text(name) => Some(JsonStep::Member(name)),
            ValueRef::Int(n) => Some(JsonStep::Element(n)),
            _ => None,
        }
    }

    /// The part of `json`; `None` if there is none. Errors: `json` is not JSON.
    pub fn part(self, json: &str) -> serde_json::Result<Option<&str>> {
        let is_object = match type_of(json) {
            "object" => true,
            "array" => false,
            _ => return serde_json::from_str::<IgnoredAny>(json).map(|_| None),
        };
        let mut of = Deserializer::from_str(json);
        let found = match (self, is_object) {
            (JsonStep::Member(name) | JsonStep::Either(name), true) => of.deserialize_map(Member(name))?,
            (JsonStep::Element(n), false) => of.deserialize_seq(Element(n))?,
            (JsonStep::Either(n), false) if let Ok(n) = n.parse() => of.deserialize_seq(Element(n))?,
            _ => of.deserialize_ignored_any(IgnoredAny).map(|_| None)?,
        };
        of.end()?;
        Ok(found.map(RawValue::get))
    }
}

/// A part as text: a string without its quotes, anything else as written; `None` if it is `null`.
pub fn json_text(part: &str) -> Option<Cow<'_, str>> {
    let part = part.trim();
    match part.strip_prefix('"').and_then(|part| part.strip_suffix('"')) {
        Some(plain) if !plain.contains('\\') => Some(Cow::Borrowed(plain)),
        // Half of a surrogate pair is no character.
        Some(_) => {
            let bytes = Deserializer::from_str(part).deserialize_bytes(Unescaped).unwrap_or_default();
            Some(Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()))
        }
        None if part == "null" => None,
        None => Some(Cow::Borrowed(part)),
    }
}

/// The part of `json` that the steps lead to; `None` if there is none, or a step is. Errors: `json` is not JSON.
pub fn json_part<'j, 's>(
    json: &'j str,
    steps: impl Iterator<Item = Option<JsonStep<'s>>>,
) -> serde_json::Result<Option<&'j str>> {
    let mut part = json;
    for step in steps {
        match step.map_or(Ok(None), |step| step.part(part))? {
            Some(found) => part = found,
            None => return Ok(None),
        }
    }
    Ok(Some(part))
}

/// The type of a JSON value, in PostgreSQL's words. Errors: `json` is not JSON.
pub fn json_type(json: &str) -> serde_json::Result<&'static str> {
    serde_json::from_str::<IgnoredAny>(json).map(|_| type_of(json))
}

fn type_of(json: &str) -> &'static str {
    match json.trim_start().as_bytes().first() {
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b't' | b'f') => "boolean",
        Some(b'n') => "null",
        _ => "number",
    }
}

/// Number of elements; `None` if it is no array. Errors: `json` is not JSON.
pub fn json_array_length(json: &str) -> serde_json::Result<Option<usize>> {
    match type_of(json) {
        "array" => serde_json::from_str::<Vec<IgnoredAny>>(json).map(|elements| Some(elements.len())),
        _ => serde_json::from_str::<IgnoredAny>(json).map(|_| None),
    }
}

/// The elements of an array; `None` if it is none. Errors: `json` is not JSON.
pub fn json_elements(json: &str) -> serde_json::Result<Option<Vec<&str>>> {
    match type_of(json) {
        "array" => {
            let elements: Vec<&RawValue> = serde_json::from_str(json)?;
            Ok(Some(elements.into_iter().map(RawValue::get).collect()))
        }
        _ => serde_json::from_str::<IgnoredAny>(json).map(|_| None),
    }
}

/// A member of an object: its name, and its value as it is written.
type JsonMember<'a> = (Cow<'a, str>, &'a str);

/// The members of an object, names without quotes, in their order; `None` if it is no object. Errors: `json` is not JSON.
pub fn json_members(json: &str) -> serde_json::Result<Option<Vec<JsonMember<'_>>>> {
    if type_of(json) != "object" {
        return serde_json::from_str::<IgnoredAny>(json).map(|_| None);
    }
    let mut of = Deserializer::from_str(json);
    let members = of.deserialize_map(Members)?;
    of.end()?;
    let members = members.into_iter();
    Ok(Some(members.map(|(name, value)| (json_text(name.get()).unwrap_or_default(), value.get())).collect()))
}

/// Does `json` contain `part`, as PostgreSQL's `@>` has it? An object contains one with some of its members, an array one
/// with some of its elements in any order, or, outermost, a mere value that is an element.
///
/// Errors: one of them is not JSON, or both are nested more than [`CONTAINED_DEPTH_MAX`] deep.
pub fn json_contains(json: &str, part: &str) -> serde_json::Result<bool> {
    match (type_of(json), type_of(part)) {
        // Both are checked as their members or elements are read.
        ("object", "object") | ("array", "array") => contains(json, part, CONTAINED_DEPTH_MAX),
        (of_json, of_part) => {
            json_type(json)?;
            json_type(part)?;
            if of_json == "array" && of_part != "object" {
                let elements = json_elements(json)?.unwrap_or_default();
                return Ok(elements.into_iter().any(|element| is_same_scalar(element, part)));
            }
            Ok(is_same_scalar(json, part))
        }
    }
}

/// Levels (count) to which two values are compared.
const CONTAINED_DEPTH_MAX: usize = 500;

fn contains(json: &str, part: &str, levels: usize) -> serde_json::Result<bool> {
    let Some(levels) = levels.checked_sub(1) else {
        return Err(serde::de::Error::custom("recursion limit exceeded"));
    };
    match (type_of(json), type_of(part)) {
        ("object", "object") => {
            // Of several members with a name, the last one counts.
            let members: HashMap<_, _> = json_members(json)?.into_iter().flatten().collect();
            let parts: HashMap<_, _> = json_members(part)?.into_iter().flatten().collect();
            for (name, part) in parts {
                let Some(member) = members.get(&name) else { return Ok(false) };
                if !contains(member, part, levels)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        ("array", "array") => {
            let elements = json_elements(json)?.unwrap_or_default();
            for part in json_elements(part)?.unwrap_or_default() {
                let mut is_there = false;
                for element in &elements {
                    is_there = is_there || contains(element, part, levels)?;
                }
                if !is_there {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        _ => Ok(is_same_scalar(json, part)),
    }
}

fn is_same_scalar(a: &str, b: &str) -> bool {
    match (type_of(a), type_of(b)) {
        ("number", "number") => is_same_number(a.trim(), b.trim()),
        ("string", "string") => json_text(a) == json_text(b),
        ("object" | "array", _) => false,
        (of_a, of_b) => of_a == of_b && a.trim() == b.trim(),
    }
}

/// 1, 1.0 and 10e-1 are the same.
fn is_same_number(a: &str, b: &str) -> bool {
    a == b || normal(a).is_some_and(|a| normal(b) == Some(a))
}

/// Whether a JSON number is negative, its digits without zeros around them, and the power of ten behind these; `None` if
/// that is beyond 63 bits.
fn normal(number: &str) -> Option<(bool, String, i64)> {
    let (negative, number) = number.strip_prefix('-').map_or((false, number), |number| (true, number));
    let (digits, power) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = [whole, fraction].concat();
    let kept = digits.trim_end_matches('0');
    if kept.is_empty() {
        return Some((false, String::new(), 0));
    }
    let power = power.parse::<i64>().ok()?.checked_add((digits.len() - kept.len()) as i64)?;
    Some((negative, kept.trim_start_matches('0').to_owned(), power.checked_sub(fraction.len() as i64)?))
}

/// Two values as one, as PostgreSQL's `||` of jsonb has it: the members of both objects, where those of `right` win, or
/// the elements of both arrays; anything else is an array of one element. Parts stay as they are written.
///
/// Errors: one of them is not JSON.
pub fn json_merged(left: &str, right: &str) -> serde_json::Result<String> {
    let types = [json_type(left)?, json_type(right)?];
    if types == ["object", "object"] {
        let mut members: Vec<(&RawValue, &RawValue)> = Vec::new();
        let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
        for object in [left, right] {
            for (name, value) in Deserializer::from_str(object).deserialize_map(Members)? {
                let unescaped = Deserializer::from_str(name.get()).deserialize_bytes(Unescaped)?;
                match places.entry(unescaped) {
                    Entry::Occupied(place) => members[*place.get()].1 = value,
                    Entry::Vacant(place) => {
                        place.insert(members.len());
                        members.push((name, value));
                    }
                }
            }
        }
        let members: Vec<String> = members.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        return Ok(format!("{{{}}}", members.join(", ")));
    }
    let mut elements: Vec<&str> = Vec::new();
    for (json, ty) in [left, right].into_iter().zip(types) {
        match ty {
            "array" => {
                elements.extend(serde_json::from_str::<Vec<&RawValue>>(json)?.into_iter().map(RawValue::get))
            }
            _ => elements.push(json.trim()),
        }
    }
    Ok(format!("[{}]", elements.join(", ")))
}

/// The steps of a path such as `{a,0,"b c"}`; `None` if it is written otherwise.
pub fn json_path(path: &str) -> Option<Vec<String>> {
    let mut rest = path.trim().strip_prefix('{')?.strip_suffix('}')?.trim_start();
    let mut steps = Vec::new();
    while !rest.is_empty() || !steps.is_empty() {
        let (step, more) = match rest.strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => bare(rest)?,
        };
        if step.is_empty() && !rest.starts_with('"') {
            return None;
        }
        steps.push(step);
        match more.trim_start().strip_prefix(',') {
            Some(more) => rest = more.trim_start(),
            None => return more.trim().is_empty().then_some(steps),
        }
    }
    Some(steps)
}

/// The steps of a path as SQLite writes it, such as `$.a."b c"[0]` or `$[#-1]`; `None` if it is written otherwise.
pub fn json_dollar_path(path: &str) -> Option<Vec<String>> {
    let mut rest = path.trim().strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let (step, more) = match (rest.strip_prefix(".\""), rest.strip_prefix('.'), rest.strip_prefix('[')) {
            (Some(quoted), ..) => quoted.split_once('"')?,
            (_, Some(name), _) => name.split_at(name.find(['.', '[']).unwrap_or(name.len())),
            (_, _, Some(element)) => {
                let (at, more) = element.split_once(']')?;
                let digits = at.strip_prefix("#-").unwrap_or(at);
                if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
                    return None;
                }
                (at.strip_prefix('#').unwrap_or(at), more)
            }
            _ => return None,
        };
        if step.is_empty() && !rest.starts_with(".\"") {
            return None;
        }
        steps.push(step.to_owned());
        rest = more;
    }
    Some(steps)
}

/// A step up to a comma, without blanks around it, and what follows it. A backslash takes the next character as it is.
fn bare(rest: &str) -> Option<(String, &str)> {
    let mut step = String::new();
    // Blanks at the end do not count, unless they are behind a backslash.
    let mut len = 0;
    let mut chars = rest.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            ',' => {
                step.truncate(len);
                return Some((step, &rest[at..]));
            }
            '{' | '}' | '"' => return None,
            '\\' => step.push(chars.next()?.1),
            c => step.push(c),
        }
        if c == '\\' || !c.is_whitespace() {
            len = step.len();
        }
    }
    step.truncate(len);
    Some((step, ""))
}

/// A step up to its closing quote, and what follows it. A backslash takes the next character as it is.
fn unquoted(quoted: &str) -> Option<(String, &str)> {
    let mut step = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((step, &quoted[at + 1..])),
            '\\' => step.push(chars.next()?.1),
            c => step.push(c),
        }
    }
    None
}

/// Finds the last member of this name.
struct Member<'a>(&'a str);

impl<'de> Visitor<'de> for Member<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<Self::Value, M::Error> {
        let mut found = None;
        while let Some(is_it) = members.next_key_seed(IsName(self.0))? {
            match is_it {
                true => found = Some(members.next_value()?),
                false => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }
}

/// All members of an object, names as they are written.
struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(&'de RawValue, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<Self::Value, M::Error> {
        let mut all = Vec::new();
        while let Some(member) = members.next_entry()? {
            all.push(member);
        }
        Ok(all)
    }
}

/// Compares a member's name, unescaped.
struct IsName<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for IsName<'_> {
    type Value = bool;

    fn deserialize<D: serde::Deserializer<'de>>(self, name: D) -> Result<bool, D::Error> {
        // As bytes, for half of a surrogate pair is no character.
        name.deserialize_bytes(self)
    }
}

impl Visitor<'_> for IsName<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_bytes<E>(self, name: &[u8]) -> Result<bool, E> {
        Ok(name == self.0.as_bytes())
    }
}

/// Finds an element by its position.
struct Element(i64);

impl<'de> Visitor<'de> for Element {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut elements: S) -> Result<Self::Value, S::Error> {
        let Ok(n) = usize::try_from(self.0) else {
            let mut all: Vec<&RawValue> = Vec::new();
            while let Some(element) = elements.next_element()? {
                all.push(element);
            }
            let back = usize::try_from(self.0.unsigned_abs()).unwrap_or(usize::MAX);
            return Ok(all.len().checked_sub(back).map(|at| all[at]));
        };
        for _ in 0..n {
            if elements.next_element::<IgnoredAny>()?.is_none() {
                return Ok(None);
            }
        }
        let found = elements.next_element()?;
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(found)
    }
}

/// The bytes of a string.
struct Unescaped;

impl Visitor<'_> for Unescaped {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::JsonStep::{Either, Element, Member};
    use super::*;

    #[test]
    fn parts_are_found_as_in_postgres() {
        let json = " {\"a\": {\"b\" : [10, \"x\", null, {}]}, \"a b\": 1.50, \"n\\u00e4\": true, \"a\":[ [1] , 2 ]} ";
        let cases = [
            (Member("a"), Some("[ [1] , 2 ]")),
            (Member("a b"), Some("1.50")),
            (Member("nä"), Some("true")),
            (Member("b"), None),
            (Element(0), None),
            (Either("a b"), Some("1.50")),
            (Either("0"), None),
        ];
        for (step, part) in cases {
            assert_eq!(step.part(json).unwrap(), part, "{step:?}");
        }
        assert_eq!(Member("a").part("{\"\\ud83d\": 1, \"a\": 2}").unwrap(), Some("2"));
        let json = "[10, \"x\", null, {\"1\": 2}]";
        let cases = [
            (Element(0), Some("10")),
            (Element(3), Some("{\"1\": 2}")),
            (Element(4), None),
            (Element(-1), Some("{\"1\": 2}")),
            (Element(-4), Some("10")),
            (Element(-5), None),
            (Element(i64::MIN), None),
            (Either("1"), Some("\"x\"")),
            (Either("-2"), Some("null")),
            (Either("x"), None),
            (Member("1"), None),
        ];
        for (step, part) in cases {
            assert_eq!(step.part(json).unwrap(), part, "{step:?}");
        }
        for scalar in ["1", "\"a\"", "null", " true "] {
            assert_eq!(Member("a").part(scalar).unwrap(), None);
            assert_eq!(Element(0).part(scalar).unwrap(), None);
        }
        for broken in ["", "{", "{\"a\":1} x", "[1,]", "{\"a\":tru}", "nul"] {
            assert!(Member("b").part(broken).is_err(), "{broken}");
            assert!(Element(0).part(broken).is_err(), "{broken}");
            assert!(Either("7").part(broken).is_err(), "{broken}");
            assert!(json_array_length(broken).is_err() && json_type(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn texts_lose_their_quotes() {
        let cases = [
            ("\"Oslo\"", Some("Oslo")),
            ("\"a\\n\\\"b\\\" \\u00e4\\ud83d\\ude00\"", Some("a\n\"b\" ä😀")),
            ("\"\"", Some("")),
            ("null", None),
            (" 1.50 ", Some("1.50")),
            ("[1, null]", Some("[1, null]")),
        ];
        for (part, text) in cases {
            assert_eq!(json_text(part).as_deref(), text, "{part}");
        }
        assert!(json_text("\"half \\ud83d\"").is_some_and(|text| text.starts_with("half \u{fffd}")));
    }

    #[test]
    fn types_and_lengths() {
        let of = |json: &str| (json_type(json).unwrap(), json_array_length(json).unwrap());
        assert_eq!(of(" [1, [2, 3], null]"), ("array", Some(3)));
        assert_eq!(of("[]"), ("array", Some(0)));
        assert_eq!(of("{\"a\":[1]}"), ("object", None));
        assert_eq!(
            [of("\"a\""), of("-1"), of("false"), of("null")].map(|(ty, _)| ty),
            ["string", "number", "boolean", "null"]
        );
    }

    #[test]
    fn containment_is_as_in_postgres() {
        let cases = [
            ("{\"a\": 1, \"b\": [1, 2, {\"c\": null}]}", "{\"b\": [{\"c\": null}, 1.0]}", true),
            ("{\"a\": {\"b\": 1}}", "{\"b\": 1}", false),
            ("{\"a\": {\"b\": 1, \"c\": 2}}", "{\"a\": {}}", true),
            ("[1, 2, [1, 3]]", "[[1, 3]]", true),
            ("[1, 2, [1, 3]]", "[1, 3]", false),
            ("[1, 2, 2]", "[2, 1, 1]", true),
            ("[\"foo\", \"bar\"]", "\"bar\"", true),
            ("\"bar\"", "[\"bar\"]", false),
            ("[[\"bar\"]]", "\"bar\"", false),
            ("{\"tags\": [\"x\"]}", "{\"tags\": \"x\"}", false),
            ("10e-1", "1", true),
            ("12345678901234567890", "12345678901234567891", false),
            ("1.50000000000000000", "15e-1", true),
            ("[100000000000000000000]", "[1e20]", true),
            ("1e400", "2e400", false),
            ("1e-400", "0", false),
            ("-0.0", "0e7", true),
            ("0.010", "1E-2", true),
            ("-1", "1", false),
            ("1e99999999999999999999", "1e99999999999999999999", true),
            ("null", "null", true),
            ("{}", "{}", true),
            ("[]", "[]", true),
            ("[]", "{}", false),
        ];
        for (json, part, contained) in cases {
            assert_eq!(json_contains(json, part).unwrap(), contained, "{json} @> {part}");
        }
        assert!(json_contains("{", "1").is_err() && json_contains("1", "").is_err());
    }

    #[test]
    fn paths_are_arrays_of_texts() {
        let cases: [(&str, Option<&[&str]>); 14] = [
            ("{a,b}", Some(&["a", "b"])),
            (" { a b , 0 } ", Some(&["a b", "0"])),
            ("{\"a,b\",\"c\\\"\\\\\" , d}", Some(&["a,b", "c\"\\", "d"])),
            ("{}", Some(&[])),
            ("{\"\"}", Some(&[""])),
            ("a", None),
            ("{a,}", None),
            ("{,a}", None),
            ("{\"a}", None),
            ("{\"a\"b}", None),
            ("$.a.b", None),
            ("{a\\,b,\\ c\\ }", Some(&["a,b", " c "])),
            ("{{a},b}", None),
            ("{a}}", None),
        ];
        for (path, steps) in cases {
            let found = json_path(path);
            assert_eq!(found, steps.map(|steps| steps.iter().map(|s| (*s).to_owned()).collect()), "{path}");
        }
    }

    #[test]
    fn paths_from_the_root_are_sqlites() {
        let cases: [(&str, Option<&[&str]>); 10] = [
            ("$", Some(&[])),
            ("$.a.b[0]", Some(&["a", "b", "0"])),
            ("$[#-1].\"b.c\"", Some(&["-1", "b.c"])),
            ("$.a b", Some(&["a b"])),
            ("a", None),
            ("$a", None),
            ("$.", None),
            ("$[x]", None),
            ("$[", None),
            ("$[#]", None),
        ];
        for (path, steps) in cases {
            let found = json_dollar_path(path);
            assert_eq!(found, steps.map(|steps| steps.iter().map(|s| (*s).to_owned()).collect()), "{path}");
        }
    }

    fn json() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-c\"\\\\\n ä]{0,4}".prop_map(Value::from),
        ];
        scalar.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::hash_map("[ab\"\\\\]{0,2}", inner, 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn parts_are_those_of_the_parsed_value(json in json(), name in "[ab\"\\\\]{0,2}", n in -6..6i64, pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&json) } else { serde_json::to_string(&json) }.unwrap();
            let read = |part: Option<&str>| part.map(|part| serde_json::from_str::<Value>(part).unwrap());
            let element = |json: &Value, n: i64| {
                let elements = json.as_array()?;
                let at = if n < 0 { elements.len() as i64 + n } else { n };
                elements.get(usize::try_from(at).ok()?).cloned()
            };
            let member = Member(&name).part(&text).unwrap();
            prop_assert_eq!(read(member), json.as_object().and_then(|members| members.get(&name)).cloned());
            prop_assert_eq!(read(Element(n).part(&text).unwrap()), element(&json, n));
            prop_assert_eq!(read(Either(&n.to_string()).part(&text).unwrap()), element(&json, n));
            let expected = match &json {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                _ => Some(text.clone()),
            };
            prop_assert_eq!(json_text(&text).map(Cow::into_owned), expected);
        }

        #[test]
        fn a_value_contains_itself_and_its_parts(json in json(), more in json()) {
            let contains = |a: &Value, b: &Value| json_contains(&a.to_string(), &b.to_string()).unwrap();
            prop_assert!(contains(&json, &json));
            let object = serde_json::json!({ "a": json, "b": more });
            let (part, elements) = (serde_json::json!({ "a": json }), serde_json::json!([more, json]));
            let is_contained = contains(&object, &part) && contains(&elements, &serde_json::json!([json]));
            prop_assert!(is_contained);
        }

        #[test]
        fn nothing_panics(json in "[\\[\\]{}\":,\\\\a1un ]{0,12}", name in "[a1]{0,1}", n in -2..3i64) {
            for step in [Member(&name), Element(n), Either(&name)] {
                let _ = step.part(&json);
            }
            let _ = (json_text(&json), json_type(&json), json_array_length(&json), json_path(&json));
            let _ = json_dollar_path(&json.replace('{', "$"));
        }
    }

    #[test]
    fn a_deep_value_is_looked_into_as_far_as_the_other_one_goes() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(!json_contains(&nested(10_000), r#"{"a": 1}"#).unwrap());
        assert!(json_contains(&nested(10_000), "[[[]]]").unwrap());
        assert!(!json_contains("[[1]]", &nested(10_000)).unwrap());
        assert!(json_contains(&nested(10_000), &nested(10_000)).is_err());
    }

    #[test]
    fn merged_as_in_postgres() {
        for (left, right, merged) in [
            (r#"{"a":1, "b" : [1] }"#, r#"{ "b": {"c": 2.0}}"#, r#"{"a": 1, "b": {"c": 2.0}}"#),
            (r#"{"a":1,"a":2}"#, "{}", r#"{"a": 2}"#),
            (r#"{"\ud800":1}"#, r#"{"\uD800":2}"#, r#"{"\ud800": 2}"#),
            ("[1, [2]]", " [ ] ", "[1, [2]]"),
            ("{}", "[1]", "[{}, 1]"),
            (" null", r#""x""#, r#"[null, "x"]"#),
        ] {
            assert_eq!(super::json_merged(left, right).unwrap(), merged, "{left} || {right}");
        }
        for (left, right) in [("{}", "x"), ("[1", "2"), ("{} 1", "{}"), ("{}", "")] {
            assert!(super::json_merged(left, right).is_err(), "{left} || {right}");
        }
    }
}
