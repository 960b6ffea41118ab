//! Wrappers of sqlparser's visitors that are compiled once: its `visit` is monomorphised for every visitor,
//! 300 kB of code each (2026-11-26), which was half of the program. Here a visitor is called through a `dyn`.

#![expect(clippy::disallowed_methods, reason = "this is where they are called")]

use std::ops::ControlFlow;

use crate::error::{Error, Result};

/// Goes on with a walk, or ends it with an error.
pub fn or_break<T>(done: Result<T>) -> ControlFlow<Error, T> {
    done.map_or_else(ControlFlow::Break, ControlFlow::Continue)
}

/// The error that a walk ended with, if any.
pub fn or_error(walked: ControlFlow<Error>) -> Result<()> {
    match walked {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// Generates the walk for `&` and for `&mut`.
macro_rules! walk {
    (
        $module:ident: $visit:ident, $expressions:ident by $hook_of_expressions:ident,
        of $node:ident by $visitor:ident, as $to:ident;
        $($hook:ident: $kind:ident),*
    ) => {
        mod $module {
            use std::ops::ControlFlow;

            use sqlparser::ast::*;

            use super::$to as To;

            /// Passes the queries, expressions, tables and values of a statement or a part of it to a
            /// visitor.
            pub fn $visit<V: $visitor>(node: To<'_, impl $node>, visitor: &mut V) -> ControlFlow<V::Break> {
                let mut kept = Kept { visitor, broken: None };
                let _ = node.visit(&mut Any(&mut kept));
                kept.broken.map_or(ControlFlow::Continue(()), ControlFlow::Break)
            }

            /// Passes every expression of a statement or a part of it to `see`, including those of
            /// subqueries.
            pub fn $expressions<B>(
                node: To<'_, impl $node>,
                see: impl FnMut(To<'_, Expr>) -> ControlFlow<B>,
            ) -> ControlFlow<B> {
                $visit(node, &mut Expressions(see))
            }

            /// The visitor type that sqlparser's `visit` is compiled for.
            struct Any<'v>(&'v mut dyn $visitor<Break = ()>);

            impl $visitor for Any<'_> {
                type Break = ();

                $(fn $hook(&mut self, node: To<'_, $kind>) -> ControlFlow<()> {
                    self.0.$hook(node)
                })*
            }

            /// Keeps the value that a visitor breaks with.
            struct Kept<'v, V: $visitor> {
                visitor: &'v mut V,
                broken: Option<V::Break>,
            }

            impl<V: $visitor> $visitor for Kept<'_, V> {
                type Break = ();

                $(fn $hook(&mut self, node: To<'_, $kind>) -> ControlFlow<()> {
                    self.visitor.$hook(node).map_break(|broken| self.broken = Some(broken))
                })*
            }

            struct Expressions<F>(F);

            impl<B, F: FnMut(To<'_, Expr>) -> ControlFlow<B>> $visitor for Expressions<F> {
                type Break = B;

                fn $hook_of_expressions(&mut self, expr: To<'_, Expr>) -> ControlFlow<B> {
                    self.0(expr)
                }
            }
        }

        pub use $module::{$expressions, $visit};
    };
}

/// Lists the hooks of a visitor.
macro_rules! walks {
    ($($hook:ident: $kind:ident),*) => {
        walk!(
            read: visit, visit_expressions by pre_visit_expr, of Visit by Visitor, as Shared;
            $($hook: $kind),*
        );
        // Inner expressions first: a replacement is not visited again.
        walk!(
            write: visit_mut, visit_expressions_mut by post_visit_expr, of VisitMut by VisitorMut, as Unique;
            $($hook: $kind),*
        );
    };
}

type Shared<'n, T> = &'n T;
type Unique<'n, T> = &'n mut T;

walks!(
    pre_visit_query: Query,
    post_visit_query: Query,
    pre_visit_select: Select,
    post_visit_select: Select,
    pre_visit_relation: ObjectName,
    post_visit_relation: ObjectName,
    pre_visit_table_factor: TableFactor,
    post_visit_table_factor: TableFactor,
    pre_visit_expr: Expr,
    post_visit_expr: Expr,
    pre_visit_statement: Statement,
    post_visit_statement: Statement,
    pre_visit_value: ValueWithSpan,
    post_visit_value: ValueWithSpan
);
