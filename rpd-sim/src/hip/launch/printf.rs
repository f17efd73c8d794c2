//! Output of `printf` in kernels. Messages are put together from requests and written to the C library's streams, so
//! that their order with the program's own output is kept.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::collections::HashMap;
use std::ffi::CString;

unsafe extern "C" {
    static mut stdout: *mut libc::FILE;
    static mut stderr: *mut libc::FILE;
}

/// Messages of which parts have arrived, but not the last one.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    open: HashMap<u64, Vec<u64>>,
    next: u64,
}

/// The first word of a request: flags, number of words, number of the message.
mod descriptor {
    pub(crate) const BEGIN: u64 = 1;
    pub(crate) const END: u64 = 2;
    pub(crate) const WORDS_SHIFT: u32 = 5;
    pub(crate) const WORDS_MASK: u64 = 7;
    pub(crate) const ID_SHIFT: u32 = 8;
}

impl Messages {
    /// Adds a request's words to its message, and prints the message when it is complete. The answer is the descriptor for the
    /// message's next request or, at its end, what `printf` returns.
    pub(crate) fn append(&mut self, slot: &mut [u64; 8]) {
        use descriptor::{BEGIN, END, ID_SHIFT, WORDS_MASK, WORDS_SHIFT};
        let mut id = slot[0] >> ID_SHIFT;
        if slot[0] & BEGIN != 0 {
            id = self.next;
            self.next += 1;
            self.open.insert(id, Vec::new());
            slot[0] = slot[0] & !BEGIN & ((1 << ID_SHIFT) - 1) | id << ID_SHIFT;
        }
        let Some(message) = self.open.get_mut(&id) else {
            eprintln!("rpd-sim: a kernel's printf continues message {id}, which it did not begin");
            slot[0] = u64::MAX;
            return;
        };
        let words = (slot[0] >> WORDS_SHIFT & WORDS_MASK) as usize;
        message.extend_from_slice(&slot[1..1 + words.min(7)]);
        if slot[0] & END != 0 {
            let message = self.open.remove(&id).unwrap_or_default();
            slot[0] = i64::from(print(&message)) as u64;
        }
    }
}

/// Prints a message: a control word (1: to standard error), the format, then the arguments, each in whole words.
/// Returns the number of bytes written, or a negative number.
fn print(message: &[u64]) -> c_int {
    const STANDARD_ERROR: u64 = 1;
    let Some((&control, rest)) = message.split_first() else {
        return -1;
    };
    if control & !STANDARD_ERROR != 0 {
        return -1;
    }
    let bytes: Vec<u8> = rest.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut arguments = Arguments { bytes: &bytes };
    let Some(format) = arguments.text() else {
        return -1;
    };
    print_format(control == STANDARD_ERROR, format, arguments)
}

/// Prints a format with its arguments, to standard error or output. Returns the number of bytes written, or a negative
/// number.
fn print_format(to_error: bool, format: &[u8], mut arguments: Arguments<'_>) -> c_int {
    // SAFETY: the C library's streams, which are open as long as the process.
    let stream = unsafe { if to_error { stderr } else { stdout } };
    let mut written = 0;
    for piece in pieces(format) {
        let result = match piece {
            Piece::Text(text) => write(stream, text),
            Piece::Conversion(conversion) => match arguments.print(stream, conversion) {
                Some(result) => result,
                // The program passed fewer arguments than its format has conversions.
                None => return written,
            },
        };
        if result < 0 {
            return result;
        }
        written += result;
    }
    written
}

/// Prints the messages that a kernel left in its buffer. Each has a control dword (1: to standard error, 2: of a format that the
/// code object has, and the length of the message with the dword from bit 2 on), the format or its number, and the arguments.
/// Answers how many bytes were no message.
pub(crate) fn print_buffered(mut messages: &[u8], formats: &[(u64, Vec<u8>)]) -> usize {
    const STANDARD_ERROR: u32 = 1;
    const KNOWN_FORMAT: u32 = 2;
    while let Some((control, _)) = messages.split_first_chunk() {
        let control = u32::from_le_bytes(*control);
        let Some(message) = messages.get(4..(control >> 2) as usize) else {
            break;
        };
        messages = &messages[4 + message.len()..];
        let mut arguments = Arguments { bytes: message };
        let format = if control & KNOWN_FORMAT != 0 {
            arguments.word().and_then(|number| {
                let format = formats.iter().find(|format| format.0 == number);
                format.map(|format| format.1.as_slice())
            })
        } else {
            arguments.text()
        };
        match format {
            Some(format) => print_format(control & STANDARD_ERROR != 0, format, arguments),
            None => return messages.len() + message.len(),
        };
    }
    messages.len()
}

fn write(stream: *mut libc::FILE, text: &[u8]) -> c_int {
    // SAFETY: an open stream, and bytes of this length.
    let written = unsafe { libc::fwrite(text.as_ptr().cast::<c_void>(), 1, text.len(), stream) };
    if written == text.len() {
        written as c_int
    } else {
        -1
    }
}

/// A part of a format.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a [u8]),
    /// A conversion specification, from `%` to its letter.
    Conversion(&'a [u8]),
}

/// Splits a format into texts and conversions. An incomplete conversion and all behind it is text.
fn pieces(format: &[u8]) -> Vec<Piece<'_>> {
    const LETTERS: &[u8] = b"diouxXfFeEgGaAcspn";
    let mut pieces = Vec::new();
    let mut left = format;
    while let Some(percent) = left.iter().position(|&byte| byte == b'%') {
        let (text, conversion) = left.split_at(percent);
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        if conversion.get(1) == Some(&b'%') {
            pieces.push(Piece::Text(b"%"));
            left = &conversion[2..];
            continue;
        }
        let Some(letter) = conversion.iter().position(|byte| LETTERS.contains(byte)) else {
            left = conversion;
            break;
        };
        pieces.push(Piece::Conversion(&conversion[..=letter]));
        left = &conversion[letter + 1..];
    }
    if !left.is_empty() {
        pieces.push(Piece::Text(left));
    }
    pieces
}

/// The arguments of a message that have not been printed.
struct Arguments<'a> {
    bytes: &'a [u8],
}

impl<'a> Arguments<'a> {
    fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(u64::from_le_bytes(*word))
    }

    /// The next argument as a text without its NUL, which is followed by padding to a whole word.
    fn text(&mut self) -> Option<&'a [u8]> {
        let text = CStr::from_bytes_until_nul(self.bytes).ok()?.to_bytes();
        self.bytes = self.bytes.get((text.len() + 1).next_multiple_of(8)..)?;
        Some(text)
    }

    /// Prints the arguments of one conversion, with its width and precision; `None` if there are too few.
    fn print(&mut self, stream: *mut libc::FILE, conversion: &[u8]) -> Option<c_int> {
        let stars = conversion.iter().filter(|&&byte| byte == b'*').count();
        let mut sizes = [0 as c_int; 2];
        for size in sizes.get_mut(..stars)? {
            *size = self.word()? as c_int;
        }
        let format = CString::new(conversion).ok()?;
        let format = format.as_ptr();
        macro_rules! print {
            ($value:expr) => {
                // SAFETY: the format has one conversion, of the value's kind, and as many stars as sizes are passed.
                unsafe {
                    match stars {
                        0 => libc::fprintf(stream, format, $value),
                        1 => libc::fprintf(stream, format, sizes[0], $value),
                        _ => libc::fprintf(stream, format, sizes[0], sizes[1], $value),
                    }
                }
            };
        }
        Some(match conversion.last()? {
            b's' => {
                let text = CString::new(self.text()?).ok()?;
                let text: *const c_char = text.as_ptr();
                print!(text)
            }
            b'n' => {
                self.word()?;
                0
            }
            b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
                let value = f64::from_bits(self.word()?);
                print!(value)
            }
            b'p' => {
                let value = self.word()? as *const c_void;
                print!(value)
            }
            _ => {
                let value = self.word()?;
                print!(value)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printf_formats_are_split_into_texts_and_conversions() {
        use Piece::{Conversion, Text};
        assert_eq!(
            pieces(b"a %5.*f%% b%s%q"),
            [
                Text(b"a "),
                Conversion(b"%5.*f"),
                Text(b"%"),
                Text(b" b"),
                Conversion(b"%s"),
                Text(b"%q"),
            ]
        );
        assert_eq!(pieces(b""), []);
    }

    #[test]
    fn a_printf_message_in_two_requests_is_put_together() {
        let mut messages = Messages::default();
        // To standard error, so that the test's own output is not disturbed: control word 1, an empty format.
        let mut first = [
            descriptor::BEGIN | 1 << descriptor::WORDS_SHIFT,
            1,
            0,
            0,
            0,
            0,
            0,
            0,
        ];
        messages.append(&mut first);
        assert_eq!(first[0] & descriptor::BEGIN, 0);
        let mut second = first;
        second[0] = first[0] | descriptor::END;
        second[1] = 0;
        messages.append(&mut second);
        assert_eq!(second[0], 0, "an empty text has no bytes");
        // The message has ended: another request of it is refused.
        let mut third = first;
        messages.append(&mut third);
        assert_eq!(third[0], u64::MAX);
    }

    #[test]
    fn printf_texts_are_padded_to_eight_bytes() {
        let mut words = Arguments {
            bytes: b"abc\0....next\0...",
        };
        assert_eq!(words.text(), Some(&b"abc"[..]));
        assert_eq!(words.text(), Some(&b"next"[..]));
        assert_eq!(words.text(), None);
    }
}
