//! Table options: `ttl`, how long rows last, and `versions`, how many versions of a row are kept; and `compression`, of a
//! family.

use crate::catalog::CatalogEdit;
use crate::engine::expiry;
use crate::error::{Error, Result, sqlstate};
use crate::key::{KeyLayout, PartSpec, Tail, Transform};
use crate::row::Compression;
use crate::schema::{ENDED_AT, History, TableDef, WRITTEN_AT};
use crate::sql::{AlterTableOp, OptionDef, Statement, key_specs, name_sql, parse};
use crate::value::{Literal, Value};

use super::{key_columns, numbers};

/// Versions of a row (count), at most: each change walks over them.
const VERSIONS_MAX: u32 = 1000;

/// The compression that the options of a family ask for. Errors: they are others.
pub fn compression(options: &[OptionDef]) -> Result<Compression> {
    let mut compression = Compression::None;
    for option in options {
        if option.name != "compression" {
            return Err(Error::invalid(format!("a family has no option \"{}\"", option.name))
                .hint(match &*option.name {
                    "ttl" | "versions" => {
                        format!(
                            "it is one of the table: behind its ), write WITH ({} = {})",
                            option.name,
                            Literal(option.value.as_ref())
                        )
                    }
                    _ => "there is compression = 'lz4'".to_owned(),
                })
                .at(option.span));
        }
        let value = option.value.to_string();
        compression = Compression::from_name(&value).ok_or_else(|| {
            Error::invalid(format!("there is no compression '{value}'"))
                .hint("write compression = 'lz4', or 'none'")
                .at(option.span)
        })?;
    }
    Ok(compression)
}

/// The options of a table; `None`: not given.
#[derive(Clone, Copy, Default)]
pub struct TableOptions {
    /// How long rows last, in microseconds; `Some(None)`: forever.
    pub ttl_us: Option<Option<i64>>,
    /// Versions of each row (count), the newest included.
    pub versions: Option<u32>,
}

impl TableOptions {
    /// Reads the options of a WITH or SET clause.
    ///
    /// Errors: an unknown option; the same one twice; a value that makes no sense.
    pub fn new(options: &[OptionDef]) -> Result<TableOptions> {
        let mut found = TableOptions::default();
        for option in options {
            let is_twice = match option.name.as_str() {
                "ttl" => found.ttl_us.replace(expiry::ttl_of(option)?).is_some(),
                "versions" => found.versions.replace(versions_of(option)?).is_some(),
                other => {
                    let hint = match other {
                        "compression" => "it is one of a family: FAMILY f (a, b) WITH (compression = 'lz4')",
                        "fillfactor" | "bloomfilter" | "parallel_workers" | "autovacuum_enabled" => {
                            "leave it out"
                        }
                        "salt_buckets" => "lead the key with a bucket: PRIMARY KEY (md5_bucket(id, 16), id)",
                        _ => "there are ttl = '30 days' and versions = 3",
                    };
                    return Err(Error::unsupported(format!("a table has no option \"{other}\""))
                        .hint(hint)
                        .at(option.span));
                }
            };
            if is_twice {
                let error = Error::invalid(format!("{} is given twice", option.name));
                return Err(error.state(sqlstate::SYNTAX).at(option.span));
            }
        }
        Ok(found)
    }

    /// Do rows have to store their write time?
    pub fn need_times(self) -> bool {
        self.ttl_us.flatten().is_some() || self.versions.is_some_and(|versions| versions > 1)
    }

    /// Do the table's rows last longer than before?
    pub fn lengthen_ttl(self, table: &TableDef) -> bool {
        match (table.ttl_us, self.ttl_us) {
            (Some(before), Some(ttl_us)) => ttl_us.is_none_or(|ttl_us| ttl_us > before),
            _ => false,
        }
    }

    /// Applies the options to a table whose rows store their write time if they need to.
    ///
    /// Errors: the table's layout cannot keep versions.
    pub fn apply(self, edit: &mut CatalogEdit, table: &mut TableDef) -> Result<()> {
        if let (Some(_), Some(ttl_us)) = (table.written_at, self.ttl_us) {
            table.ttl_us = ttl_us;
        }
        match (&mut table.history, self.versions) {
            (_, None) | (None, Some(..=1)) => Ok(()),
            (Some(_), Some(..=1)) => {
                forget(edit, table);
                Ok(())
            }
            (Some(history), Some(versions)) => {
                history.versions = versions;
                Ok(())
            }
            (None, Some(versions)) => remember(edit, table, versions),
        }
    }
}

fn versions_of(option: &OptionDef) -> Result<u32> {
    match option.value {
        Value::Int(n) if (1..=i64::from(VERSIONS_MAX)).contains(&n) => Ok(n as u32),
        _ => Err(Error::invalid(format!("versions cannot be {}", Literal(option.value.as_ref())))
            .why("it is how many versions of each row are kept, the newest included")
            .hint(format!("give a number from 1 to {VERSIONS_MAX}"))
            .state(sqlstate::INVALID_PARAMETER)
            .at(option.span)),
    }
}

/// Keeps versions of the rows from now on.
fn remember(edit: &mut CatalogEdit, table: &mut TableDef, versions: u32) -> Result<()> {
    let refused = |e: Error| {
        let why = match e.reason() {
            Some(why) => format!("{}: {why}", e.what()),
            None => e.what().to_owned(),
        };
        Error::unsupported(format!("table \"{}\" cannot keep versions", table.name))
            .why(format!("each version's key is the rowkey followed by its write time; {why}"))
            .hint("a last part of some width, such as lpad(col, 12), has an end")
            .state(sqlstate::INVALID_TABLE_DEFINITION)
    };
    if let Some(name) = [WRITTEN_AT, ENDED_AT].iter().find(|name| table.column_id(name).is_some()) {
        return Err(Error::invalid(format!("table \"{}\" has a column \"{name}\"", table.name))
            .why("VERSIONS OF adds a column with this name")
            .hint(format!("ALTER TABLE {} RENAME {name} TO another name", name_sql(&table.name)))
            .state(sqlstate::DUPLICATE_COLUMN));
    }
    let key = layout_of_past(table).map_err(refused)?;
    let id = edit.new_table_id();
    let keyspaces = table.families.iter().map(|_| edit.new_keyspace()).collect();
    let ended_at = table.keep_ends();
    table.history = Some(History { versions, ended_at, id, keyspaces, key, table: Default::default() });
    Ok(())
}

/// Drops all kept versions.
fn forget(edit: &mut CatalogEdit, table: &mut TableDef) {
    if let Some(history) = table.history.take() {
        history.keyspaces.into_iter().for_each(|keyspace| edit.free_keyspace(keyspace));
        table.columns[usize::from(history.ended_at.0)].dropped = true;
    }
}

/// The layout of old versions: the table's, followed by the write time, newest first.
fn layout_of_past(table: &TableDef) -> Result<KeyLayout> {
    let Some(written_at) = table.written_at else {
        return Err(Error::internal("rows that do not tell when they were written"));
    };
    if table.key.is_drawn() {
        return Err(Error::unsupported("random(n) would draw another bucket for each"));
    }
    let mut specs = match table.row_number() {
        Some(id) => vec![numbers(id)],
        // Parse the key parts again: how a part is terminated depends on what follows it.
        None => match parse(&format!("ALTER TABLE t REKEY ({})", table.key.sql()))? {
            Statement::AlterTable(alter) => match alter.op {
                AlterTableOp::Rekey { keys } => key_specs(&keys, &key_columns(&table.columns))?,
                _ => Vec::new(),
            },
            _ => Vec::new(),
        },
    };
    let transform = Transform::Column(written_at);
    specs.push(PartSpec { transform, descending: true, sql: "written_at DESC".to_owned() });
    Ok(KeyLayout::new(specs, &|id| table.column_info(id), Tail::Nothing)?)
}
