//! Selection of the frames of a deep stack that are kept, so that as many are shown as were requested.

use crate::options::FrameClass;

/// Entries of a path that are kept at its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    /// Number of outermost entries that are kept.
    pub(crate) outer: usize,
    /// Number of innermost entries that are kept.
    pub(crate) inner: usize,
}

/// The ends of a path, outermost entry first, of which `depth` frames are shown: a quarter of them the outermost. `None` when all
/// are kept.
///
/// The innermost frames of profiler and runtimes are shown as one, the call. Other frames of the profiler are not shown, nor
/// are those of the interpreter beside frames of Python.
pub(crate) fn ends(
    path: &[u32],
    depth: usize,
    class_of: impl Fn(u32) -> FrameClass,
) -> Option<Ends> {
    if depth == 0 || path.len() <= depth {
        return None;
    }
    let is_entered = |location: &&u32| {
        matches!(
            class_of(**location),
            FrameClass::Profiler | FrameClass::Runtime
        )
    };
    // Reports show the frames between the program and the traced function as one, the call.
    let entered = path.iter().rev().take_while(is_entered).count();
    let callers = &path[..path.len() - entered];
    let has_python = callers
        .iter()
        .any(|location| class_of(*location) == FrameClass::Python);
    let is_shown = |location: u32| match class_of(location) {
        FrameClass::Profiler => false,
        FrameClass::Interpreter => !has_python,
        FrameClass::Runtime | FrameClass::Python | FrameClass::Other => true,
    };
    // Only frames that are shown count: else a stack of hidden frames would use up the depth.
    let shown = callers
        .iter()
        .filter(|location| is_shown(**location))
        .count();
    let call = usize::from(entered > 0);
    if shown + call <= depth {
        return None;
    }
    // Both ends matter: the call with its nearest callers, and the entry of the program or thread.
    let outer = depth / 4;
    Some(Ends {
        outer: entries_with(outer, callers.iter(), is_shown),
        inner: entered + entries_with(depth - outer - call, callers.iter().rev(), is_shown),
    })
}

/// Number of entries up to the last of `count` that are shown.
fn entries_with<'a>(
    count: usize,
    entries: impl Iterator<Item = &'a u32>,
    is_shown: impl Fn(u32) -> bool,
) -> usize {
    let mut left = count;
    let up_to_last = entries.take_while(|location| {
        let is_wanted = left > 0;
        left -= usize::from(is_wanted && is_shown(**location));
        is_wanted
    });
    up_to_last.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ends of a stack that is described by a letter for each frame, outermost first.
    fn ends_of(frames: &str, depth: usize) -> Option<(&str, &str)> {
        let path: Vec<u32> = (0..frames.len() as u32).collect();
        let class = |location: u32| match frames.as_bytes()[location as usize] {
            b'p' => FrameClass::Profiler,
            b'r' => FrameClass::Runtime,
            b'i' => FrameClass::Interpreter,
            b'y' => FrameClass::Python,
            _ => FrameClass::Other,
        };
        let Ends { outer, inner } = ends(&path, depth, class)?;
        Some((&frames[..outer], &frames[frames.len() - inner..]))
    }

    #[test]
    fn cut_ends_do_not_count_frames_that_are_not_shown() {
        // The call, and seven of the program.
        assert_eq!(ends_of("abcdefgrrpp", 8), None);
        assert_eq!(ends_of("abcdefgrrpp", 4), Some(("a", "fgrrpp")));
        assert_eq!(ends_of("abcdefgrrpp", 1), Some(("", "rrpp")));
        assert_eq!(ends_of("apbpcpdpefgrp", 4), Some(("a", "fgrp")));
        assert_eq!(ends_of("abpcdefgrp", 8), None);
    }

    #[test]
    fn cut_ends_count_interpreter_frames_only_without_python() {
        assert_eq!(ends_of("aiiyiiyiiybrp", 6), None);
        assert_eq!(ends_of("aiiyiiyiiybrp", 4), Some(("a", "ybrp")));
        assert_eq!(ends_of("aiibrp", 4), Some(("a", "ibrp")));
    }

    #[test]
    fn cut_ends_count_every_entry_without_classes() {
        assert_eq!(ends_of("abcdefgh", 8), None);
        assert_eq!(ends_of("abcdefgh", 4), Some(("a", "fgh")));
        assert_eq!(ends_of("abcdefgh", 0), None);
    }
}
