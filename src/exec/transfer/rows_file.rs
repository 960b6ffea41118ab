//! A temporary file of rows, for a COPY that reads or writes a stream.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use tempfile::TempPath;

use crate::error::{Error, Kind, Result, sqlstate};

/// Rows on their way from or to a stream. The file goes when it is dropped.
#[derive(Debug)]
pub struct RowsFile {
    out: BufWriter<File>,
    path: TempPath,
}

impl RowsFile {
    /// An empty file in a folder, or in the system's temporary one. Errors: `Unavailable` when it cannot be made.
    pub fn create(folder: Option<&Path>) -> Result<RowsFile> {
        let file = match folder {
            Some(folder) => {
                std::fs::create_dir_all(folder).and_then(|()| tempfile::NamedTempFile::new_in(folder))
            }
            None => tempfile::NamedTempFile::new(),
        };
        let (file, path) = file.map_err(unwritable)?.into_parts();
        Ok(RowsFile { out: BufWriter::with_capacity(1 << 16, file), path })
    }

    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(unwritable)
    }

    /// Adds all that a reader gives.
    pub fn add_all(&mut self, from: &mut dyn io::Read) -> Result<()> {
        io::copy(from, &mut self.out).map(drop).map_err(unwritable)
    }

    /// Where the bytes are. Errors: as [`RowsFile::add`].
    pub fn written(&mut self) -> Result<&Path> {
        self.out.flush().map_err(unwritable)?;
        Ok(&self.path)
    }

    /// Copies the bytes to `out`.
    pub fn copy_to(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.out.flush()?;
        io::copy(&mut File::open(&self.path)?, out).map(drop)
    }
}

fn unwritable(e: io::Error) -> Error {
    Error::new(Kind::Unavailable, "the rows of this COPY cannot be kept in a temporary file")
        .why(e.to_string())
        .hint("see that the disk has room")
        .state(sqlstate::IO)
        .caused_by(e)
}
