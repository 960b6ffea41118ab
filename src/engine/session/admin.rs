//! Statements about the database itself: what it has, whether that is sound, and its upkeep.

use std::path::Path;

use sqlparser::ast::Ident;

use super::{IN_STEPS, Session};
use crate::engine::outcome::Outcome;
use crate::engine::{analyze, backup, build, moments, repair, show};
use crate::error::{Error, Result};
use crate::sql::{Check, CheckTarget, Statement};

impl Session {
    pub(super) fn run_admin(&mut self, statement: &Statement) -> Result<Outcome> {
        let tag = statement.kind_name();
        match statement {
            Statement::Show(what) => {
                show::show(&self.view()?, what).and_then(|rows| self.table_outcome(tag, rows))
            }
            Statement::Describe { name } => {
                show::describe(&self.view()?, name).and_then(|rows| self.table_outcome(tag, rows))
            }
            Statement::Check(check) => self.check(check),
            Statement::Analyze { table } => {
                self.outside_transaction(tag, "what it finds is about what is committed")?;
                self.analyze(table.as_ref())?;
                Ok(self.done(tag))
            }
            Statement::Purge { table } => {
                let purged = self.run_purge(table.as_ref())?;
                Ok(self.after_write(Outcome { affected: Some(purged), ..self.done(tag) }, None))
            }
            Statement::CreateIndex(create) => {
                let warnings = match self.open {
                    Some(_) => build::create_index_within(self, create)?,
                    None => build::create_index(&self.db, create, &self.watch)?,
                };
                Ok(Outcome { warnings, ..self.done(tag) })
            }
            Statement::CreateSnapshot { name } => {
                self.outside_transaction(
                    tag,
                    "others are to see it, and they do not see what is not committed",
                )?;
                moments::create(&self.db, name)?;
                Ok(self.done(tag))
            }
            Statement::DropSnapshot { if_exists, name } => {
                self.outside_transaction(tag, "others may read it, and it would be gone for them at once")?;
                moments::drop(&self.db, name, *if_exists)?;
                Ok(self.done(tag))
            }
            Statement::Backup { path } => {
                let entries = backup::backup(&self.db, Path::new(path), self.db.engine(), &self.watch)?;
                Ok(Outcome { affected: Some(entries), ..self.done(tag) })
            }
            Statement::RepairIndex { index, dry_run: true } => {
                let target = CheckTarget::Index(index.clone());
                self.check(&Check { target, fast: false, limit: None })
            }
            Statement::RepairTable { table, dry_run } => {
                self.outside_transaction(tag, "what it removes is removed at once")?;
                let (removed, rows) = repair::table(&self.db, table, *dry_run, &self.watch)?;
                Ok(Outcome { affected: Some(removed), ..self.table_outcome(tag, rows)? })
            }
            Statement::RepairIndex { index, dry_run: false } => {
                self.outside_transaction(tag, IN_STEPS)?;
                build::repair(self, index)?;
                Ok(self.done(tag))
            }
            _ => Err(Error::internal(format!("{tag} is not about the database"))),
        }
    }

    fn check(&self, check: &Check) -> Result<Outcome> {
        let (found, rows) = show::check(&self.view()?, check)?;
        Ok(Outcome { affected: Some(found), ..self.table_outcome("CHECK", rows)? })
    }

    /// ANALYZE, of one table or of all. Some tables may be done even if a later one fails.
    fn analyze(&self, table: Option<&Ident>) -> Result<()> {
        let view = self.view()?;
        let tables = match table {
            Some(name) => vec![view.table(name)?],
            None => view.catalog.tables().cloned().collect(),
        };
        tables.iter().try_for_each(|table| {
            analyze::analyze(&self.db, table, &self.watch)?;
            self.watch.cancel.note_committed("the tables that it was done with have new statistics");
            Ok(())
        })
    }
}
