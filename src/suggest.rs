//! "Did you mean": finds the candidate nearest to a misspelt word.

use crate::error::Error;

/// Adds the nearest of `names` to an error as a hint, or else the hint `otherwise`.
pub fn with_suggestion<'a>(
    error: Error,
    name: &str,
    names: impl Iterator<Item = &'a str>,
    otherwise: &str,
) -> Error {
    match did_you_mean(name, names) {
        Some(near) => error.hint(format!("did you mean \"{near}\"?")),
        None => error.hint(otherwise),
    }
}

/// The candidate nearest to `word`, ignoring case, and the first of equally near ones. It is at most two
/// edits away (insert, delete, change, swap neighbours), or one for words of up to four letters.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.to_lowercase().chars().collect();
    let allowed = match word.len() {
        0 | 1 => return None,
        2..=4 => 1,
        _ => 2,
    };
    candidates
        .into_iter()
        .map(|candidate| (distance(&word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Optimal string alignment distance, in edits.
fn distance(word: &[char], candidate: &str) -> usize {
    let other: Vec<char> = candidate.to_lowercase().chars().collect();
    if word.len().abs_diff(other.len()) > 2 {
        return usize::MAX;
    }
    let mut before: Vec<usize> = vec![0; other.len() + 1];
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for i in 1..=word.len() {
        let mut row = vec![i; other.len() + 1];
        for j in 1..=other.len() {
            let change = usize::from(word[i - 1] != other[j - 1]);
            row[j] = (above[j] + 1).min(row[j - 1] + 1).min(above[j - 1] + change);
            let swapped = i > 1 && j > 1 && word[i - 1] == other[j - 2] && word[i - 2] == other[j - 1];
            if swapped {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_candidate() {
        let words = ["select", "insert", "upsert", "customer_id"];
        assert_eq!(did_you_mean("SELCET", words), Some("select"));
        assert_eq!(did_you_mean("insrt", words), Some("insert"));
        assert_eq!(did_you_mean("upsert", words), Some("upsert"));
        assert_eq!(did_you_mean("custmerid", words), Some("customer_id"));
        assert_eq!(did_you_mean("payment", words), None);
    }

    #[test]
    fn short_words_are_not_guessed_wildly() {
        assert_eq!(did_you_mean("a", ["b"]), None);
        assert_eq!(did_you_mean("id", ["ts"]), None);
        assert_eq!(did_you_mean("idd", ["id"]), Some("id"));
        assert_eq!(did_you_mean("nope", ["copy"]), None);
        assert_eq!(did_you_mean("form", ["from"]), Some("from"));
    }
}
