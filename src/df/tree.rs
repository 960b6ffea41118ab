//! DataFusion's rewrites of trees, compiled once for each type of node: its own are compiled
//! for every closure, which made up a tenth of all code (2026-11-26).

#![expect(clippy::disallowed_methods, reason = "this is where they are called")]

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{Expr, LogicalPlan};

/// The new node, if there is one.
pub fn changed<T>(new: Option<T>, old: T) -> Transformed<T> {
    new.map_or_else(|| Transformed::no(old), Transformed::yes)
}

/// The rewritten node, and whether it has changed.
type Rewritten<T> = Result<Transformed<T>>;

/// A change of one node.
type NodeRewrite<'f, T> = &'f mut dyn FnMut(T) -> Rewritten<T>;

/// `TreeNode::transform_up` and `transform_down`.
pub trait RewriteTree: TreeNode {
    /// Changes a tree, inner nodes first.
    fn rewrite_up(self, mut change: impl FnMut(Self) -> Rewritten<Self>) -> Rewritten<Self> {
        self.transform_up(&mut change as NodeRewrite<'_, Self>)
    }

    /// Changes a tree, outer nodes first.
    fn rewrite_down(self, mut change: impl FnMut(Self) -> Rewritten<Self>) -> Rewritten<Self> {
        self.transform_down(&mut change as NodeRewrite<'_, Self>)
    }
}

impl<T: TreeNode> RewriteTree for T {}

/// The same for plans including their subqueries, and for the expressions of one node.
pub trait RewritePlan: Sized {
    /// Changes a plan and its subqueries, inner nodes first.
    fn rewrite_up_with_subqueries(self, change: impl FnMut(Self) -> Rewritten<Self>) -> Rewritten<Self>;

    /// Changes a plan and its subqueries, outer nodes first.
    fn rewrite_down_with_subqueries(self, change: impl FnMut(Self) -> Rewritten<Self>) -> Rewritten<Self>;

    /// Changes the expressions of this node; `change` sees whole expressions and descends itself.
    fn rewrite_own_expressions(self, change: impl FnMut(Expr) -> Rewritten<Expr>) -> Rewritten<Self>;
}

impl RewritePlan for LogicalPlan {
    fn rewrite_up_with_subqueries(self, mut change: impl FnMut(Self) -> Rewritten<Self>) -> Rewritten<Self> {
        self.transform_up_with_subqueries(&mut change as NodeRewrite<'_, Self>)
    }

    fn rewrite_down_with_subqueries(
        self,
        mut change: impl FnMut(Self) -> Rewritten<Self>,
    ) -> Rewritten<Self> {
        self.transform_down_with_subqueries(&mut change as NodeRewrite<'_, Self>)
    }

    fn rewrite_own_expressions(self, mut change: impl FnMut(Expr) -> Rewritten<Expr>) -> Rewritten<Self> {
        self.map_expressions(&mut change as NodeRewrite<'_, Expr>)
    }
}
