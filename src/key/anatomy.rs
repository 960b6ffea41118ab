//! Takes a key apart for display: its parts, with the form of each.

use std::ops::Range;

use super::layout::KeyLayout;
use super::part::{Ending, KeyPart, NullMark};
use super::problem::BadKey;
use super::show::show_part;
use super::transform::{ColumnId, Shape, Transform};
use crate::error::counted;

/// One part of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The index of the layout's part.
    pub part: usize,
    /// Where its bytes lie in the key.
    pub at: Range<usize>,
    /// Its content, readable: text in quotes, binary decoded if possible.
    pub content: String,
    /// The column that it gives back exactly, and the value, readable.
    pub value: Option<(ColumnId, String)>,
}

impl KeyLayout {
    /// The parts of a key, in order, as far as they can be read; and an error if the rest cannot.
    pub fn take_apart(&self, key: &[u8]) -> (Vec<Piece>, Option<BadKey>) {
        let (mut pieces, mut at) = (Vec::new(), 0);
        for (index, part) in self.parts().iter().enumerate() {
            let piece = part.end_in(key, at).and_then(|end| part.piece(index, key, at..end));
            let Some(piece) = piece else {
                let bad = BadKey { part: index, sql: part.sql().to_owned(), key: key.to_vec() };
                return (pieces, Some(bad));
            };
            at = piece.at.end;
            pieces.push(piece);
        }
        (pieces, None)
    }
}

impl KeyPart {
    fn piece(&self, part: usize, key: &[u8], at: Range<usize>) -> Option<Piece> {
        let bytes = &key[at.clone()];
        let content = show_part(self, bytes)?;
        let mut value = None;
        if let ([column], true) = (self.columns(), self.facts().decodable) {
            self.get(bytes, &mut |v| value = Some((*column, v.to_string())))?;
        }
        Some(Piece { part, at, content, value })
    }

    /// What the part does to its column, in words: `digits, padded to 6`, `8 bytes, descending`.
    pub fn form_in_words(&self) -> String {
        let mut words = match &self.form.transform {
            Transform::Literal(_) => "delimiter".to_owned(),
            Transform::Column(_) => match self.form.shape() {
                Shape::Binary(n) => format!("binary, {}", counted(n, "byte")),
                _ => "as it is".to_owned(),
            },
            Transform::Text(_) => "text form".to_owned(),
            Transform::Lpad { width, pad, .. } => format!("padded to {width} with '{pad}'"),
            Transform::Rpad { width, pad, .. } => format!("padded to {width} with '{pad}' behind"),
            Transform::Reverse { width: Some(width), .. } => format!("padded to {width}, reversed"),
            Transform::Reverse { width: None, .. } => "characters reversed".to_owned(),
            Transform::ReverseBytes(_) => "bytes reversed".to_owned(),
            Transform::MaxMinus { max, width: None, .. } => format!("{max} less the value, 8 bytes"),
            Transform::MaxMinus { max, width: Some(width), .. } => {
                format!("{max} less the value, padded to {width}")
            }
            Transform::Md5Hex { len, .. } => format!("{} of a hash", counted(len, "hex digit")),
            Transform::Md5(_) => "hash, 16 bytes".to_owned(),
            Transform::Modulo { buckets, .. } | Transform::Md5Bucket { buckets, .. } => {
                format!("one of {buckets} buckets")
            }
            Transform::Random { buckets } => format!("one of {buckets} buckets, drawn"),
            Transform::ToChar { .. } => "formatted time".to_owned(),
            Transform::Code { .. } => "code".to_owned(),
        };
        if self.descending {
            words.push_str(", inverted");
        }
        match &self.ending {
            Ending::Escaped => {
                words.push_str(if self.descending { ", up to FF FE" } else { ", up to 00 01" })
            }
            Ending::Delimiter(delimiter) => {
                words.push_str(&format!(", up to '{}'", delimiter.escape_debug()))
            }
            Ending::Bytes(_) | Ending::Chars(_) | Ending::Rest => {}
        }
        if self.null != NullMark::Never {
            words.push_str(", may be NULL");
        }
        words
    }
}
