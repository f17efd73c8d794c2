//! Options of the collector for call stacks, and the selection of the operations that have stacks.

/// Selection of the frames of stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum StackMode {
    /// No stacks are taken.
    #[default]
    Off,
    /// Stacks have native frames only.
    Native,
    /// Stacks have Python frames only.
    Python,
    /// Stacks have native frames, with the Python frames at their places among them.
    Merged,
}

impl StackMode {
    /// The words of the command line, in the order of its help.
    pub const WORDS: &'static [&'static str] = &["off", "native", "python", "merged"];

    /// The word of the command line and of the collector's options.
    pub const fn word(self) -> &'static str {
        match self {
            StackMode::Off => "off",
            StackMode::Native => "native",
            StackMode::Python => "python",
            StackMode::Merged => "merged",
        }
    }

    /// Reads [`StackMode::word`]; `None` for any other word.
    pub fn from_word(word: &str) -> Option<StackMode> {
        use StackMode::{Merged, Native, Off, Python};
        [Off, Native, Python, Merged]
            .into_iter()
            .find(|mode| mode.word() == word)
    }
}

/// Options of the collector for call stacks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct StackOptions {
    /// Frames that stacks have.
    pub mode: StackMode,
    /// Globs of the operations that have stacks, as [`picks`] reads them.
    pub apis: Vec<String>,
    /// Frames that are kept of a stack; 0 is all of them.
    pub depth: u32,
    /// Take a stack of one call in this many, of each operation; 0 and 1 are every call.
    pub every: u32,
    /// Keep stacks only of calls that took at least this many nanoseconds.
    pub min_duration: u64,
}

/// The operations that have stacks when none are named: HIP calls.
pub const DEFAULT_APIS: [&str; 3] = ["hip*", "__hip*", "cu*"];

/// Frames that are kept of a stack when nothing else is requested.
pub const DEFAULT_DEPTH: u32 = 512;

impl Default for StackOptions {
    fn default() -> StackOptions {
        StackOptions {
            mode: StackMode::Off,
            apis: DEFAULT_APIS.map(str::to_owned).to_vec(),
            depth: DEFAULT_DEPTH,
            every: 1,
            min_duration: 0,
        }
    }
}

impl StackOptions {
    /// Whether stacks are taken at all.
    pub fn any(&self) -> bool {
        self.mode != StackMode::Off
    }
}

/// Whether `text` is a glob that [`picks`] can read and that names of operations may match.
pub fn is_glob(text: &str) -> bool {
    let pattern = text.strip_prefix('!').unwrap_or(text);
    let may_stand = |byte: u8| byte.is_ascii_alphanumeric() || b"_*?".contains(&byte);
    !pattern.is_empty() && pattern.bytes().all(may_stand)
}

/// Whether the operation `name` is picked by `globs`, in which `*` stands for any text and `?` for one character. The
/// last glob that matches decides; one that begins with `!` leaves out. A name that none matches is picked when the first
/// glob leaves out, since then the others are meant.
pub fn picks(globs: &[String], name: &str) -> bool {
    let leaves_out = |glob: &String| glob.starts_with('!');
    let mut picked = globs.first().is_some_and(leaves_out);
    for glob in globs {
        let (pattern, taken) = match glob.strip_prefix('!') {
            Some(pattern) => (pattern, false),
            None => (glob.as_str(), true),
        };
        if matches_glob(pattern, name) {
            picked = taken;
        }
    }
    picked
}

/// Whether `pattern`, in which `*` stands for any text and `?` for one byte, matches the whole of `name`.
pub fn matches_glob(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut from) = (0, 0);
    // Position to continue from after a mismatch: after the last star, which then matches one more character.
    let mut star: Option<(usize, usize)> = None;
    while from < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at + 1, from));
                at += 1;
            }
            Some(&wanted) if wanted == b'?' || wanted == name[from] => {
                at += 1;
                from += 1;
            }
            _ => match star {
                Some((behind, taken)) => {
                    star = Some((behind, taken + 1));
                    (at, from) = (behind, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&left| left == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glob_matches_stars_and_question_marks() {
        for (pattern, name, expected) in [
            ("hipMalloc", "hipMalloc", true),
            ("hipMalloc", "hipMallocAsync", false),
            ("hipMalloc*", "hipMallocAsync", true),
            ("*Malloc*", "hipExtMallocWithFlags", true),
            ("*Async", "hipMemcpyAsyncAsync", true),
            ("*Async", "hipMemcpyAsync_spt", false),
            ("hip?alloc", "hipMalloc", true),
            ("hip?alloc", "hipalloc", false),
            ("*", "", true),
            ("", "a", false),
            ("a*b*c", "a_b_b_c", true),
            ("a*b*c", "a_c_b", false),
        ] {
            assert_eq!(matches_glob(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn picks_follows_the_last_glob_that_matches() {
        let globs = |words: &[&str]| -> Vec<String> {
            words.iter().map(|word| (*word).to_owned()).collect()
        };
        let hip = globs(&DEFAULT_APIS);
        assert!(picks(&hip, "hipMalloc") && picks(&hip, "__hipPushCallConfiguration"));
        assert!(!picks(&hip, "hsa_init") && !picks(&hip, "roctxMarkA"));
        let but = globs(&["*", "!hipGet*", "hipGetDevice"]);
        assert!(picks(&but, "hipMalloc") && picks(&but, "hipGetDevice"));
        assert!(!picks(&but, "hipGetLastError"));
        let others = globs(&["!hipGet*"]);
        assert!(picks(&others, "hsa_init") && !picks(&others, "hipGetDevice"));
        assert!(!picks(&[], "hipMalloc"));
    }

    #[test]
    fn is_glob_accepts_characters_of_names_only() {
        for good in ["hip*", "!hsa_*", "h?p", "*", "MEMORY_ALLOCATION_*"] {
            assert!(is_glob(good), "{good}");
        }
        for bad in ["", "!", "hip+", "a,b", "hip Malloc", "a!b", "[ab]", "é"] {
            assert!(!is_glob(bad), "{bad}");
        }
    }

    #[test]
    fn stack_mode_is_found_by_its_word() {
        for word in StackMode::WORDS {
            assert_eq!(StackMode::from_word(word).map(StackMode::word), Some(*word));
        }
        assert_eq!(StackMode::from_word("on"), None);
    }
}
