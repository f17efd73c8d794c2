//! Parser of mangled names: the grammar of the Itanium C++ ABI, as completely and as loosely as the GNU C++ library
//! reads it.

mod expressions;
mod names;
mod types;

use crate::Dialect;
use crate::tables;
use crate::tree::{Node, NodeId, Tree};

/// Levels of nesting that are followed; bounds the use of stack. No name of a length that is accepted by default has
/// more.
const MAX_DEPTH: u32 = 1024;

/// Form in which `sr` begins an unresolved name. Two generations of compilers wrote different ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unresolved {
    /// The form that the ABI has today.
    New,
    /// The form that the ABI has today, in a name that reads differently in the old form.
    NewUsed,
    /// The form that old compilers wrote.
    Old,
}

/// A parsed name: its parts and the one that contains all others.
pub(crate) struct Parsed<'n> {
    pub(crate) tree: Tree<'n>,
    pub(crate) root: NodeId,
}

/// Kind of a whole mangled text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whole {
    /// A symbol, which begins with `_Z`.
    Symbol,
    /// A type.
    Type,
}

/// Parses `text`, all of it. `None` when it is not well-formed.
pub(crate) fn parse<'n>(text: &'n [u8], whole: Whole, dialect: Dialect) -> Option<Parsed<'n>> {
    // A zero ends a name for the C++ library.
    if text.contains(&0) {
        return None;
    }
    let mut unresolved = Unresolved::New;
    loop {
        let mut parser = Parser {
            text,
            at: 0,
            tree: Tree::for_length(text.len()),
            substitutions: Vec::new(),
            last_name: None,
            in_expression: false,
            in_conversion: false,
            unresolved,
            depth: 0,
            dialect,
        };
        let root = match whole {
            Whole::Symbol => parser.mangled_name(true),
            Whole::Type => parser.ty(),
        };
        match root {
            Some(root) if parser.at == text.len() => {
                let tree = parser.tree;
                return Some(Parsed { tree, root });
            }
            _ if parser.unresolved == Unresolved::NewUsed => unresolved = Unresolved::Old,
            _ => return None,
        }
    }
}

struct Parser<'n> {
    text: &'n [u8],
    at: usize,
    tree: Tree<'n>,
    substitutions: Vec<NodeId>,
    /// The class name that was read last, which is the name of its constructors and destructors.
    last_name: Option<NodeId>,
    /// Whether an expression is being read, in which `cv` is a cast.
    in_expression: bool,
    /// Whether the type of a conversion operator is being read.
    in_conversion: bool,
    unresolved: Unresolved,
    depth: u32,
    dialect: Dialect,
}

impl<'n> Parser<'n> {
    /// The next byte; 0 at the end.
    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    /// The byte after the next one; 0 behind the end.
    fn peek_second(&self) -> u8 {
        self.text.get(self.at + 1).copied().unwrap_or(0)
    }

    /// Consumes the next byte and returns it; 0 at the end.
    fn next(&mut self) -> u8 {
        let byte = self.peek();
        self.skip(1);
        byte
    }

    fn skip(&mut self, count: usize) {
        self.at = self.text.len().min(self.at + count);
    }

    /// Consumes the next byte if it is `byte`; returns whether it was.
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == byte && self.at < self.text.len();
        if found {
            self.at += 1;
        }
        found
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.take(byte).then_some(())
    }

    /// Consumes the next two bytes if they are `bytes`; returns whether they were.
    fn take_both(&mut self, bytes: &[u8; 2]) -> bool {
        let found = self.text[self.at..].starts_with(bytes);
        if found {
            self.at += 2;
        }
        found
    }

    fn add(&mut self, node: Node<'n>) -> Option<NodeId> {
        self.tree.add(node)
    }

    fn get(&self, id: NodeId) -> Node<'n> {
        self.tree.get(id)
    }

    /// Runs `read` one level deeper.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn digits(&mut self) -> &'n [u8] {
        let from = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        &self.text[from..self.at]
    }

    /// Reads `[n] <digits>`. Without digits the number is 0; a number that is too large is -1, and its last digits are
    /// not consumed.
    fn number(&mut self) -> i32 {
        let negative = self.take(b'n');
        let mut value = 0_i32;
        while self.peek().is_ascii_digit() {
            let digit = i32::from(self.peek() - b'0');
            let Some(more) = value
                .checked_mul(10)
                .and_then(|value| value.checked_add(digit))
            else {
                return -1;
            };
            value = more;
            self.at += 1;
        }
        if negative { -value } else { value }
    }

    /// Reads `[<number>] _`, which stands for one more than the number, or 0 without a number.
    fn compact_number(&mut self) -> Option<i32> {
        let value = match self.peek() {
            b'_' => 0,
            b'n' => return None,
            _ => self.number().checked_add(1)?,
        };
        self.expect(b'_')?;
        (value >= 0).then_some(value)
    }

    /// Reads a discriminator, which distinguishes entities of the same name in one function. It is not part of the
    /// text.
    fn discriminator(&mut self) -> Option<()> {
        if !self.take(b'_') {
            return Some(());
        }
        let long = self.take(b'_');
        let value = self.number();
        if value < 0 {
            return None;
        }
        if long && value >= 10 {
            self.expect(b'_')?;
        }
        Some(())
    }

    fn substitutable(&mut self, id: NodeId) {
        self.substitutions.push(id);
    }

    /// Reads a substitution, `S_`, `S<seq-id>_` or `S<letter>`. `in_prefix`: a constructor or destructor may follow.
    fn substitution(&mut self, in_prefix: bool) -> Option<NodeId> {
        self.expect(b'S')?;
        let first = self.next();
        if first == b'_' || first.is_ascii_digit() || first.is_ascii_uppercase() {
            let mut index = 0_u32;
            let mut byte = first;
            while byte != b'_' {
                let digit = match byte {
                    b'0'..=b'9' => byte - b'0',
                    b'A'..=b'Z' => byte - b'A' + 10,
                    _ => return None,
                };
                let larger = index.wrapping_mul(36).wrapping_add(u32::from(digit));
                if larger < index {
                    return None;
                }
                index = larger;
                byte = self.next();
            }
            let index = if first == b'_' {
                0
            } else {
                index.wrapping_add(1) as usize
            };
            return self.substitutions.get(index).copied();
        }
        let found = tables::abbreviation(first)?;
        let long = in_prefix && matches!(self.peek(), b'C' | b'D');
        if let Some(last_name) = found.last_name {
            self.last_name = Some(self.add(Node::Abbreviated(last_name))?);
        }
        let text = if long { found.long } else { found.short };
        let mut id = self.add(Node::Abbreviated(text))?;
        // With tags it is no longer the abbreviated name, and can be substituted.
        if self.peek() == b'B' {
            id = self.abi_tags(id)?;
            self.substitutable(id);
        }
        Some(id)
    }
}
