//! Heat maps of SIMULATE and SHOW TRAFFIC.

use super::{simulate, traffic};
use crate::design::heatmap::Heatmap;
use crate::engine::Session;
use crate::error::{Error, Result};
use crate::sql::{Design, Show, Statement, parse};

impl Session {
    /// The heat map of a SIMULATE or SHOW TRAFFIC statement.
    ///
    /// Errors: any other statement; those of the statement itself.
    pub fn heatmap(&mut self, sql: &str) -> Result<Heatmap> {
        self.begin_watch();
        let statement = parse(sql)?;
        let view = self.view()?;
        match &statement {
            Statement::Design(design) if let Design::Simulate(wanted) = &**design => {
                self.database().runtime().block_on(simulate::heatmap(&view, wanted, sql.to_owned()))
            }
            Statement::Show(Show::Traffic { name }) => traffic::heatmap(&view, name, sql.to_owned()),
            other => Err(Error::invalid(format!("there are no pictures of {}", other.kind_name())).hint(
                "SIMULATE WRITES ON t [FROM (query)] [INTO n REGIONS] [UNDER LAYOUT (...), ...], or SHOW TRAFFIC FROM t",
            )),
        }
    }
}
