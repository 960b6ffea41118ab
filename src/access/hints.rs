//! Optimizer hints, resolved for one table.

use crate::error::{Error, Span, sqlstate};
use crate::schema::{IndexDef, IndexId};

/// Hints about one table.
#[derive(Clone, Debug, Default)]
pub struct Hints {
    /// One of these indexes must be used; if empty, the table itself. `None`: any path.
    pub only: Option<Vec<IndexId>>,
    /// These indexes must not be used.
    pub without: Vec<IndexId>,
    /// Scan the whole table.
    pub full: bool,
    /// Place of the first hint.
    pub span: Option<Span>,
}

impl Hints {
    /// Do the hints name the index?
    pub(super) fn asks_for(&self, index: IndexId) -> bool {
        self.only.as_ref().is_some_and(|only| only.contains(&index))
    }

    /// May the index be used?
    pub(super) fn allows(&self, index: IndexId) -> bool {
        !self.full
            && !self.without.contains(&index)
            && self.only.as_ref().is_none_or(|only| only.contains(&index))
    }

    /// May the table be read without an index?
    pub(super) fn allows_table(&self) -> bool {
        self.full || self.only.as_ref().is_none_or(Vec::is_empty)
    }

    /// Do the hints exclude any path?
    pub(super) fn is_some(&self) -> bool {
        self.full || self.only.is_some() || !self.without.is_empty()
    }

    /// The error if none of the named indexes can serve, with the reasons.
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
