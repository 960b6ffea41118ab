//! sqlparser's visitors for our statements: they visit every query and expression, in written order.

#![expect(clippy::disallowed_methods, reason = "this is a part of the walk")]

/// Generates the walk for `&` and for `&mut`, which must visit the same nodes.
macro_rules! walk {
    ($visit:ident, $trait:ident, $visitor:ident $(, $mut:tt)?) => {
        mod $visit {
            use std::ops::ControlFlow;

            // Import only one of the two traits: both have a method `visit`.
            use sqlparser::ast::{$trait, $visitor};

            use crate::sql::ast::*;

            impl $trait for Statement {
                fn visit<V: $visitor>(&$($mut)? self, v: &mut V) -> ControlFlow<V::Break> {
                    match self {
                        Statement::CreateTable(table) => {
                            columns_of(& $($mut)? table.columns, v)?;
                            if let Some(keys) = & $($mut)? table.primary_key {
                                keys_of(keys, v)?;
                            }
                            for unique in & $($mut)? table.uniques {
                                keys_of(& $($mut)? unique.keys, v)?;
                            }
                            for check in & $($mut)? table.checks {
                                check.expr.visit(v)?;
                            }
                            if let Some(split) = & $($mut)? table.split {
                                split_of(split, v)?;
                            }
                            table.query.visit(v)
                        }
                        Statement::AlterTable(alter) => change_of(& $($mut)? alter.op, v),
                        Statement::AlterTogether(changes) => {
                            for alter in changes {
                                change_of(& $($mut)? alter.op, v)?;
                            }
                            ControlFlow::Continue(())
                        }
                        Statement::CreateIndex(index) => {
                            keys_of(& $($mut)? index.keys, v)?;
                            index.filter.visit(v)
                        }
                        Statement::CreateView(view) => view.query.visit(v),
                        Statement::Query(query) => query.visit(v),
                        Statement::Explain(explain) => explain.statement.visit(v),
                        Statement::Prepare(prepare) => prepare.statement.visit(v),
                        Statement::Execute { args, .. } => args.visit(v),
                        Statement::Insert(insert) => insert_of(insert, v),
                        Statement::Update(update) => {
                            assignments_of(& $($mut)? update.assignments, v)?;
                            update.from.visit(v)?;
                            update.filter.visit(v)?;
                            update.returning.visit(v)
                        }
                        Statement::Delete(delete) => {
                            delete.using.visit(v)?;
                            delete.filter.visit(v)?;
                            delete.order_by.visit(v)?;
                            delete.limit.visit(v)?;
                            delete.returning.visit(v)
                        }
                        Statement::Copy(copy) => match & $($mut)? copy.source {
                            CopySource::Query(query) => query.visit(v),
                            CopySource::Table { .. } => ControlFlow::Continue(()),
                        },
                        Statement::Design(design) => match & $($mut)? **design {
                            Design::DescribeKey { .. } | Design::Lint { .. } => ControlFlow::Continue(()),
                            Design::WhatIf { change, query } => {
                                keys_of(& $($mut)? change.keys, v)?;
                                query.visit(v)
                            }
                            Design::Advise { queries } => queries.visit(v),
                            Design::Simulate(simulate) => {
                                if let Some(WritesFrom::Query(query)) = & $($mut)? simulate.source {
                                    query.visit(v)?;
                                }
                                for keys in & $($mut)? simulate.layouts {
                                    keys_of(keys, v)?;
                                }
                                ControlFlow::Continue(())
                            }
                        },
                        Statement::DropTable { .. }
                        | Statement::Truncate { .. }
                        | Statement::RenameIndex { .. }
                        | Statement::DropIndex { .. }
                        | Statement::DropView { .. }
                        | Statement::CreateSnapshot { .. }
                        | Statement::DropSnapshot { .. }
                        | Statement::Analyze { .. }
                        | Statement::Purge { .. }
                        | Statement::Begin { .. }
                        | Statement::Commit
                        | Statement::Rollback { .. }
                        | Statement::Savepoint { .. }
                        | Statement::Release { .. }
                        | Statement::Deallocate { .. }
                        | Statement::Show(_)
                        | Statement::Describe { .. }
                        | Statement::Check(_)
                        | Statement::Backup { .. }
                        | Statement::RepairIndex { .. }
                        | Statement::RepairTable { .. }
                        | Statement::ForeignKeys { .. }
                        | Statement::Nothing { .. }
                        | Statement::Counters { .. }
                        | Statement::Set { .. } => ControlFlow::Continue(()),
                    }
                }
            }

            fn change_of<V: $visitor>(op: & $($mut)? AlterTableOp, v: &mut V) -> ControlFlow<V::Break> {
                match op {
                    AlterTableOp::AddColumn(add) => add.column.default.visit(v),
                    AlterTableOp::AddCheck(check) => check.expr.visit(v),
                    AlterTableOp::AlterColumn { change: ColumnChange::SetDefault(expr), .. } => expr.visit(v),
                    AlterTableOp::AlterColumn { change: ColumnChange::SetType(new), .. } => new.using.visit(v),
                    AlterTableOp::Split(split) => split_of(split, v),
                    AlterTableOp::Rekey { keys } | AlterTableOp::AddKey { keys } => keys_of(keys, v),
                    _ => ControlFlow::Continue(()),
                }
            }

            fn split_of<V: $visitor>(split: & $($mut)? Split, v: &mut V) -> ControlFlow<V::Break> {
                match split {
                    Split::At(points) => points.visit(v),
                    Split::Into { method: SplitMethod::Between(bounds), .. } => {
                        for bound in & $($mut)? bounds[..] {
                            bound.visit(v)?;
                        }
                        ControlFlow::Continue(())
                    }
                    Split::Into { .. } => ControlFlow::Continue(()),
                }
            }

            fn columns_of<V: $visitor>(
                columns: & $($mut)? [ColumnDef],
                v: &mut V,
            ) -> ControlFlow<V::Break> {
                for column in columns {
                    column.default.visit(v)?;
                }
                ControlFlow::Continue(())
            }

            fn keys_of<V: $visitor>(keys: & $($mut)? [KeyExpr], v: &mut V) -> ControlFlow<V::Break> {
                for key in keys {
                    key.expr.visit(v)?;
                }
                ControlFlow::Continue(())
            }

            fn assignments_of<V: $visitor>(
                assignments: & $($mut)? [Assignment],
                v: &mut V,
            ) -> ControlFlow<V::Break> {
                for assignment in assignments {
                    assignment.value.visit(v)?;
                }
                ControlFlow::Continue(())
            }

            fn insert_of<V: $visitor>(insert: & $($mut)? Insert, v: &mut V) -> ControlFlow<V::Break> {
                match & $($mut)? insert.source {
                    InsertSource::Values(rows) => rows.visit(v)?,
                    InsertSource::Query(query) => query.visit(v)?,
                    InsertSource::DefaultValues => {}
                }
                if let InsertMode::OnConflictUpdate { assignments, filter, .. } = & $($mut)? insert.mode {
                    assignments_of(assignments, v)?;
                    filter.visit(v)?;
                }
                insert.returning.visit(v)
            }
        }
    };
}

walk!(read, Visit, Visitor);
walk!(write, VisitMut, VisitorMut, mut);
