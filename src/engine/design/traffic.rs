//! SHOW TRAFFIC: what is read and written where, as it goes on.

use arrow::array::RecordBatch;
use sqlparser::ast::Ident;

use crate::engine::show::{numbers, rows_of, text};
use crate::engine::view::View;
use crate::error::{Error, Result, sqlstate};
use crate::schema::{Access, Slice, TableDef};
use crate::sql::name_sql;

/// What was done in each region.
pub fn done(table: &TableDef, access: Access) -> Vec<i64> {
    let counts = table.traffic.counts();
    (0..=table.splits.len()).map(|at| counts.get(at).map_or(0, |n| n[access as usize] as i64)).collect()
}

/// SHOW TRAFFIC: a row for each region of a table, with pictures of the last minutes; nothing is read for it.
pub fn show(view: &View, name: &Ident) -> Result<RecordBatch> {
    let table = view.table(name)?;
    if table.splits.is_empty() {
        return Err(Error::invalid(format!("table \"{}\" has one region", table.name))
            .why("what is read and written is counted region by region")
            .hint(format!("ALTER TABLE {} SPLIT INTO 16 FROM DATA", name_sql(&table.name)))
            .state(sqlstate::OBJECT_STATE));
    }
    let n = table.splits.len() + 1;
    let cuts = table.splits.iter().map(|key| table.key.show(key));
    let (slices, now) = table.traffic.slices();
    let lately = |access| text(pictures(&slices, now, n, access));
    rows_of(vec![
        ("region", numbers((1..=n as i64).collect())),
        ("from", text(std::iter::once("-∞".to_owned()).chain(cuts).collect())),
        ("reads", numbers(done(&table, Access::Read))),
        ("writes", numbers(done(&table, Access::Write))),
        ("reads_lately", lately(Access::Read)),
        ("writes_lately", lately(Access::Write)),
    ])
}

/// Levels of a picture: nothing, then eighths of the most there is.
const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One region a line, one slice of time a character, the one that goes on last. As high as the region has a share
/// of the most that any region had in a slice.
fn pictures(slices: &[Slice], now: u64, regions: usize, access: Access) -> Vec<String> {
    let most = slices.iter().flat_map(|slice| &slice.counts).map(|n| n[access as usize]).max().unwrap_or(0);
    let first = slices.first().map_or(now, |slice| slice.number);
    let mut lines = vec![vec![LEVELS[0]; (now - first) as usize + 1]; regions];
    for slice in slices {
        for (line, counts) in lines.iter_mut().zip(&slice.counts) {
            let level = (counts[access as usize] * 8).div_ceil(most.max(1));
            line[(slice.number - first) as usize] = LEVELS[level as usize];
        }
    }
    lines.into_iter().map(|line| line.into_iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_a_line_a_region_and_a_character_a_slice() {
        let slice = |number, writes: [u64; 3]| Slice { number, counts: writes.map(|n| [1, n]).to_vec() };
        let slices = [slice(10, [800, 0, 1]), slice(12, [400, 100, 0])];
        assert_eq!(pictures(&slices, 13, 3, Access::Write), ["█ ▄ ", "  ▁ ", "▁   "]);
        assert_eq!(pictures(&slices, 12, 3, Access::Read), ["█ █"; 3]);
        assert_eq!(pictures(&[], 5, 2, Access::Read), [" ", " "]);
    }
}
