//! A look at the free space of the disk that is recorded to: one line before it is full.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Part of the disk that is free when the line is printed, whatever is written.
const LEAST_PART: u64 = 50;
/// The most free space for which the part counts: 2 % of a large disk are plenty.
const LEAST: u64 = 1 << 30;
/// Time to the full disk, as things go, at which the line is printed.
const SOON: Duration = Duration::from_secs(30);
/// Time over which is measured how fast the disk fills.
const OVER: Duration = Duration::from_secs(2);
/// Shortest time from which a rate is concluded.
const SHORTEST: Duration = Duration::from_millis(250);

/// Space of a file system, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Space {
    free: u64,
    total: u64,
}

impl Space {
    fn from_path(path: &Path) -> Option<Space> {
        let found = nix::sys::statvfs::statvfs(path).ok()?;
        let unit = found.fragment_size();
        Some(Space {
            free: found.blocks_available().saturating_mul(unit),
            total: found.blocks().saturating_mul(unit),
        })
    }
}

/// Prints one line before the disk of a directory is full.
pub(super) struct DiskWatch {
    directory: PathBuf,
    seen: VecDeque<(Instant, Space)>,
    is_announced: bool,
}

impl DiskWatch {
    pub(super) fn new(directory: &Path) -> DiskWatch {
        DiskWatch {
            directory: directory.to_owned(),
            seen: VecDeque::new(),
            is_announced: false,
        }
    }

    /// Looks at the disk now.
    pub(super) fn look(&mut self) {
        if self.is_announced {
            return;
        }
        let Some(space) = Space::from_path(&self.directory) else {
            return;
        };
        if let Some(line) = self.line(Instant::now(), space) {
            self.is_announced = true;
            eprintln!("rpd: {line}");
        }
    }

    /// The line, if it is time for it.
    fn line(&mut self, now: Instant, space: Space) -> Option<String> {
        self.seen.push_back((now, space));
        while let Some((first, _)) = self.seen.front()
            && now.duration_since(*first) > OVER
        {
            self.seen.pop_front();
        }
        let (since, before) = *self.seen.front()?;
        let time = now.duration_since(since);
        let written = before.free.saturating_sub(space.free);
        let rate = if time >= SHORTEST {
            written as f64 / time.as_secs_f64()
        } else {
            0.0
        };
        let left = (rate > 0.0).then(|| space.free as f64 / rate);
        let is_soon = left.is_some_and(|left| left < SOON.as_secs_f64());
        let is_little = space.free < (space.total / LEAST_PART).min(LEAST);
        if !is_soon && !is_little {
            return None;
        }
        let when = match left {
            Some(left) if is_soon => format!(
                "; {} a minute are written to it, so that it is full in {left:.0} s",
                size(rate * 60.0)
            ),
            _ => String::new(),
        };
        Some(format!(
            "WARNING: {} has {} left{when}; records without room will be counted as dropped: --spool-limit SIZE keeps the \
             latest ones, --rotate writes them out, rpd estimate shows what takes the room",
            self.directory.display(),
            size(space.free as f64)
        ))
    }
}

/// A number of bytes for people.
pub(crate) fn size(bytes: f64) -> String {
    let units = ["B", "KB", "MB", "GB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    match value {
        value if value >= 10.0 || unit == 0 => format!("{value:.0} {}", units[unit]),
        value => format!("{value:.1} {}", units[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line for free spaces that are seen one tenth of a second after the other.
    fn line(total: u64, free: &[u64]) -> Option<String> {
        let mut watch = DiskWatch::new(Path::new("/out"));
        let begin = Instant::now();
        let mut tenths = 0..;
        free.iter().find_map(|&free| {
            let at = begin + Duration::from_millis(100) * tenths.next().expect("endless");
            watch.line(at, Space { free, total })
        })
    }

    #[test]
    fn disk_line_comes_before_the_disk_is_full() {
        const MB: u64 = 1_000_000;
        let filling: Vec<u64> = (0..9).map(|step| (900 - 6 * step) * MB).collect();
        let text = line(1000 * MB, &filling).expect("full in a quarter of a minute");
        assert!(
            text.contains("/out has 882 MB left; 3.6 GB a minute"),
            "{text}"
        );
        assert!(text.contains("it is full in 15 s"), "{text}");
        // The same rate on a larger disk is no reason yet.
        let large: Vec<u64> = (0..9).map(|step| (90_000 - 6 * step) * MB).collect();
        assert_eq!(line(100_000 * MB, &large), None);
        assert_eq!(line(1000 * MB, &[500 * MB; 30]), None, "nothing is written");
        assert!(
            line(1000 * MB, &[19 * MB]).is_some(),
            "there is little left"
        );
        assert_eq!(
            line(1_000_000 * MB, &[2000 * MB]),
            None,
            "much of a large disk"
        );
    }
}
