//! The figures on a terminal, and its keys.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use rpd_core::text::foreign;
use unicode_width::UnicodeWidthChar as _;

use super::model::{Row, Snapshot};
use crate::long_run::size;

/// Size of the screen where the terminal does not say it, in columns and lines.
const USUAL: (usize, usize) = (80, 24);

/// A key of the user's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Letter(char),
    Tab,
    Enter,
    Backspace,
    Escape,
    /// Control and C, or the end of the input.
    Interrupt,
}

/// The keys in bytes that a terminal sends. Sequences of keys without a meaning here are left out.
fn keys_in(bytes: &[u8]) -> Vec<Key> {
    let text = String::from_utf8_lossy(bytes);
    let mut letters = text.chars().peekable();
    let mut keys = Vec::new();
    while let Some(letter) = letters.next() {
        keys.push(match letter {
            '\t' => Key::Tab,
            '\r' | '\n' => Key::Enter,
            '\u{7f}' | '\u{8}' => Key::Backspace,
            '\u{3}' | '\u{4}' => Key::Interrupt,
            '\u{1b}' if letters.next_if(|next| matches!(next, '[' | 'O')).is_some() => {
                // Ends with the first letter behind its parameters.
                while letters
                    .next_if(|next| matches!(next, '0'..='9' | ';'))
                    .is_some()
                {}
                letters.next();
                continue;
            }
            '\u{1b}' => Key::Escape,
            letter if letter.is_control() => continue,
            letter => Key::Letter(letter),
        });
    }
    keys
}

/// Tables, in the order of the keys 1 to 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Kernels,
    Calls,
    Copies,
}

/// Column that orders the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    NewTotal,
    Total,
    Count,
    Max,
    Name,
}

impl Order {
    const ALL: [(Order, &'static str); 5] = [
        (Order::NewTotal, "time now"),
        (Order::Total, "time"),
        (Order::Count, "count"),
        (Order::Max, "longest"),
        (Order::Name, "name"),
    ];

    fn next(self) -> Order {
        let at = Self::ALL.iter().position(|(order, _)| *order == self);
        Self::ALL[(at.unwrap_or(0) + 1) % Self::ALL.len()].0
    }

    fn label(self) -> &'static str {
        let found = Self::ALL.iter().find(|(order, _)| *order == self);
        found.map_or("", |(_, label)| label)
    }
}

/// What a key asks for that the screen cannot do itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The end.
    Quit,
    /// The stack of the hottest call, of this name.
    Stack(String),
}

/// What is shown.
#[derive(Debug)]
pub(super) struct View {
    shown: Shown,
    order: Order,
    filter: String,
    is_typing: bool,
    stack: Option<(String, Vec<String>)>,
}

impl Default for View {
    fn default() -> View {
        View {
            shown: Shown::Kernels,
            order: Order::NewTotal,
            filter: String::new(),
            is_typing: false,
            stack: None,
        }
    }
}

impl View {
    /// Shows a stack instead of the tables, until the next key.
    pub(super) fn show_stack(&mut self, name: String, frames: Vec<String>) {
        self.stack = Some((name, frames));
    }

    /// The rows of the table that is shown, filtered and in order.
    fn rows<'a>(&self, snapshot: &'a Snapshot, shown: Shown) -> Vec<&'a Row> {
        let rows = match shown {
            Shown::Kernels => &snapshot.kernels,
            Shown::Calls => &snapshot.calls,
            Shown::Copies => &snapshot.copies,
        };
        let filter = self.filter.to_lowercase();
        let fits = |row: &&Row| filter.is_empty() || row.name.to_lowercase().contains(&filter);
        let mut rows: Vec<&Row> = rows.iter().filter(fits).collect();
        match self.order {
            Order::NewTotal => rows.sort_by_key(|row| Reverse((row.new_total_ns, row.total_ns))),
            Order::Total => rows.sort_by_key(|row| Reverse(row.total_ns)),
            Order::Count => rows.sort_by_key(|row| Reverse(row.count)),
            Order::Max => rows.sort_by_key(|row| Reverse(row.max_ns)),
            Order::Name => rows.sort_by(|a, b| a.name.cmp(&b.name)),
        }
        rows
    }

    /// Does what a key says.
    pub(super) fn key(&mut self, key: Key, snapshot: &Snapshot) -> Option<Asked> {
        if key == Key::Interrupt {
            return Some(Asked::Quit);
        }
        if self.stack.take().is_some() {
            return None;
        }
        if self.is_typing {
            match key {
                Key::Enter => self.is_typing = false,
                Key::Escape => {
                    self.is_typing = false;
                    self.filter.clear();
                }
                Key::Backspace => {
                    self.filter.pop();
                }
                Key::Letter(letter) if self.filter.len() < 256 => self.filter.push(letter),
                Key::Letter(_) | Key::Tab | Key::Interrupt => {}
            }
            return None;
        }
        match key {
            Key::Letter('q') | Key::Escape => return Some(Asked::Quit),
            Key::Letter('1') => self.shown = Shown::Kernels,
            Key::Letter('2') => self.shown = Shown::Calls,
            Key::Letter('3') => self.shown = Shown::Copies,
            Key::Tab => {
                self.shown = match self.shown {
                    Shown::Kernels => Shown::Calls,
                    Shown::Calls => Shown::Copies,
                    Shown::Copies => Shown::Kernels,
                }
            }
            Key::Letter('o') => self.order = self.order.next(),
            Key::Letter('/') => self.is_typing = true,
            Key::Letter('s') | Key::Enter => {
                let rows = self.rows(snapshot, Shown::Calls);
                return rows.first().map(|row| Asked::Stack(row.name.clone()));
            }
            Key::Letter(_) | Key::Backspace | Key::Interrupt => {}
        }
        None
    }

    /// The lines of the screen, each as long as `width` at most, and `height` of them at most.
    fn lines(&self, snapshot: &Snapshot, (width, height): (usize, usize)) -> Vec<String> {
        let processes = match snapshot.processes.as_slice() {
            [] => "no process runs".to_owned(),
            [one] => format!("process {one}"),
            many => format!("{} processes", many.len()),
        };
        let order = self.order.label();
        let mut lines = vec![format!("rpd top: {processes}, ordered by {order}")];
        // Of many GPUs the tables need some room as well.
        for gpu in snapshot.gpus.iter().take(height / 3) {
            const WIDTH: usize = 20;
            let filled = (gpu.busy * WIDTH as f64).round() as usize;
            let bar = "#".repeat(filled.min(WIDTH));
            let more = if gpu.memory_is_partial {
                " or more"
            } else {
                ""
            };
            lines.push(format!(
                "{:<8}[{bar:<WIDTH$}] {:>3.0} % busy  {}{more} of memory, {} at most",
                gpu.name,
                gpu.busy * 100.0,
                size(gpu.memory_bytes as f64),
                size(gpu.memory_peak_bytes as f64)
            ));
        }
        let room = height.saturating_sub(lines.len() + 1);
        let mut body = match &self.stack {
            Some((name, frames)) => stack_lines(name, frames),
            None => self.table(snapshot, width, room),
        };
        body.resize(room, String::new());
        lines.extend(body);
        lines.push(if self.is_typing {
            format!("names with: {}_", self.filter)
        } else if self.filter.is_empty() {
            "q quit  1 kernels  2 calls  3 copies  o order  / filter  s stack of the hottest call"
                .to_owned()
        } else {
            format!(
                "q quit  1-3 tables  o order  / filter ({})  s stack",
                self.filter
            )
        });
        // A line is text of others: nothing in it moves the cursor.
        let lines = lines.iter().map(|line| cut(&foreign::shown(line), width));
        lines.collect()
    }

    fn table(&self, snapshot: &Snapshot, width: usize, room: usize) -> Vec<String> {
        let title = match self.shown {
            Shown::Kernels => "Kernels",
            Shown::Calls => "Calls",
            Shown::Copies => "Copies",
        };
        let seconds = snapshot.interval_ns as f64 / 1e9;
        // Figures take 65 columns; the name has the others.
        let names = width.saturating_sub(65).max(16);
        let line = |name: &str, figures: [String; 6]| {
            let [count, rate, now, total, longest, bytes] = figures;
            let name = padded(name, names);
            format!("{name} {count:>12} {rate:>10} {now:>8} {total:>10} {longest:>10} {bytes:>9}")
        };
        let heads = ["count", "a second", "now", "time", "longest", "bytes"];
        let mut lines = vec![line(title, heads.map(str::to_owned))];
        for row in self.rows(snapshot, self.shown).into_iter().take(room) {
            let rate = row.new as f64 / seconds.max(1e-3);
            let share = row.new_total_ns as f64 / snapshot.interval_ns.max(1) as f64;
            let figures = [
                row.count.to_string(),
                format!("{rate:.0}"),
                format!("{:.1} %", share * 100.0),
                time(row.total_ns),
                time(row.max_ns),
                size(row.bytes as f64),
            ];
            lines.push(line(&foreign::shown(&row.name), figures));
        }
        lines.truncate(room);
        lines
    }
}

/// The lines of a stack.
fn stack_lines(name: &str, frames: &[String]) -> Vec<String> {
    let mut lines = vec![format!("the stack with most of the time in {name}:")];
    lines.extend(frames.iter().map(|frame| format!("  {frame}")));
    if frames.is_empty() {
        lines.push("  no stacks are recorded: --stacks native records them".to_owned());
    }
    lines
}

/// The begin of a text that takes `width` columns at most.
fn cut(text: &str, width: usize) -> String {
    let mut used = 0;
    let fits = |letter: &char| {
        used += letter.width().unwrap_or(0);
        used <= width
    };
    text.chars().take_while(fits).collect()
}

/// A text that takes `width` columns.
fn padded(text: &str, width: usize) -> String {
    let mut text = cut(text, width);
    let used: usize = text.chars().map(|letter| letter.width().unwrap_or(0)).sum();
    text.push_str(&" ".repeat(width - used));
    text
}

/// A duration for people.
fn time(nanoseconds: u64) -> String {
    match nanoseconds as f64 {
        ns if ns >= 1e9 => format!("{:.2} s", ns / 1e9),
        ns if ns >= 1e6 => format!("{:.2} ms", ns / 1e6),
        ns if ns >= 1e3 => format!("{:.1} us", ns / 1e3),
        ns => format!("{ns:.0} ns"),
    }
}

/// The terminal while figures are on it: another screen than that of the shell, and keys come one by one. It is as before when
/// this value goes.
pub(super) struct Screen {
    before: Termios,
}

/// Begin and end of the other screen, without and with the cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

impl Screen {
    pub(super) fn open() -> Result<Screen> {
        let context = "top: standard input is no terminal; --json needs none";
        let before = tcgetattr(io::stdin()).context(context)?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        // Programs that share the terminal write lines as before.
        raw.output_flags = before.output_flags;
        tcsetattr(io::stdin(), SetArg::TCSANOW, &raw).context(context)?;
        let screen = Screen { before };
        let mut out = io::stdout().lock();
        out.write_all(ENTER.as_bytes())?;
        out.flush()?;
        Ok(screen)
    }

    pub(super) fn draw(&mut self, view: &View, snapshot: &Snapshot) -> Result<()> {
        let size = terminal_size::terminal_size().map_or(USUAL, |(width, height)| {
            (usize::from(width.0), usize::from(height.0))
        });
        let mut text = String::from("\x1b[H");
        let lines = view.lines(snapshot, size);
        for (number, line) in lines.iter().enumerate() {
            let end = if number + 1 < lines.len() {
                "\r\n"
            } else {
                "\x1b[J"
            };
            let _ = write!(text, "{line}\x1b[K{end}");
        }
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        Ok(())
    }

    /// The keys that come before `end`; empty when the time is over, or a moment has passed.
    pub(super) fn keys(&self, end: Instant) -> Result<Vec<Key>> {
        // Short, so that a signal is noticed.
        const STEP: Duration = Duration::from_millis(200);
        let left = end.saturating_duration_since(Instant::now()).min(STEP);
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
        let input = io::stdin();
        let mut ready = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ready, timeout) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => return Ok(Vec::new()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut bytes = [0; 64];
        match nix::unistd::read(input.as_fd(), &mut bytes) {
            // The terminal is gone.
            Ok(0) => Ok(vec![Key::Interrupt]),
            Ok(read) => Ok(keys_in(&bytes[..read])),
            Err(nix::errno::Errno::EINTR) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let mut out = io::stdout().lock();
        // A terminal that is gone needs nothing.
        let _ = out.write_all(LEAVE.as_bytes()).and_then(|()| out.flush());
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::Gpu;
    use super::*;

    fn snapshot() -> Snapshot {
        let row = |name: &str, count, total_ns| Row {
            name: name.to_owned(),
            count,
            new: count,
            total_ns,
            new_total_ns: total_ns,
            ..Row::default()
        };
        Snapshot {
            interval_ns: 1_000_000_000,
            processes: vec![7],
            kernels: vec![row("short", 900, 10), row("slow\u{1b}[2J", 3, 5_000_000)],
            calls: vec![row("hipMalloc", 1, 1), row("hipFree", 2, 9)],
            gpus: vec![Gpu {
                name: "GPU 0".to_owned(),
                busy: 0.5,
                memory_bytes: 3_000_000,
                ..Gpu::default()
            }],
            ..Snapshot::default()
        }
    }

    fn drawn(view: &View) -> String {
        let lines = view.lines(&snapshot(), (100, 12));
        assert!(lines.len() == 12 && lines.iter().all(|line| line.len() <= 100));
        lines.join("\n")
    }

    fn press(view: &mut View, key: Key) -> Option<Asked> {
        view.key(key, &snapshot())
    }

    #[test]
    fn keys_of_a_terminal_are_told_apart_from_sequences() {
        let keys = keys_in("q\u{1b}[A\u{1b}[1;5C/\u{7f}\r\t\u{1b}OP\u{3}\u{1b}".as_bytes());
        let wanted = [
            Key::Letter('q'),
            Key::Letter('/'),
            Key::Backspace,
            Key::Enter,
            Key::Tab,
            Key::Interrupt,
            Key::Escape,
        ];
        assert_eq!(keys, wanted);
    }

    #[test]
    fn screen_shows_rows_in_order_and_nothing_that_moves_the_cursor() {
        let text = drawn(&View::default());
        assert!(text.contains("50 % busy  3.0 MB of memory"), "{text}");
        let (slow, short) = (text.find("slow"), text.find("short"));
        assert!(slow.is_some() && slow < short, "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn keys_choose_table_order_filter_and_stack() {
        let mut view = View::default();
        for key in [
            Key::Letter('/'),
            Key::Letter('S'),
            Key::Letter('h'),
            Key::Enter,
        ] {
            assert_eq!(press(&mut view, key), None);
        }
        let text = drawn(&view);
        assert!(text.contains("short") && !text.contains("slow"), "{text}");
        press(&mut view, Key::Letter('/'));
        press(&mut view, Key::Escape);
        press(&mut view, Key::Letter('o'));
        press(&mut view, Key::Letter('o'));
        let text = drawn(&view);
        assert!(text.find("short") < text.find("slow"), "by count: {text}");
        press(&mut view, Key::Tab);
        assert!(drawn(&view).contains("hipMalloc"));
        let asked = press(&mut view, Key::Letter('s'));
        assert_eq!(asked, Some(Asked::Stack("hipFree".to_owned())));
        view.show_stack("hipFree".to_owned(), vec!["main (app)".to_owned()]);
        assert!(drawn(&view).contains("main (app)"));
        assert_eq!(press(&mut view, Key::Letter('q')), None, "ends the stack");
        assert_eq!(press(&mut view, Key::Letter('q')), Some(Asked::Quit));
    }
}
