//! Selection of kernels by patterns over their names.
//!
//! Patterns have the syntax of ECMAScript and are searched for anywhere in a name. The front end turns one into a table
//! ([`compile`], with the feature of that name); the collector in the target only walks the table ([`Matcher`]), which
//! takes time proportional to the name's length, whatever the pattern. That is also why look-around and
//! back-references, which no table can express, are refused. A name is matched byte by byte: `.`, classes and escapes are
//! about ASCII, and a letter beyond ASCII in a pattern matches its UTF-8 bytes.

use regex_automata::Input;
use regex_automata::dfa::Automaton;
use regex_automata::dfa::sparse::DFA;

#[cfg(feature = "compile")]
pub use self::pattern::{PatternError, compile};

/// A table that [`compile`] made.
#[derive(Debug, Clone)]
pub struct Matcher(DFA<Vec<u8>>);

impl Matcher {
    /// Checks the table. `None` when it is none, or one of an incompatible build.
    pub fn from_bytes(bytes: Vec<u8>) -> Option<Matcher> {
        let (table, _) = DFA::from_bytes(&bytes).ok()?;
        Some(Matcher(table.to_owned()))
    }

    /// Whether the pattern is found in `name`.
    pub fn is_match(&self, name: &str) -> bool {
        let input = Input::new(name).earliest(true);
        // An error is a byte that the table refuses; `compile` makes tables that refuse none.
        matches!(self.0.try_search_fwd(&input), Ok(Some(_)))
    }
}

#[cfg(feature = "compile")]
mod pattern {
    use regex_automata::dfa::{StartKind, dense};
    use regex_automata::nfa::thompson;
    use regex_automata::util::syntax;

    /// Greatest size in bytes of a table, and of the data from which it is made. Names and choices of names need
    /// thousands; repeated repetitions need any amount.
    const LIMIT: usize = 8 << 20;

    /// Reason why a pattern cannot be used: one line for the user.
    #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
    pub enum PatternError {
        /// Look-ahead or look-behind; the text as the pattern has it.
        #[error("look-around, `{0}`, is not supported")]
        LookAround(String),
        /// A back-reference; the text as the pattern has it.
        #[error("a back-reference, `{0}`, is not supported")]
        BackReference(String),
        /// An escape sequence that ECMAScript does not define.
        #[error("`{0}` is not an escape sequence of patterns")]
        Escape(String),
        /// The table would be too large.
        #[error("the pattern is too complex; use fewer or smaller counted repetitions")]
        TooComplex,
        /// A syntax error in the pattern.
        #[error("{message}, at character {at}")]
        Syntax {
            /// Description of the error.
            message: String,
            /// Position of the character, from 1.
            at: usize,
        },
    }

    fn wrong(message: &str, at: usize) -> PatternError {
        PatternError::Syntax {
            message: message.to_owned(),
            at: at + 1,
        }
    }

    /// Turns a pattern into the table that [`super::Matcher`] walks.
    ///
    /// # Errors
    /// When it is none, when it uses look-around or back-references, or when its table would be too large.
    pub fn compile(pattern: &str) -> Result<Vec<u8>, PatternError> {
        let pattern = Translation::of(pattern)?;
        // Parsed separately for its errors: those of the table's builder have no position.
        regex_syntax::ParserBuilder::new()
            .unicode(false)
            .utf8(false)
            .build()
            .parse(&pattern)
            .map_err(|error| syntax_error(&pattern, &error))?;
        let table = dense::Builder::new()
            .configure(
                dense::Config::new()
                    .start_kind(StartKind::Unanchored)
                    .dfa_size_limit(Some(LIMIT))
                    .determinize_size_limit(Some(LIMIT)),
            )
            .syntax(syntax::Config::new().unicode(false).utf8(false))
            .thompson(
                thompson::Config::new()
                    .utf8(false)
                    .nfa_size_limit(Some(LIMIT)),
            )
            .build(&pattern)
            .map_err(|_| PatternError::TooComplex)?;
        // The sparse form is smaller, and the table is kept in memory of every process of the run.
        let table = table.to_sparse().map_err(|_| PatternError::TooComplex)?;
        Ok(table.to_bytes_native_endian())
    }

    /// The text before `offset` has this many characters. That is a place in the translation, which is longer than the
    /// pattern only after escapes.
    fn syntax_error(pattern: &str, error: &regex_syntax::Error) -> PatternError {
        let (message, offset) = match error {
            regex_syntax::Error::Parse(error) => {
                (error.kind().to_string(), error.span().start.offset)
            }
            regex_syntax::Error::Translate(error) => {
                (error.kind().to_string(), error.span().start.offset)
            }
            other => (other.to_string().replace('\n', " "), 0),
        };
        let at = pattern.get(..offset).map_or(0, |text| text.chars().count());
        wrong(&message, at)
    }

    /// A pattern on its way from ECMAScript to the syntax of the table's builder, which reads some escapes and the
    /// content of brackets differently.
    struct Translation<'a> {
        pattern: &'a [char],
        at: usize,
        made: String,
    }

    impl Translation<'_> {
        fn of(pattern: &str) -> Result<String, PatternError> {
            let pattern: Vec<char> = pattern.chars().collect();
            let mut translation = Translation {
                pattern: &pattern,
                at: 0,
                made: String::new(),
            };
            while let Some(next) = translation.next() {
                match next {
                    '\\' => translation.escape(false)?,
                    '[' => translation.class()?,
                    '(' => translation.group()?,
                    other => translation.made.push(other),
                }
            }
            Ok(translation.made)
        }

        fn next(&mut self) -> Option<char> {
            let next = self.pattern.get(self.at).copied();
            self.at += usize::from(next.is_some());
            next
        }

        fn starts_with(&self, text: &str) -> bool {
            let rest = &self.pattern[self.at..];
            rest.len() >= text.len()
                && text
                    .chars()
                    .zip(rest)
                    .all(|(wanted, found)| wanted == *found)
        }

        /// A literal character.
        fn literal(&mut self, literal: char) {
            if regex_syntax::is_meta_character(literal) {
                self.made.push('\\');
            }
            self.made.push(literal);
        }

        /// Behind an opening parenthesis.
        fn group(&mut self) -> Result<(), PatternError> {
            for look in ["?=", "?!", "?<=", "?<!"] {
                if self.starts_with(look) {
                    return Err(PatternError::LookAround(format!("({look}...)")));
                }
            }
            self.made.push('(');
            Ok(())
        }

        /// Parses an escape, after its backslash.
        fn escape(&mut self, in_class: bool) -> Result<(), PatternError> {
            let start = self.at - 1;
            let Some(escaped) = self.next() else {
                return Err(wrong("the pattern ends with a backslash", start));
            };
            match escaped {
                'd' | 'D' | 's' | 'S' | 'w' | 'W' | 'f' | 'n' | 'r' | 't' | 'v' => {
                    self.made.extend(['\\', escaped]);
                }
                'b' if in_class => self.made.push_str(r"\x08"),
                'b' | 'B' if !in_class => self.made.extend(['\\', escaped]),
                '0' => self.made.push_str(r"\x00"),
                'c' => match self.next() {
                    Some(letter) if letter.is_ascii_alphabetic() => {
                        let control = letter as u32 % 32;
                        self.made.push_str(&format!(r"\x{control:02X}"));
                    }
                    _ => return Err(PatternError::Escape(r"\c".to_owned())),
                },
                'x' | 'u' => {
                    let count = if escaped == 'x' { 2 } else { 4 };
                    let digits: String = self.pattern[self.at..].iter().take(count).collect();
                    let valid = digits.len() == count
                        && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
                    let number = u32::from_str_radix(&digits, 16).ok();
                    let Some(meant) = number.filter(|_| valid).and_then(char::from_u32) else {
                        let digits = digits.escape_debug();
                        return Err(PatternError::Escape(format!(r"\{escaped}{digits}")));
                    };
                    self.at += count;
                    self.literal(meant);
                }
                '1'..='9' if !in_class => {
                    return Err(PatternError::BackReference(format!(r"\{escaped}")));
                }
                'k' if self.starts_with("<") => {
                    return Err(PatternError::BackReference(r"\k<...>".to_owned()));
                }
                other if other.is_ascii_alphanumeric() => {
                    return Err(PatternError::Escape(format!(r"\{other}")));
                }
                other => self.literal(other),
            }
            Ok(())
        }

        /// Behind an opening bracket.
        fn class(&mut self) -> Result<(), PatternError> {
            let start = self.at - 1;
            let negated = self.starts_with("^");
            self.at += usize::from(negated);
            // Empty ones: nothing at all, and anything at all.
            if self.starts_with("]") {
                self.at += 1;
                self.made.push_str(if negated {
                    r"[\x00-\xFF]"
                } else {
                    r"[^\x00-\xFF]"
                });
                return Ok(());
            }
            self.made.push_str(if negated { "[^" } else { "[" });
            let first = self.at;
            while let Some(next) = self.next() {
                match next {
                    ']' => {
                        self.made.push(']');
                        return Ok(());
                    }
                    '\\' => self.escape(true)?,
                    '[' if self.starts_with(":") => match self.posix_class() {
                        Some(end) => {
                            let text = &self.pattern[self.at - 1..end];
                            self.made.extend(text);
                            self.at = end;
                        }
                        None => self.made.push_str(r"\["),
                    },
                    // A literal at the start. Two dashes elsewhere would be an operation on classes; they end a range.
                    '-' if self.at == first + 1 => self.made.push_str(r"\-"),
                    '-' if self.starts_with("-") => {
                        self.at += 1;
                        self.made.push_str(r"-\-");
                    }
                    '-' => self.made.push('-'),
                    other => self.literal(other),
                }
            }
            Err(wrong("a bracket is not closed", start))
        }

        /// Offset of the end of a named class such as `[:alpha:]` that begins at this offset.
        fn posix_class(&self) -> Option<usize> {
            let rest = &self.pattern[self.at + 1..];
            let name = rest.iter().take_while(|next| next.is_ascii_lowercase());
            let len = name.count();
            let closed = len > 0 && rest[len..].starts_with(&[':', ']']);
            closed.then_some(self.at + 1 + len + 2)
        }
    }
}

#[cfg(all(test, feature = "compile"))]
mod tests {
    use super::*;

    fn matcher(pattern: &str) -> Matcher {
        let table = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        Matcher::from_bytes(table).expect("a table")
    }

    #[test]
    fn kernel_pattern_matches_anywhere_in_a_name() {
        const ADDITION: &str =
            "void addition_kernel<float>(float*, float const*, float const*, int, int)";
        for (pattern, found) in [
            ("addition", true),
            ("^addition", false),
            ("^void .*kernel", true),
            ("(subtract|addition)_kernel", true),
            ("subtract", false),
            (".*", true),
            ("", true),
            (r"\baddition_kernel\b", true),
            (r"\bkernel\b", false),
            (r"int\)$", true),
            (r"kernel\<float\>", true),
            (r"kernel\<float$", false),
            ("kernel<[^>]+>", true),
            (r"\x66lo\u0061t", true),
            ("(?:float const\\*, ){2}", true),
            ("(?:float const\\*, ){3}", false),
            ("[[:digit:]]", false),
            ("[[:punct:]]", true),
            ("addition.kernel", true),
            ("ADDITION", false),
        ] {
            assert_eq!(matcher(pattern).is_match(ADDITION), found, "{pattern}");
        }
    }

    #[test]
    fn kernel_pattern_reads_brackets_as_ecmascript_does() {
        for (pattern, name, found) in [
            ("^[[]$", "[", true),
            ("^[a[b]$", "[", true),
            ("^[a&&b]+$", "a&b", true),
            ("^[a~~b]+$", "a~b", true),
            ("^[--a]+$", "-/a", true),
            ("^[a-c]$", "b", true),
            (r"^[a\-c]$", "b", false),
            (r"^[a\]c]$", "]", true),
            ("[]", "anything", false),
            ("^[^]$", "\n", true),
            ("^[^a]$", "a", false),
            (r"^[\b]$", "\u{8}", true),
            (r"^[\d_]+$", "1_2", true),
            ("^[+--]+$", "+,-", true),
        ] {
            assert_eq!(matcher(pattern).is_match(name), found, "{pattern} {name}");
        }
    }

    #[test]
    fn kernel_pattern_matches_names_beyond_ascii_as_bytes() {
        assert!(matcher("κέρ").is_match("π::κέρνελ(int)"));
        assert!(!matcher("^.::").is_match("π::κέρνελ(int)"));
        assert!(matcher("^..::").is_match("π::κέρνελ(int)"));
        assert!(matcher(r"\u03c0").is_match("π"));
    }

    #[test]
    fn compile_refuses_inexpressible_patterns_in_one_line() {
        let message = |pattern: &str| compile(pattern).expect_err(pattern).to_string();
        assert_eq!(
            message("a(?=b)"),
            "look-around, `(?=...)`, is not supported"
        );
        assert_eq!(
            message("(?<!a)b"),
            "look-around, `(?<!...)`, is not supported"
        );
        assert_eq!(
            message(r"(a)\1"),
            r"a back-reference, `\1`, is not supported"
        );
        assert_eq!(
            message(r"\p{Greek}"),
            r"`\p` is not an escape sequence of patterns"
        );
        assert_eq!(message("ab("), "unclosed group, at character 3");
        assert_eq!(message("[ab"), "a bracket is not closed, at character 1");
        assert_eq!(
            message("a\\"),
            "the pattern ends with a backslash, at character 2"
        );
        assert_eq!(
            message(r"\xg"),
            r"`\xg` is not an escape sequence of patterns"
        );
        assert_eq!(
            message("\\u0\n\n"),
            r"`\u0\n\n` is not an escape sequence of patterns"
        );
        for pattern in ["*a", "a{2,1}", "[b-a]", "[π]", "a)"] {
            assert_eq!(message(pattern).lines().count(), 1, "{pattern}");
        }
    }

    #[test]
    fn compile_refuses_a_pattern_whose_table_is_too_large() {
        assert_eq!(
            compile("[ab]*a[ab]{30}").expect_err("too large"),
            PatternError::TooComplex
        );
        assert_eq!(
            compile("((a{100}){100}){100}").expect_err("too large"),
            PatternError::TooComplex
        );
    }

    #[test]
    fn matcher_refuses_bytes_that_are_no_table() {
        assert!(Matcher::from_bytes(Vec::new()).is_none());
        let mut table = compile("kernel").expect("a pattern");
        table.truncate(table.len() / 2);
        assert!(Matcher::from_bytes(table).is_none());
    }
}
