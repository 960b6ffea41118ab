//! A progress line for long statements, at the bottom of the terminal.
//!
//! It appears after [`PATIENCE`], so that quick statements do not flicker, and disappears when the statement
//! ends, however it ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;

use crate::engine::{OnProgress, Progress};

/// How long a statement may take before its progress is shown.
const PATIENCE: Duration = Duration::from_millis(400);

/// The progress line. Clones share it.
#[derive(Clone, Default)]
pub struct ProgressLine(Arc<Mutex<Option<Running>>>);

struct Running {
    label: String,
    since: Instant,
    /// Started with the statement, so that it knows the speed when it is shown.
    bar: ProgressBar,
    is_shown: bool,
}

impl ProgressLine {
    /// The progress callback. Without a terminal on stderr, indicatif draws nothing.
    pub fn observer(&self) -> OnProgress {
        let line = self.clone();
        Arc::new(move |progress| line.show(progress))
    }

    /// Removes the line, if it is shown.
    pub fn clear(&self) {
        if let Some(running) = self.0.lock().take() {
            running.bar.finish_and_clear();
        }
    }

    fn show(&self, progress: &Progress) {
        if progress.finished {
            return self.clear();
        }
        let mut running = self.0.lock();
        if running.as_ref().is_none_or(|r| r.label != progress.label) {
            let (label, bar) = (progress.label.clone(), bar(progress));
            if let Some(old) = running.replace(Running { label, since: Instant::now(), bar, is_shown: false })
            {
                old.bar.finish_and_clear();
            }
        }
        let Some(running) = running.as_mut() else { return };
        if !running.is_shown && running.since.elapsed() >= PATIENCE {
            running.bar.set_draw_target(ProgressDrawTarget::stderr());
            running.is_shown = true;
        }
        running.bar.set_position(progress.done);
    }
}

fn bar(progress: &Progress) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(progress.total, ProgressDrawTarget::hidden());
    let style = ProgressStyle::with_template(template(progress));
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_prefix(progress.unit);
    bar.set_message(progress.label.clone());
    bar
}

fn template(progress: &Progress) -> &'static str {
    match (progress.unit, progress.total) {
        ("bytes", Some(_)) => {
            "{msg} {wide_bar} {binary_bytes} of {binary_total_bytes} ({binary_bytes_per_sec}, {eta} left)"
        }
        ("bytes", None) => "{spinner} {msg} {binary_bytes} ({binary_bytes_per_sec})",
        (_, Some(_)) => "{msg} {wide_bar} {human_pos} of {human_len} {prefix} ({per_sec:0}, {eta} left)",
        (_, None) => "{spinner} {msg} {human_pos} {prefix} ({per_sec:0})",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(label: &str, done: u64, finished: bool) -> Progress {
        Progress { label: label.into(), done, total: Some(10), unit: "rows", finished }
    }

    #[test]
    fn quick_statements_show_nothing() {
        let line = ProgressLine::default();
        line.observer()(&step("load", 1, false));
        assert!(line.0.lock().as_ref().is_some_and(|running| !running.is_shown));
        line.observer()(&step("load", 10, true));
        assert!(line.0.lock().is_none());
    }

    #[test]
    fn a_new_label_starts_a_new_line() {
        let line = ProgressLine::default();
        line.observer()(&step("load", 1, false));
        if let Some(running) = line.0.lock().as_mut() {
            running.since -= PATIENCE;
        }
        line.observer()(&step("load", 2, false));
        assert!(line.0.lock().as_ref().is_some_and(|running| running.is_shown));
        line.observer()(&step("index", 1, false));
        assert!(line.0.lock().as_ref().is_some_and(|running| !running.is_shown));
        line.clear();
    }

    #[test]
    fn every_template_parses() {
        for (unit, total) in [("rows", Some(1)), ("bytes", Some(1)), ("bytes", None), ("entries", None)] {
            let progress = Progress { label: "x".into(), done: 0, total, unit, finished: false };
            assert!(ProgressStyle::with_template(template(&progress)).is_ok());
        }
    }
}
