//! SQL functions that DataFusion lacks or that differ here: the key transforms, explained keys, and more.

mod age;
mod avg;
mod coalesce;
mod date_bin;
mod date_trunc;
pub(super) mod described;
pub(super) mod exact_sum;
mod explained;
mod interval_sum;
mod json;
pub(super) mod json_building;
mod min_max;
mod moments;
mod moving;
mod now;
mod of_bytes;
mod percentile_disc;
mod percentiles;
mod places;
mod printf;
pub(super) mod replacement;
mod row_function;
pub(super) mod series;
mod sqlite_times;
mod string_agg;
pub(super) mod table_functions;
mod texts;
mod times;
mod tpch;
mod type_names;

use std::sync::Arc;

use datafusion::execution::FunctionRegistry;
use datafusion::execution::context::SessionState;
use datafusion::functions_aggregate::median::Median;
use datafusion::functions_aggregate::min_max::{Max, Min};
use datafusion::functions_aggregate::percentile_cont::PercentileCont;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, Signature, Volatility, WindowUDF};

use self::age::Age;
use self::avg::RoundedAvg;
use self::coalesce::Coalesce;
use self::date_bin::DateBin;
use self::date_trunc::DateTrunc;
use self::exact_sum::ExactSum;
pub use self::explained::{ROWKEY_EXPLAIN, rowkey_explain};
use self::min_max::OfGroups;
use self::moments::OfMoments;
use self::now::Now;
use self::of_bytes::OfBytes;
use self::percentile_disc::PercentileDisc;
use self::percentiles::Exact;
use self::places::{PLACES, Place};
use self::replacement::{REPLACEMENT, regexp_replacement};
pub use self::row_function::{FunctionBuffers, row_function};
use self::row_function::{Plain, RowFunction};
use self::string_agg::SortedStrings;
use self::texts::{bucket, code, hex, length, lpad, md5, octet_length, quote, repeat, rpad};
pub use self::times::{DATE_OF_PATTERN, TIME_OF_PATTERN};
use self::times::{date_of_pattern, make_timestamp, time_of_pattern, to_char};
use self::type_names::{pg_type_of, type_of};
use crate::df::expressions::intervals::IntervalProducts;
use crate::df::expressions::text;
use crate::value::{ColumnType, ValueRef};

/// Registers the functions in a session.
pub fn register(state: &mut SessionState) {
    for aggregate in [
        AggregateUDF::new_from_impl(ExactSum::default()),
        AggregateUDF::new_from_impl(RoundedAvg::default()),
        AggregateUDF::new_from_impl(SortedStrings::default()),
        AggregateUDF::new_from_impl(OfGroups(Min::new())),
        AggregateUDF::new_from_impl(OfGroups(Max::new())),
        AggregateUDF::new_from_impl(Exact(PercentileCont::new())),
        AggregateUDF::new_from_impl(Exact(Median::new())),
        AggregateUDF::new_from_impl(PercentileDisc::default()),
    ] {
        let _ = state.register_udaf(Arc::new(aggregate));
    }
    for aggregate in OfMoments::all(&|name| state.udaf(name)) {
        let _ = state.register_udaf(Arc::new(AggregateUDF::new_from_impl(aggregate)));
    }
    let _ = state.register_udf(Arc::new(ScalarUDF::new_from_impl(DateBin::default())));
    let _ = state.register_udf(Arc::new(ScalarUDF::new_from_impl(DateTrunc::default())));
    let _ = state.register_udf(Arc::new(ScalarUDF::new_from_impl(Age::default())));
    let _ = state.register_udf(Arc::new(ScalarUDF::new_from_impl(Coalesce::default())));
    let _ = state.register_udf(Arc::new(ScalarUDF::new_from_impl(Now::default())));
    let of_texts = [state.udf("substr").map(OfBytes::substr), state.udf("strpos").map(OfBytes::strpos)];
    for with_bytes in of_texts.into_iter().flatten() {
        let _ = state.register_udf(Arc::new(ScalarUDF::new_from_impl(with_bytes)));
    }
    let aliases = [
        ("sign", "signum"),
        ("ceiling", "ceil"),
        ("gen_random_uuid", "uuid"),
        ("char", "chr"),
        ("unicode", "ascii"),
    ];
    for (alias, name) in aliases {
        if let Ok(function) = state.udf(name) {
            let _ = state.register_udf(Arc::new((*function).clone().with_aliases([alias])));
        }
    }
    for (alias, name) in [("every", "bool_and"), ("group_concat", "string_agg")] {
        if let Ok(function) = state.udaf(name) {
            let _ = state.register_udaf(Arc::new((*function).clone().with_aliases([alias])));
        }
    }
    for place in PLACES {
        if let Ok(function) = state.udwf(place) {
            let _ = state.register_udwf(Arc::new(WindowUDF::new_from_impl(Place(function))));
        }
    }
    let _ = state.register_expr_planner(Arc::new(IntervalProducts));
    let _ = state.register_expr_planner(Arc::new(text::TruthOperands));
    for cast in text::casts() {
        let _ = state.register_udf(Arc::new(cast));
    }
    let functions: [(&'static str, Plain, ColumnType); 25] = [
        ("to_char", to_char, ColumnType::Varchar),
        ("md5_bucket", bucket, ColumnType::Varchar),
        ("code", code, ColumnType::Varchar),
        ("octet_length", octet_length, ColumnType::BigInt),
        ("length", length, ColumnType::BigInt),
        ("md5", md5, ColumnType::Varchar),
        ("lpad", lpad, ColumnType::Varchar),
        ("rpad", rpad, ColumnType::Varchar),
        ("repeat", repeat, ColumnType::Varchar),
        ("typeof", type_of, ColumnType::Varchar),
        ("pg_typeof", pg_type_of, ColumnType::Varchar),
        ("make_timestamp", make_timestamp, ColumnType::Timestamp),
        ("hex", hex, ColumnType::Varchar),
        ("quote", quote, ColumnType::Varchar),
        ("printf", printf::printf, ColumnType::Varchar),
        ("format", printf::printf, ColumnType::Varchar),
        ("date", sqlite_times::date, ColumnType::Date),
        ("datetime", sqlite_times::datetime, ColumnType::Timestamp),
        ("time", sqlite_times::time, ColumnType::Varchar),
        ("unixepoch", sqlite_times::unixepoch, ColumnType::BigInt),
        ("julianday", sqlite_times::julianday, ColumnType::Double),
        ("strftime", sqlite_times::strftime, ColumnType::Varchar),
        (TIME_OF_PATTERN, time_of_pattern, ColumnType::Timestamp),
        (DATE_OF_PATTERN, date_of_pattern, ColumnType::Date),
        (REPLACEMENT, regexp_replacement, ColumnType::Varchar),
    ];
    for (name, body, output) in functions {
        // Registering never fails: it replaces a function of the same name.
        let _ = state.register_udf(Arc::new(row_function(name, body, output)));
    }
    json::register(state);
    json_building::register(state);
    series::register(state);
    state.register_udtf("tpch", Arc::new(tpch::Tpch));
    let facts: [(&'static str, Plain); 6] = [
        ("version", |_, _| Ok(ValueRef::Text(concat!("RowkeyDB ", env!("CARGO_PKG_VERSION"))))),
        // There are no users: who opens the folder may do anything.
        ("current_user", |_, _| Ok(ValueRef::Text("rowkeydb"))),
        ("session_user", |_, _| Ok(ValueRef::Text("rowkeydb"))),
        ("current_database", |_, _| Ok(ValueRef::Text("rowkeydb"))),
        ("current_catalog", |_, _| Ok(ValueRef::Text("rowkeydb"))),
        ("current_schema", |_, _| Ok(ValueRef::Text("public"))),
    ];
    for (name, body) in facts {
        let fact = RowFunction::new(name, body, ColumnType::Varchar)
            .taking(Signature::nullary(Volatility::Immutable));
        let _ = state.register_udf(Arc::new(ScalarUDF::new_from_impl(fact)));
    }
}
