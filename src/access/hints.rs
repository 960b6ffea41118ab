//! What a statement says about the path itself.

use crate::error::{Error, Span, sqlstate};
use crate::schema::{IndexDef, IndexId};

/// Hints about one table.
#[derive(Clone, Debug, Default)]
pub struct Hints {
    /// One of these indexes must serve; if there are none, the table itself. `None`: any path may.
    pub only: Option<Vec<IndexId>>,
    /// These indexes must not serve.
    pub without: Vec<IndexId>,
    /// Every row is read, in the table itself.
    pub full: bool,
    /// Where the first of them stands.
    pub span: Option<Span>,
}

impl Hints {
    /// The index is asked for.
    pub(super) fn asks_for(&self, index: IndexId) -> bool {
        self.only.as_ref().is_some_and(|only| only.contains(&index))
    }

    /// The index may serve.
    pub(super) fn allows(&self, index: IndexId) -> bool {
        !self.full
            && !self.without.contains(&index)
            && self.only.as_ref().is_none_or(|only| only.contains(&index))
    }

    /// The table may be read without an index.
    pub(super) fn allows_table(&self) -> bool {
        self.full || self.only.as_ref().is_none_or(Vec::is_empty)
    }

    /// Some path is ruled out.
    pub(super) fn is_some(&self) -> bool {
        self.full || self.only.is_some() || !self.without.is_empty()
    }

    /// None of the indexes asked for can serve, for these reasons.
    pub(super) fn unusable(&self, indexes: &[IndexDef], rejected: &[(String, String)]) -> Error {
        let asked = |name: &str| indexes.iter().any(|i| i.name == name && self.asks_for(i.id));
        let reasons: Vec<String> = rejected
            .iter()
            .filter(|(name, _)| asked(name))
            .map(|(name, why)| format!("{name}: {why}"))
            .collect();
        Error::invalid("no index that the hint asks for can serve the query")
            .why(reasons.join("; "))
            .hint("drop the hint: EXPLAIN then shows which path is chosen")
            .state(sqlstate::OBJECT_STATE)
            .at(self.span)
    }
}
