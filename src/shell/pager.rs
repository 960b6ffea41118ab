//! Sends long results to `$PAGER`: holds back one screen and starts the pager at the next line.

use std::env;
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Size of the terminal, in characters.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Lines.
    pub rows: usize,
    /// Characters in a line.
    pub columns: usize,
}

impl Screen {
    /// Lines of a result that does not need the pager: the prompt takes two.
    pub fn unpaged(self) -> usize {
        self.rows.saturating_sub(2)
    }
}

/// Writes text that fits the screen to `screen`, longer text to the pager.
pub struct Pager<'a> {
    screen: &'a mut dyn Write,
    command: String,
    state: State,
    /// How long the pager kept its writer waiting: while the user reads, nothing is computed.
    waited: Duration,
}

enum State {
    Held {
        text: Vec<u8>,
        lines_left: usize,
    },
    Paging(Child),
    /// The pager could not be started: write directly.
    Direct,
}

impl<'a> Pager<'a> {
    /// Pages text longer than `lines` with `$PAGER` or `less`.
    pub fn new(screen: &'a mut dyn Write, lines: usize) -> Self {
        let command = env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty());
        Self::with_command(screen, lines, command.unwrap_or_else(|| "less".to_owned()))
    }

    fn with_command(screen: &'a mut dyn Write, lines: usize, command: String) -> Self {
        let state = State::Held { text: Vec::new(), lines_left: lines };
        Pager { screen, command, state, waited: Duration::ZERO }
    }

    /// Prints the held text, or waits until the user leaves the pager. Gives how long that took in all.
    pub fn finish(mut self) -> io::Result<Duration> {
        let began = Instant::now();
        match &mut self.state {
            State::Held { text, .. } => self.screen.write_all(text)?,
            State::Paging(pager) => {
                drop(pager.stdin.take());
                pager.wait()?;
                self.waited += began.elapsed();
            }
            State::Direct => {}
        }
        self.screen.flush()?;
        Ok(self.waited)
    }

    fn overflow(&mut self) -> io::Result<()> {
        let State::Held { text, .. } = &mut self.state else { return Ok(()) };
        let text = std::mem::take(text);
        self.state = start(&self.command).map_or(State::Direct, State::Paging);
        self.write_all(&text)
    }
}

impl Write for Pager<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.state {
            State::Paging(pager) => {
                let began = Instant::now();
                let stdin = pager.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
                let written = stdin.write(bytes);
                self.waited += began.elapsed();
                written
            }
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

/// Starts a pager. `less` is told not to wrap long lines, to show colours, to quit by itself after a short
/// text and to leave it on the screen.
fn start(command: &str) -> io::Result<Child> {
    let mut words = command.split_whitespace();
    let mut pager = Command::new(words.next().unwrap_or_default());
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
        let mut pager = Pager::new(&mut screen, 2);
        pager.write_all(b"one\ntwo\n").unwrap();
        assert!(matches!(pager.state, State::Held { lines_left: 0, .. }));
        pager.finish().unwrap();
        assert_eq!(screen, b"one\ntwo\n");
    }

    #[test]
    fn what_does_not_fit_goes_through_the_pager() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut screen = Vec::new();
        let command = format!("cp /dev/stdin {}", file.path().display());
        let mut pager = Pager::with_command(&mut screen, 2, command);
        pager.write_all(b"one\ntwo\n").unwrap();
        pager.write_all(b"three\n").unwrap();
        pager.finish().unwrap();
        assert_eq!(std::fs::read(file.path()).unwrap(), b"one\ntwo\nthree\n");
        assert!(screen.is_empty());
    }

    #[test]
    fn the_time_that_the_user_takes_is_told() {
        let mut screen = Vec::new();
        let mut pager = Pager::with_command(&mut screen, 0, "sleep 0.3".to_owned());
        pager.write_all(b"one\n").unwrap();
        assert!(pager.finish().unwrap() >= Duration::from_millis(290));
        let mut pager = Pager::with_command(&mut screen, 1, "sleep 9".to_owned());
        pager.write_all(b"one\n").unwrap();
        assert_eq!(pager.finish().unwrap(), Duration::ZERO);
    }

    #[test]
    fn without_a_pager_everything_goes_to_the_screen() {
        let mut screen = Vec::new();
        let mut pager = Pager::with_command(&mut screen, 0, "no-such-pager".to_owned());
        pager.write_all(b"one\n").unwrap();
        pager.write_all(b"two\n").unwrap();
        pager.finish().unwrap();
        assert_eq!(screen, b"one\ntwo\n");
    }
}
