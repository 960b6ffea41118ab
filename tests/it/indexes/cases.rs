//! Random cases.

use proptest::prelude::*;

use super::relation::{Cond, Query};
use super::{COLUMNS, Case, FORMULAS, Index, Seeds, Write};

/// One IN at the most: DataFusion 55 takes `NULL NOT IN (1, 2) OR NULL NOT IN (3, 4)` for true.
fn any_cond() -> impl Strategy<Value = Cond> {
    let among = (any::<u8>(), prop::collection::vec(any::<u8>(), 1..5), prop::bool::weighted(0.2))
        .prop_map(|(c, v, n)| Cond::In(c, v, n));
    let rows = (prop::collection::vec(any::<u8>(), 2..4), prop::collection::vec(any::<[u8; 3]>(), 1..4));
    let row_among = (rows, prop::bool::weighted(0.2)).prop_map(|((c, v), n)| Cond::RowIn(c, v, n));
    prop_oneof![
        6 => cond_without_in(),
        1 => row_among,
        2 => among.clone(),
        2 => (among.clone(), cond_without_in()).prop_map(|(a, b)| Cond::And(vec![a, b])),
        1 => (among, cond_without_in()).prop_map(|(a, b)| Cond::Not(Box::new(Cond::Or(vec![a, b])))),
    ]
}

fn cond_without_in() -> impl Strategy<Value = Cond> {
    let leaf = prop_oneof![
        6 => any::<(u8, u8, u8)>().prop_map(|(c, op, v)| Cond::Compare(c, op, v)),
        1 => (any::<u8>(), any::<u8>(), -3i8..4).prop_map(|(c, op, n)| Cond::Between2(c, op, n)),
        2 => (any::<(u8, u8, u8)>(), prop::bool::weighted(0.2))
            .prop_map(|((c, a, b), n)| Cond::Between(c, a, b, n)),
        1 => any::<(u8, bool)>().prop_map(|(c, n)| Cond::Null(c, n)),
        2 => (any::<u8>(), any::<u8>(), prop::bool::weighted(0.2)).prop_map(|(c, p, n)| Cond::Like(c, p, n)),
        1 => any::<(u8, u8, u8)>().prop_map(|(a, op, b)| Cond::Columns(a, op, b)),
        2 => (prop::collection::vec(any::<(u8, u8)>(), 2..4), any::<u8>()).prop_map(|(p, op)| Cond::Row(p, op)),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 1..4).prop_map(Cond::And),
            2 => prop::collection::vec(inner.clone(), 1..4).prop_map(Cond::Or),
            1 => inner.prop_map(|c| Cond::Not(Box::new(c))),
        ]
    })
}

fn any_write() -> impl Strategy<Value = Write> {
    let seeds = any::<Seeds>;
    let plain = prop_oneof![
        prop::collection::vec(seeds(), 1..4).prop_map(Write::Insert),
        (seeds(), any::<u8>()).prop_map(|(s, given)| Write::Upsert(s, given)),
        prop::collection::vec(seeds(), 1..4).prop_map(Write::DoNothing),
        seeds().prop_map(Write::DoUpdate),
        (any::<u8>(), any::<u8>(), any_cond()).prop_map(|(c, v, cond)| Write::Update(c, v, cond)),
        (any::<u8>(), any::<u8>(), any_cond()).prop_map(|(a, b, cond)| Write::Copy(a, b, cond)),
        any_cond().prop_map(Write::Delete),
    ];
    let single = prop_oneof![
        7 => plain.clone(),
        1 => any::<u8>().prop_map(Write::Rebuild),
        1 => (any::<[u8; 3]>(), any::<u8>(), plain)
            .prop_map(|(forms, after, meanwhile)| Write::Rekey(forms, after, Box::new(meanwhile))),
    ];
    single
        .clone()
        .prop_recursive(1, 4, 4, move |inner| {
            prop_oneof![
                6 => single.clone(),
                1 => inner.clone().prop_map(|w| Write::RolledBack(Box::new(w))),
                1 => prop::collection::vec(inner, 1..4).prop_map(Write::Transaction),
            ]
        })
        .prop_map(flat)
}

/// Transactions do not nest.
fn flat(write: Write) -> Write {
    fn leaves(write: Write, out: &mut Vec<Write>) {
        match write {
            Write::Transaction(all) => all.into_iter().for_each(|w| leaves(w, out)),
            Write::RolledBack(inner) => leaves(*inner, out),
            leaf => out.push(leaf),
        }
    }
    let mut all = Vec::new();
    match write {
        Write::Transaction(inner) => {
            leaves(Write::Transaction(inner), &mut all);
            Write::Transaction(all)
        }
        Write::RolledBack(inner) => {
            leaves(*inner, &mut all);
            Write::RolledBack(Box::new(all.pop().unwrap_or(Write::Rebuild(0))))
        }
        leaf => leaf,
    }
}

fn any_index() -> impl Strategy<Value = Index> {
    (
        prop::collection::vec(any::<(u8, u8)>(), 1..4),
        prop::bool::weighted(0.2),
        prop::option::weighted(0.3, any_cond()),
        any::<u8>(),
        any::<bool>(),
    )
        .prop_map(|(parts, unique, filter, include, late)| Index {
            parts,
            unique,
            filter,
            include,
            late,
        })
}

fn any_query() -> impl Strategy<Value = Query> {
    (
        any::<u8>(),
        prop::option::weighted(0.9, any_cond()),
        prop::collection::vec((any::<u8>(), any::<bool>(), prop::option::weighted(0.2, any::<bool>())), 0..3),
        prop::option::weighted(0.4, 0u8..12),
        0u8..3,
        any::<u16>(),
        prop::bool::weighted(0.25),
    )
        .prop_map(|(relation, cond, order, limit, offset, columns, grouped)| Query {
            relation,
            cond,
            order,
            limit,
            offset,
            columns,
            grouped,
        })
}

pub fn any_case() -> impl Strategy<Value = Case> {
    (
        (
            any::<[(u8, u8); COLUMNS]>(),
            1usize..3,
            any::<[(u8, u8); FORMULAS]>(),
            any::<u8>(),
            any::<u8>(),
            any::<bool>(),
        ),
        prop::collection::vec(any_index(), 1..4),
        prop::collection::vec(any::<Seeds>(), 0..40),
        prop::collection::vec(any_write(), 0..8),
        prop::collection::vec(any_query(), 1..queries_max()),
    )
        .prop_map(|(table, indexes, rows, writes, queries)| {
            let (columns, key_columns, formulas, nullable, family, wild) = table;
            Case { columns, key_columns, formulas, nullable, family, wild, indexes, rows, writes, queries }
        })
}

/// Queries of a case; `QUERIES` asks more of each, which is cheaper than more cases.
fn queries_max() -> usize {
    std::env::var("QUERIES").ok().and_then(|n| n.parse().ok()).unwrap_or(8)
}
