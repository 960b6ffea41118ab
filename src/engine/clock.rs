//! The clock: `now()` and its like, where no plan is needed to evaluate them.

use std::time::{SystemTime, UNIX_EPOCH};

use sqlparser::ast::{Expr, FunctionArguments};

use crate::sql::{Clock, table_name_of};
use crate::value::Value;

/// Microseconds since 1970 in UTC.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    // A clock set before 1970 is wrong anyway.
    since.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// The value of an expression that is just a call such as `now()`, given the time `now`.
pub fn told(expr: &Expr, now: impl FnOnce() -> i64) -> Option<Value> {
    match expr {
        Expr::Nested(inner) => told(inner, now),
        Expr::Function(call) => {
            let without_arguments = match &call.args {
                FunctionArguments::None => true,
                FunctionArguments::List(list) => list.args.is_empty() && list.clauses.is_empty(),
                FunctionArguments::Subquery(_) => false,
            };
            if !without_arguments || call.over.is_some() || call.filter.is_some() {
                return None;
            }
            Clock::named(&table_name_of(&call.name).ok()?).map(|clock| clock.at(now()))
        }
        _ => None,
    }
}
