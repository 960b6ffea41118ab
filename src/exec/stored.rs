//! How a row is stored: its rowkey, and one sealed packed value per non-empty family.

use super::watch::Watch;
use crate::error::{Error, Result};
use crate::index::entry_of;
use crate::key::{ColumnId, KeyRange, Rowkey};
use crate::row::{self, PackedRow};
use crate::schema::{Column, FamilyId, TableDef};
use crate::store::{Direction, KeyspaceId, Reader, WriteBatch};
use crate::value::{ColumnType, Value, name_sql};

/// A row as read, with the bytes it was read from.
#[derive(Clone, Debug)]
pub struct StoredRow {
    /// Every column by [`ColumnId`].
    pub values: Vec<Value>,
    /// Sealed value of each family, as stored.
    pub sealed: Vec<Option<Vec<u8>>>,
}

/// Number of rows of a table, by a walk if the store does not know it.
pub fn count(table: &TableDef, reader: &dyn Reader, watch: &Watch) -> Result<u64> {
    match reader.count(table.rows())? {
        Some(rows) => Ok(rows),
        None => each_rowkey(table, reader, &format!("counting {}", table.name), watch, |_, _| ()),
    }
}

/// Shows the rowkeys of a table, numbered from 0; gives their number.
pub fn each_rowkey(
    table: &TableDef,
    reader: &dyn Reader,
    label: &str,
    watch: &Watch,
    mut see: impl FnMut(u64, &[u8]),
) -> Result<u64> {
    let total = Some(reader.entries(table.rows())?);
    let mut cursor = reader.cursor(table.rows(), &KeyRange::all(), Direction::Forward)?;
    let mut n: u64 = 0;
    while let Some((key, _)) = cursor.next()? {
        watch.tick(label, n, total, "rows")?;
        see(n, key);
        n += 1;
    }
    watch.finish(label, n, "rows");
    Ok(n)
}

/// Some expired rows.
pub struct Expired {
    /// Their rowkeys, ascending.
    pub rowkeys: Vec<Rowkey>,
    /// Rows (count) that were examined.
    pub looked_at: u64,
}

/// The first rows of `range` that have expired by `as_of_us`, in microseconds since 1970, up to a limit; `progress`
/// is told now and then how many rows were examined.
pub fn expired(
    reader: &dyn Reader,
    table: &TableDef,
    as_of_us: i64,
    range: &KeyRange,
    rows_max: usize,
    progress: &dyn Fn(u64) -> Result<()>,
) -> Result<Expired> {
    let mut found = Expired { rowkeys: Vec::new(), looked_at: 0 };
    let Some(ttl) = table.ttl() else { return Ok(found) };
    let wanted = ColumnProjection::only(table, std::iter::once(ttl.written_at));
    let mut cursor = reader.cursor(table.rows(), range, Direction::Forward)?;
    let mut values = Vec::new();
    while found.rowkeys.len() < rows_max
        && let Some((rowkey, value)) = cursor.next()?
    {
        if found.looked_at.is_multiple_of(8192) {
            progress(found.looked_at)?;
        }
        found.looked_at += 1;
        values_into(reader, table, (rowkey, value), &wanted, &mut values)?;
        if !ttl.is_alive(&values, as_of_us) {
            found.rowkeys.push(rowkey.into());
        }
    }
    Ok(found)
}

/// Whole rows, each `None` if it is not there. Errors: `Corrupt` when the bytes of one are not a row of this table.
pub fn rows_of(reader: &dyn Reader, table: &TableDef, rowkeys: &[&[u8]]) -> Result<Vec<Option<StoredRow>>> {
    let found = reader.get_many(table.rows(), rowkeys)?;
    let there: Vec<&[u8]> =
        rowkeys.iter().zip(&found).filter_map(|(rowkey, value)| value.map(|_| *rowkey)).collect();
    let others = table.family_ids().skip(1);
    let others = others.map(|id| reader.get_many(table.family(id).keyspace, &there));
    let mut others = others.map(|of_rows| Ok(of_rows?.into_iter())).collect::<Result<Vec<_>>>()?;
    let row = |(rowkey, value): (&&[u8], Option<&[u8]>)| {
        let Some(value) = value else { return Ok(None) };
        let others = others.iter_mut().map(|of_rows| of_rows.next().flatten());
        let sealed = std::iter::once(Some(value)).chain(others);
        row_of(table, rowkey, sealed.map(|sealed| sealed.map(<[u8]>::to_vec)).collect()).map(Some)
    };
    rowkeys.iter().zip(found).map(row).collect()
}

/// A whole row, given the sealed value of each family.
fn row_of(table: &TableDef, rowkey: &[u8], sealed: Vec<Option<Vec<u8>>>) -> Result<StoredRow> {
    let mut values = vec![Value::Null; table.columns.len()];
    for (id, bytes) in table.family_ids().zip(&sealed) {
        if let Some(bytes) = bytes {
            unpack_family(table, id, bytes, &ColumnProjection::ALL, &mut values)?;
        }
    }
    decode_key(table, rowkey, &mut values)?;
    Ok(StoredRow { values, sealed })
}

/// A choice of columns, including the inputs of formulas among them.
pub struct ColumnProjection(Option<Chosen>);

struct Chosen {
    /// By [`ColumnId`].
    columns: Vec<bool>,
    /// Families in which one of them is stored, by [`FamilyId`].
    families: Vec<bool>,
    /// Some of them are decoded from the rowkey.
    key: bool,
}

impl ColumnProjection {
    /// All columns.
    pub const ALL: ColumnProjection = ColumnProjection(None);

    /// Only these columns.
    pub fn only(table: &TableDef, columns: impl Iterator<Item = ColumnId>) -> ColumnProjection {
        let mut chosen = vec![false; table.columns.len()];
        let mut families = vec![false; table.families.len()];
        for id in columns {
            let inputs = table.column(id).formula.as_ref().map(|formula| formula.columns());
            for id in inputs.into_iter().flatten().chain([id]) {
                chosen[usize::from(id.0)] = true;
                families[usize::from(table.column(id).family.0)] |= table.is_stored(id);
            }
        }
        let key = table.key.decodable().iter().any(|id| chosen[usize::from(id.0)]);
        ColumnProjection(Some(Chosen { columns: chosen, families, key }))
    }

    fn has(&self, id: ColumnId) -> bool {
        self.0.as_ref().is_none_or(|chosen| chosen.columns[usize::from(id.0)])
    }

    fn has_any_of(&self, family: FamilyId) -> bool {
        self.0.as_ref().is_none_or(|chosen| chosen.families[usize::from(family.0)])
    }

    fn has_any_of_key(&self) -> bool {
        self.0.as_ref().is_none_or(|chosen| chosen.key)
    }
}

/// Every column of a row by [`ColumnId`], given its value in the default family.
pub fn values_of(reader: &dyn Reader, table: &TableDef, rowkey: &[u8], value: &[u8]) -> Result<Vec<Value>> {
    let mut values = Vec::new();
    values_into(reader, table, (rowkey, value), &ColumnProjection::ALL, &mut values)?;
    Ok(values)
}

/// Like [`values_of`], but only some columns, replacing the content of `values`.
pub fn values_into(
    reader: &dyn Reader,
    table: &TableDef,
    (rowkey, value): (&[u8], &[u8]),
    wanted: &ColumnProjection,
    values: &mut Vec<Value>,
) -> Result<()> {
    values.clear();
    values.resize(table.columns.len(), Value::Null);
    unpack_family(table, FamilyId::DEFAULT, value, wanted, values)?;
    for id in table.family_ids().skip(1).filter(|id| wanted.has_any_of(*id)) {
        if let Some(sealed) = reader.get(table.family(id).keyspace, rowkey)? {
            unpack_family(table, id, sealed, wanted, values)?;
        }
    }
    if wanted.has_any_of_key() { decode_key(table, rowkey, values) } else { Ok(()) }
}

/// Checks that what is stored of a row in one family can be read, its rowkey included.
///
/// Errors: `Corrupt`, always about these bytes.
pub fn check_family(table: &TableDef, family: FamilyId, (rowkey, sealed): (&[u8], &[u8])) -> Result<()> {
    let mut values = vec![Value::Null; table.columns.len()];
    unpack_family(table, family, sealed, &ColumnProjection::ALL, &mut values)?;
    decode_key(table, rowkey, &mut values)
}

/// Sets the columns that can be decoded from the rowkey.
pub fn decode_key(table: &TableDef, rowkey: &[u8], values: &mut [Value]) -> Result<()> {
    table
        .key
        .decode(rowkey, &mut |id: ColumnId, value| values[usize::from(id.0)] = value.to_value())
        .map(|_| ())
        .map_err(|e| bad_rowkey(table, rowkey, &e.to_string()))
}

/// The error for a rowkey that is not one of `table`.
pub fn bad_rowkey(table: &TableDef, rowkey: &[u8], why: &str) -> Error {
    Error::corrupt(format!("a rowkey of table \"{}\" cannot be decoded", table.name))
        .why(format!("{why}; key {}", crate::key::hex(rowkey)))
        .hint(format!("CHECK TABLE {} lists what is wrong", name_sql(&table.name)))
}

fn unpack_family(
    table: &TableDef,
    family: FamilyId,
    sealed: &[u8],
    wanted: &ColumnProjection,
    values: &mut [Value],
) -> Result<()> {
    let packed = row::open(sealed)?;
    let packed = PackedRow::new(&packed)?;
    for (id, column) in packed_columns(table, family) {
        if wanted.has(id)
            && let Some(value) = packed.get(id, column.ty)?
        {
            values[usize::from(id.0)] = value.to_value();
        }
    }
    Ok(())
}

/// The columns in the packed values of a family.
fn packed_columns(table: &TableDef, family: FamilyId) -> impl Iterator<Item = (ColumnId, &Column)> {
    table.stored_columns().filter(move |(id, column)| column.family == family && table.is_stored(*id))
}

/// Makes the stored form of rows. Which columns go into which family is determined once, for many rows.
pub struct Packer<'t> {
    table: &'t TableDef,
    /// For each family, the columns in its packed values.
    columns: Vec<Vec<(ColumnId, ColumnType)>>,
    /// Packed values may have columns that were dropped since.
    may_hold_dropped: bool,
}

impl<'t> Packer<'t> {
    /// For rows of `table`.
    pub fn new(table: &'t TableDef) -> Packer<'t> {
        let types = |id| packed_columns(table, id).map(|(id, column)| (id, column.ty)).collect();
        let may_hold_dropped = table.columns.iter().any(|column| column.dropped);
        Packer { table, columns: table.family_ids().map(types).collect(), may_hold_dropped }
    }

    /// The table of these rows.
    pub fn table(&self) -> &'t TableDef {
        self.table
    }

    fn columns(&self, family: FamilyId) -> impl Iterator<Item = (ColumnId, ColumnType)> + Clone {
        self.columns[usize::from(family.0)].iter().copied()
    }

    /// Sealed value of one family of a row; `None` if nothing of it needs storing. The default family is always
    /// stored: its entry says that the row exists.
    fn seal(&self, family: FamilyId, values: &[Value]) -> Result<Option<Vec<u8>>> {
        let columns = self
            .columns(family)
            .map(|(id, ty)| (id, ty, values[usize::from(id.0)].as_ref()))
            .filter(|(_, _, value)| !value.is_null());
        let mut columns = columns.peekable();
        if family != FamilyId::DEFAULT && columns.peek().is_none() {
            return Ok(None);
        }
        let mut packed = Vec::with_capacity(64);
        row::pack(columns, &mut packed)?;
        Ok(Some(row::seal(packed, self.table.family(family).compression)))
    }

    /// Sealed value of a family of which only these columns have changed. The others are copied without decoding
    /// them. `sealed`: the old value, if any.
    pub fn reseal(
        &self,
        family: FamilyId,
        sealed: Option<&[u8]>,
        changed: &[(ColumnId, Value)],
    ) -> Result<Vec<u8>> {
        let columns = self.columns(family).map(|(id, ty)| {
            let new = changed.iter().find(|(of, _)| *of == id);
            (id, new.map(|(_, value)| (ty, value.as_ref())))
        });
        let known = || columns.clone().filter_map(|(id, new)| new.map(|(ty, value)| (id, ty, value)));
        let mut packed = Vec::with_capacity(sealed.map_or(0, <[u8]>::len) + 16);
        match sealed {
            Some(sealed) => {
                let sealed = row::open(sealed)?;
                let row = PackedRow::new(&sealed)?;
                if self.may_hold_dropped || !row::overwrite(&row, known(), &mut packed)? {
                    row::repack(&row, columns, &mut packed)?;
                }
            }
            None => row::pack(known(), &mut packed)?,
        }
        Ok(row::seal(packed, self.table.family(family).compression))
    }

    /// Calls `f` with every entry of a row: its families, and its index entries.
    ///
    /// Errors: a value that an index layout cannot hold.
    pub fn entries_of(
        &self,
        row: &[Value],
        rowkey: &Rowkey,
        f: &mut dyn FnMut(KeyspaceId, &Rowkey, &[u8]),
    ) -> Result<()> {
        let table = self.table;
        for id in table.family_ids() {
            if let Some(value) = self.seal(id, row)? {
                f(table.family(id).keyspace, rowkey, &value);
            }
        }
        for index in table.maintained_indexes() {
            if let Some(entry) = entry_of(table, index, row, rowkey)? {
                f(index.keyspace, &entry.key, &entry.value);
            }
        }
        Ok(())
    }

    /// Writes the families of a row that differ from `old`.
    pub fn write_row(
        &self,
        rowkey: &Rowkey,
        old: Option<&StoredRow>,
        new: Option<&[Value]>,
        batch: &mut WriteBatch,
    ) -> Result<()> {
        for id in self.table.family_ids() {
            let keyspace = self.table.family(id).keyspace;
            let before = old.and_then(|o| o.sealed[usize::from(id.0)].as_ref());
            let after = new.map_or(Ok(None), |values| self.seal(id, values))?;
            match after {
                Some(after) if before == Some(&after) => {}
                Some(after) => batch.put(keyspace, rowkey.clone(), after),
                None if before.is_some() => batch.delete(keyspace, rowkey.clone()),
                None => {}
            }
        }
        Ok(())
    }
}
