//! One row by its key, again and again: from parameters to key bytes without planning.
//!
//! `WHERE order_id = $1`, where that is all the rowkey is made of, leads to one GET whatever the value is. What
//! the planner found for the first value holds for every other that the key can be made of; the rest (NULL, a
//! number too wide, text that has to be read) takes the planner's way again.

use super::template::Template;
use crate::access::{Access, Method, Path};
use crate::key::{ColumnId, Rowkey};
use crate::plan::{CmpOp, Field, Predicate};
use crate::schema::TableDef;
use crate::value::{Value, ValueRef};

/// Which parameter each key column equals.
#[derive(Clone, Debug)]
pub struct Point(Vec<(ColumnId, usize)>);

impl Point {
    /// `None` unless the filters fix each key column, all of them integers, and nothing else, and `access` is the one
    /// GET that this should lead to.
    pub fn new(table: &TableDef, filters: &[Template], access: &Access) -> Option<Point> {
        let is_get = matches!(&access.method, Method::Get(keys) if keys.len() == 1)
            && access.path == Path::Primary
            && access.filter.is_true();
        let column = |filter: &Template| match filter {
            Template::Compare { field: Field::Column(id), op: CmpOp::Eq, param, .. } => {
                table.column(*id).ty.is_integer().then_some((*id, *param))
            }
            _ => None,
        };
        let mut fixed: Vec<(ColumnId, usize)> = filters.iter().map(column).collect::<Option<_>>()?;
        fixed.sort_unstable();
        let mut wanted = table.key.columns();
        wanted.sort_unstable();
        let is_all = fixed.iter().map(|(id, _)| id).eq(&wanted);
        (is_get && is_all).then_some(Point(fixed))
    }

    /// The access for these parameters; `None` if the planner has to say.
    pub fn access(&self, table: &TableDef, params: &[Value]) -> Option<Access> {
        for (id, param) in &self.0 {
            let Value::Int(value) = *params.get(*param)? else { return None };
            let (least, greatest) = table.column(*id).ty.integer_bounds()?;
            (least..=greatest).contains(&value).then_some(())?;
        }
        let value = |id: ColumnId| {
            let fixed = self.0.iter().find(|(column, _)| *column == id);
            fixed.map_or(ValueRef::Null, |(_, param)| params[*param].as_ref())
        };
        let mut key = Vec::with_capacity(32);
        table.key.encode_values(&value, &|id| table.column_name(id), 0, &mut key).ok()?;
        Some(Access::of_keys(vec![Rowkey::new(key)], Predicate::True, 1.0))
    }
}
