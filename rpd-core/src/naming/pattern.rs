//! Patterns of names: text and placeholders.

/// Keys without a number; `arg<N>` comes on top.
pub(super) const KEYS: [&str; 17] = [
    "argv",
    "args",
    "argt",
    "tag",
    "hostname",
    "pid",
    "ppid",
    "pgid",
    "psid",
    "psize",
    "job",
    "rank",
    "size",
    "nid",
    "cwd",
    "launch_date",
    "launch_time",
];

pub(super) const SHORTHANDS: [(char, &str); 5] = [
    ('h', "hostname"),
    ('p', "pid"),
    ('j', "job"),
    ('r', "rank"),
    ('s', "size"),
];

/// A literal text or a placeholder of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    Key(&'a str),
    Variable(&'a str),
    Unknown(&'a str),
}

impl Piece<'_> {
    /// The piece as messages name it: `%key%`, `%env{NAME}%`, or the text itself.
    pub(super) fn written(self) -> String {
        match self {
            Piece::Text(text) | Piece::Unknown(text) => text.to_owned(),
            Piece::Key(key) => format!("%{key}%"),
            Piece::Variable(name) => format!("%env{{{name}}}%"),
        }
    }
}

pub(super) fn is_key(word: &str) -> bool {
    KEYS.contains(&word) || argument_number(word).is_some()
}

pub(super) fn argument_number(word: &str) -> Option<usize> {
    let digits = word.strip_prefix("arg")?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

pub(super) fn word_length(text: &str) -> usize {
    text.bytes()
        .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        .count()
}

/// `{NAME}` at the start of `text`: the name and the bytes it takes.
pub(super) fn braced_variable(text: &str) -> Option<(&str, usize)> {
    let inner = text.strip_prefix('{')?;
    let length = inner
        .bytes()
        .take_while(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_')
        .count();
    (length > 0 && inner[length..].starts_with('}')).then(|| (&inner[..length], length + 2))
}

/// The placeholder at the very start of `text` and how many bytes it takes.
pub(super) fn placeholder(text: &str) -> Option<(Piece<'_>, usize)> {
    for (lead, closing) in [
        ("%env", true),
        ("%ENV", true),
        ("$env", false),
        ("$ENV", false),
        ("%q", false),
    ] {
        if let Some(rest) = text.strip_prefix(lead)
            && let Some((name, used)) = braced_variable(rest)
        {
            // The guide has `%env{NAME}%` with a closing sign only; without one this is plain text.
            let closed = rest[used..].starts_with('%');
            if closing && !closed {
                continue;
            }
            // The guide writes `%q{NAME}` with and without a closing sign.
            let tail = usize::from(closed && (closing || lead == "%q"));
            return Some((Piece::Variable(name), lead.len() + used + tail));
        }
    }
    if let Some(rest) = text.strip_prefix('{') {
        let length = word_length(rest);
        if length == 0 || !rest[length..].starts_with('}') {
            return None;
        }
        let whole = length + 2;
        return Some(if is_key(&rest[..length]) {
            (Piece::Key(&rest[..length]), whole)
        } else {
            (Piece::Unknown(&text[..whole]), whole)
        });
    }
    let rest = text.strip_prefix('%')?;
    // A long key (`%hostname%`) goes before the shorthand with which it begins (`%h`).
    let length = word_length(rest);
    let closed = length > 0 && rest[length..].starts_with('%');
    if closed && is_key(&rest[..length]) {
        return Some((Piece::Key(&rest[..length]), length + 2));
    }
    let shorthand = SHORTHANDS
        .iter()
        .find(|(letter, _)| rest.starts_with(*letter))
        .map(|(_, key)| (Piece::Key(key), 2));
    if !closed {
        return shorthand;
    }
    // `%h_%p`: what looks like a closing sign opens the next placeholder.
    let next_opens = matches!(
        placeholder(&rest[length..]),
        Some((Piece::Key(_) | Piece::Variable(_), _))
    );
    match shorthand {
        Some(found) if next_opens || length == 1 => Some(found),
        _ => Some((Piece::Unknown(&text[..length + 2]), length + 2)),
    }
}

pub(super) fn pieces(pattern: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut text_start = 0;
    let mut at = 0;
    while at < pattern.len() {
        let rest = &pattern[at..];
        match placeholder(rest) {
            Some((piece, length)) => {
                if text_start < at {
                    pieces.push(Piece::Text(&pattern[text_start..at]));
                }
                pieces.push(piece);
                at += length;
                text_start = at;
            }
            None => at += rest.chars().next().map_or(1, char::len_utf8),
        }
    }
    if text_start < pattern.len() {
        pieces.push(Piece::Text(&pattern[text_start..]));
    }
    pieces
}
