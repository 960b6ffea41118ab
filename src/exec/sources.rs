//! Where the fields of a row are found, determined once per scan: decoded from a key, included in the index entry, or in
//! a family's packed value.

use crate::access::{Access, Path};
use crate::key::ColumnId;
use crate::plan::Field;
use crate::schema::{FamilyId, IndexDef, TableDef};
use crate::value::ColumnType;

/// Where a field of a row comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldOrigin {
    /// Decoded from a key, or known beforehand.
    Key(KeyOrigin),
    /// The packed value of the default family, or what an index entry includes.
    Packed,
    /// The packed value of another family: its index in `StoredRowView::others`, if it is read.
    Other(usize),
    /// Computed from other columns: its index in [`Sources::formulas`].
    Formula(usize),
}

/// The source of a column in `StoredRowView::key_values`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyOrigin {
    /// In an index's own layout.
    Layout,
    /// In the table's rowkey.
    Pointer,
    /// Put there by the caller.
    Known,
}

/// What a row is read from.
#[derive(Clone, Copy)]
enum RowOrigin<'a> {
    /// Its stored values.
    Row,
    /// An entry of an index.
    Entry(&'a IndexDef),
    /// The known values of some columns, and its rowkey.
    Known(&'a [ColumnId]),
}

/// Which families and keys must be read, and where each column is found.
#[derive(Debug)]
pub struct Sources {
    pub(super) slots: Box<[FieldOrigin]>,
    /// Families to read, ascending.
    pub families: Box<[FamilyId]>,
    /// Formulas to be computed.
    pub(super) formulas: Box<[ColumnId]>,
    /// Number of columns to be decoded from an index's own layout (count).
    pub(super) in_layout: usize,
    /// Number of columns to be decoded from the table's rowkey (count).
    pub(super) in_pointer: usize,
}

/// Where a scan finds the fields that it needs.
#[derive(Debug)]
pub struct ScanSources {
    /// The fields that decide which index entries' rows are fetched; `None` if no rows are fetched.
    pub(super) entries: Option<Sources>,
    /// The fields that are compared or given out, in rows, or in index entries that replace them.
    pub(super) rows: Sources,
    /// Of these, the compared ones.
    pub(super) compared: Sources,
}

impl ScanSources {
    /// The sources of a scan along a path of `table`, through `index`, that gives out `output`.
    pub fn new(table: &TableDef, index: Option<&IndexDef>, access: &Access, output: &[Field]) -> ScanSources {
        let (mut fields, mut entries, mut entry) = (access.filter.fields(), None, None);
        match access.path {
            Path::Primary => {}
            Path::IndexFetch(_) => {
                entries = Some(Sources::new(table, index, &access.entry_filter.fields()));
            }
            Path::IndexOnly(_) => {
                fields.extend(access.entry_filter.fields());
                entry = index;
            }
        }
        let compared = Sources::new(table, entry, &fields);
        fields.extend(output);
        ScanSources { entries, rows: Sources::new(table, entry, &fields), compared }
    }
}

impl Sources {
    /// Where `fields`, which may contain duplicates, are found in the row, or in the entry of an index.
    pub fn new(table: &TableDef, entry: Option<&IndexDef>, fields: &[Field]) -> Sources {
        Sources::from(table, entry.map_or(RowOrigin::Row, RowOrigin::Entry), fields)
    }

    /// Where `fields` are found if the columns `known` and the rowkey are given: see `RowScratch::decode_known`.
    pub fn of_known(table: &TableDef, known: &[ColumnId], fields: &[Field]) -> Sources {
        Sources::from(table, RowOrigin::Known(known), fields)
    }

    fn from(table: &TableDef, origin: RowOrigin<'_>, fields: &[Field]) -> Sources {
        let mut sources = Sources {
            slots: vec![FieldOrigin::Packed; table.columns.len()].into(),
            families: Box::default(),
            formulas: Box::default(),
            in_layout: 0,
            in_pointer: 0,
        };
        let (mut families, mut formulas) = (Vec::new(), Vec::new());
        for field in fields {
            if let Field::Column(id) = field {
                sources.add(table, origin, *id, (&mut families, &mut formulas));
            }
        }
        families.sort_unstable();
        sources.families = families.into();
        sources.formulas = formulas.into();
        for (slot, column) in sources.slots.iter_mut().zip(&table.columns) {
            if let FieldOrigin::Other(place) = slot {
                let others = sources.families.iter().filter(|family| **family != FamilyId::DEFAULT);
                *place = others.take_while(|family| **family != column.family).count();
            }
        }
        sources
    }

    /// More columns are decoded from keys than for `others`.
    #[inline(always)]
    pub fn decode_more_than(&self, others: &Sources) -> bool {
        self.in_pointer > others.in_pointer || self.in_layout > others.in_layout
    }

    /// All fields are in the key or the packed value of one entry.
    pub fn is_one_entry(&self) -> bool {
        self.formulas.is_empty() && self.families.iter().all(|family| *family == FamilyId::DEFAULT)
    }

    fn add(
        &mut self,
        table: &TableDef,
        origin: RowOrigin<'_>,
        id: ColumnId,
        (families, formulas): (&mut Vec<FamilyId>, &mut Vec<ColumnId>),
    ) {
        let slot = &mut self.slots[usize::from(id.0)];
        if let FieldOrigin::Key(_) = slot {
            return;
        }
        match origin {
            RowOrigin::Entry(index) if index.include.contains(&id) => {}
            RowOrigin::Known(known) if known.contains(&id) => *slot = FieldOrigin::Key(KeyOrigin::Known),
            RowOrigin::Entry(index) if index.layout.decodable().contains(&id) => {
                *slot = FieldOrigin::Key(KeyOrigin::Layout);
                self.in_layout += 1;
            }
            _ if table.key.decodable().contains(&id) => {
                *slot = FieldOrigin::Key(KeyOrigin::Pointer);
                self.in_pointer += 1;
            }
            _ if let Some(formula) = &table.column(id).formula => {
                if !formulas.contains(&id) {
                    *slot = FieldOrigin::Formula(formulas.len());
                    formulas.push(id);
                    for input in formula.columns() {
                        self.add(table, origin, input, (families, formulas));
                    }
                }
            }
            RowOrigin::Entry(_) | RowOrigin::Known(_) => {}
            RowOrigin::Row => {
                let family = table.column(id).family;
                if family != FamilyId::DEFAULT {
                    *slot = FieldOrigin::Other(0);
                }
                if !families.contains(&family) {
                    families.push(family);
                }
            }
        }
    }
}

/// Type of a field as the scan gives it out.
pub fn field_type(table: &TableDef, index: Option<&IndexDef>, field: Field) -> ColumnType {
    let text = match (field, index) {
        (Field::Column(id), _) => return table.column(id).ty,
        (Field::Rowkey, Some(index)) => index.layout.is_text(),
        (Field::Rowkey | Field::PrimaryRowkey, _) => table.key.is_text(),
    };
    if text { ColumnType::Varchar } else { ColumnType::Varbinary }
}
