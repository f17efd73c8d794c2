//! Progress of a capture on standard error: a line that changes on a terminal, one every ten seconds elsewhere.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// Shortest time between two updates on a terminal.
const TICK: Duration = Duration::from_millis(100);
/// Time between two lines where standard error is not a terminal.
const PLAIN_TICK: Duration = Duration::from_secs(10);

/// The progress line on standard error.
pub(super) struct Progress {
    terminal: bool,
    quiet: bool,
    shown: bool,
    last: Instant,
}

impl Progress {
    pub(super) fn new(quiet: bool) -> Progress {
        Progress {
            terminal: std::io::stderr().is_terminal(),
            quiet,
            shown: false,
            last: Instant::now(),
        }
    }

    /// Shows the progress: calls, bytes of data, bytes that wait.
    pub(super) fn show(&mut self, calls: u64, data: u64, waiting: u64) {
        let tick = if self.terminal { TICK } else { PLAIN_TICK };
        if self.quiet || self.last.elapsed() < tick {
            return;
        }
        self.last = Instant::now();
        let text = format!(
            "{calls} calls, {} of data, {} waiting",
            bytes(data),
            bytes(waiting)
        );
        if self.terminal {
            self.shown = true;
            let _ = write!(std::io::stderr(), "\rrpd: {text}\x1b[K");
        } else {
            eprintln!("rpd: {text}");
        }
    }

    /// Removes the line from the terminal.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// A number of bytes for people.
pub(super) fn bytes(count: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{count} B"),
        _ => format!("{value:.1} {}", units[unit]),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_are_printed_in_binary_units() {
        let texts = [0, 1023, 1024, 1536, 3 << 30].map(super::bytes);
        assert_eq!(texts, ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "3.0 GiB"]);
    }
}
