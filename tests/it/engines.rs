//! Databases wherever one can be kept.

use std::path::Path;
use std::sync::Arc;

use rowkeydb::{Database, Engine, Options};

/// Opens the database in `path`, or makes one that this engine keeps.
pub fn open(path: impl AsRef<Path>, engine: Engine) -> Database {
    Database::open_with(path, Options { engine: Some(engine), ..Options::default() }).unwrap()
}

/// Opens the database in `path`, and waits for what was under way when it was left.
pub fn settled(path: impl AsRef<Path>) -> rowkeydb::Result<Database> {
    Database::open_watched(path, Options::default(), Arc::new(|_| {}))
}

/// Runs `test` over an empty database in memory, and one of each engine.
pub fn over_each_store(test: impl Fn(Database)) {
    test(Database::in_memory().unwrap());
    for engine in Engine::ALL {
        let directory = tempfile::tempdir().unwrap();
        test(open(directory.path().join("db"), engine));
    }
}
