//! Long results → `$PAGER`: a writer that holds back one screen and starts the pager at the next line.

use std::env;
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};

/// Size of the screen, in characters.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Lines.
    pub rows: usize,
    /// Characters in a line.
    pub columns: usize,
}

/// Writes to `screen` what fits on it, and to the pager what does not.
pub struct Pager<'a> {
    screen: &'a mut dyn Write,
    state: State,
}

enum State {
    Held {
        text: Vec<u8>,
        lines_left: usize,
    },
    Paging(Child),
    /// The pager could not be started.
    Direct,
}

impl<'a> Pager<'a> {
    /// Pages what is longer than `rows` lines, less two for the prompt.
    pub fn new(screen: &'a mut dyn Write, rows: usize) -> Self {
        Pager { screen, state: State::Held { text: Vec::new(), lines_left: rows.saturating_sub(2) } }
    }

    /// Prints what was held back, or waits until the user leaves the pager.
    pub fn finish(mut self) -> io::Result<()> {
        match &mut self.state {
            State::Held { text, .. } => self.screen.write_all(text)?,
            State::Paging(pager) => {
                drop(pager.stdin.take());
                pager.wait()?;
            }
            State::Direct => {}
        }
        self.screen.flush()
    }

    fn overflow(&mut self) -> io::Result<()> {
        let State::Held { text, .. } = &mut self.state else { return Ok(()) };
        let text = std::mem::take(text);
        self.state = start().map_or(State::Direct, State::Paging);
        self.write_all(&text)
    }
}

impl Write for Pager<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.state {
            State::Paging(pager) => match &mut pager.stdin {
                Some(stdin) => stdin.write(bytes),
                None => Err(io::ErrorKind::BrokenPipe.into()),
            },
            State::Direct => self.screen.write(bytes),
            State::Held { text, lines_left } => {
                text.extend_from_slice(bytes);
                let lines = bytes.iter().filter(|b| **b == b'\n').count();
                match lines_left.checked_sub(lines) {
                    Some(left) => *lines_left = left,
                    None => self.overflow()?,
                }
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.state {
            State::Paging(pager) => pager.stdin.as_mut().map_or(Ok(()), Write::flush),
            State::Direct => self.screen.flush(),
            State::Held { .. } => Ok(()),
        }
    }
}

/// Starts `$PAGER`, or `less`, told to keep long lines whole and to leave the text on the screen.
fn start() -> io::Result<Child> {
    let command = env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty());
    let command = command.unwrap_or_else(|| "less".to_owned());
    let mut words = command.split_whitespace();
    let mut pager = Command::new(words.next().unwrap_or("less"));
    pager.args(words).stdin(Stdio::piped());
    if env::var_os("LESS").is_none() {
        pager.env("LESS", "-RSFX");
    }
    pager.spawn()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_goes_straight_to_the_screen() {
        let mut screen = Vec::new();
        let mut pager = Pager::new(&mut screen, 4);
        pager.write_all(b"one\ntwo\n").unwrap();
        assert!(matches!(pager.state, State::Held { lines_left: 0, .. }));
        pager.finish().unwrap();
        assert_eq!(screen, b"one\ntwo\n");
    }
}
