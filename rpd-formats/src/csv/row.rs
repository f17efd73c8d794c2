//! The one CSV writer: texts always in quotes, numbers never, embedded quotes doubled.

use super::combined::Shape;

/// Appends one row to a buffer, field by field.
pub(super) struct Row<'a> {
    buffer: &'a mut Vec<u8>,
    shape: &'a Shape,
    first: bool,
}

impl<'a> Row<'a> {
    /// A row that begins with `prefix`: nothing, or fields with the comma after them.
    #[inline]
    pub(super) fn new(buffer: &'a mut Vec<u8>, prefix: &[u8], shape: &'a Shape) -> Row<'a> {
        buffer.extend_from_slice(prefix);
        Row {
            buffer,
            shape,
            first: true,
        }
    }

    #[inline]
    fn separate(&mut self) {
        if !self.first {
            self.buffer.push(b',');
        }
        self.first = false;
    }

    /// Appends a text field.
    #[inline]
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.separate();
        quote(self.buffer, text);
        self
    }

    /// A field with a text from the target: if requested ([`Shape::safe`]), one that a spreadsheet takes for text.
    #[inline]
    pub(super) fn free_text(&mut self, text: &str) -> &mut Self {
        self.separate();
        quote_free(self.buffer, text, self.shape.safe);
        self
    }

    /// A field whose text is already in quotes.
    #[inline]
    pub(super) fn quoted(&mut self, quoted: &[u8]) -> &mut Self {
        self.separate();
        self.buffer.extend_from_slice(quoted);
        self
    }

    /// Appends a number.
    #[inline]
    pub(super) fn number(&mut self, number: impl itoa::Integer) -> &mut Self {
        self.separate();
        let mut digits = itoa::Buffer::new();
        self.buffer
            .extend_from_slice(digits.format(number).as_bytes());
        self
    }

    /// A number, or nothing.
    pub(super) fn optional_number(&mut self, number: Option<impl itoa::Integer>) -> &mut Self {
        match number {
            Some(number) => self.number(number),
            None => {
                self.separate();
                self
            }
        }
    }

    /// `"0x"` and 16 hexadecimal digits.
    #[inline]
    pub(super) fn address(&mut self, address: u64) -> &mut Self {
        self.separate();
        self.buffer.extend_from_slice(b"\"0x");
        for shift in (0..16).rev() {
            let digit = (address >> (shift * 4)) as usize & 15;
            self.buffer.push(b"0123456789abcdef"[digit]);
        }
        self.buffer.push(b'"');
        self
    }

    /// A counted value: as short as it can be in the converter's shape, otherwise with six decimals from 1 on and
    /// scientific below.
    pub(super) fn value(&mut self, value: f64) -> &mut Self {
        if self.shape.combined {
            self.plain(&format!("{value}"))
        } else if value >= 1.0 {
            self.plain(&format!("{value:.6}"))
        } else if value.is_nan() {
            self.plain("nan")
        } else {
            self.plain(&scientific(value, 8))
        }
    }

    fn plain(&mut self, text: &str) -> &mut Self {
        self.separate();
        self.buffer.extend_from_slice(text.as_bytes());
        self
    }

    /// A mean or deviation in nanoseconds.
    pub(super) fn duration(&mut self, value: f64) -> &mut Self {
        self.plain(&duration(value))
    }

    /// A share of the whole in percent.
    pub(super) fn percentage(&mut self, value: f64) -> &mut Self {
        self.plain(&percentage(value))
    }

    /// Ends it with a comma, for a row that begins with it.
    pub(super) fn open(&mut self) {
        self.buffer.push(b',');
    }

    #[inline]
    pub(super) fn end(&mut self) {
        self.buffer.push(b'\n');
    }
}

/// Appends `text` in quotes.
#[inline]
pub(crate) fn quote(buffer: &mut Vec<u8>, text: &str) {
    buffer.push(b'"');
    if text.as_bytes().contains(&b'"') {
        buffer.extend_from_slice(text.replace('"', "\"\"").as_bytes());
    } else {
        buffer.extend_from_slice(text.as_bytes());
    }
    buffer.push(b'"');
}

/// Appends a text from the target in quotes. With `safe`, one that a spreadsheet would take for a formula begins with an
/// apostrophe.
#[inline]
pub(crate) fn quote_free(buffer: &mut Vec<u8>, text: &str, safe: bool) {
    let begin = buffer.len();
    quote(buffer, text);
    // Spreadsheets drop tabulators and carriage returns at the start.
    if safe && text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        buffer.insert(begin + 1, b'\'');
    }
}

/// Mean and deviation, nanoseconds.
fn duration(value: f64) -> String {
    if value > 0.01 {
        format!("{value:.6}")
    } else {
        scientific(value, 8)
    }
}

fn percentage(value: f64) -> String {
    if value >= 1.0 {
        format!("{value:.2}")
    } else if value > 0.01 {
        format!("{value:.4}")
    } else {
        scientific(value, 3)
    }
}

/// As C prints it: at least two digits of exponent, and its sign.
pub(crate) fn scientific(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            let (sign, digits) = match exponent.strip_prefix('-') {
                Some(digits) => ('-', digits),
                None => ('+', exponent),
            };
            format!("{mantissa}e{sign}{digits:0>2}")
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_separates_and_quotes_fields() {
        let mut buffer = Vec::new();
        Row::new(&mut buffer, b"", &Shape::run(false))
            .text("a\"b\n,")
            .number(-1)
            .number(u64::MAX)
            .text("")
            .address(0x7f2d_1860_0000)
            .end();
        assert_eq!(
            String::from_utf8(buffer).expect("text"),
            "\"a\"\"b\n,\",-1,18446744073709551615,\"\",\"0x00007f2d18600000\"\n"
        );
    }

    #[test]
    fn safe_row_marks_formulas_as_text() {
        for (text, safe, expected) in [
            ("=1+1", true, "\"'=1+1\""),
            ("+\"", true, "\"'+\"\"\""),
            ("-x", true, "\"'-x\""),
            ("@x", true, "\"'@x\""),
            ("\t=x", true, "\"'\t=x\""),
            ("a=b", true, "\"a=b\""),
            ("", true, "\"\""),
            ("=1+1", false, "\"=1+1\""),
        ] {
            let mut buffer = Vec::new();
            Row::new(&mut buffer, b"", &Shape::run(safe))
                .free_text(text)
                .open();
            assert_eq!(buffer, format!("{expected},").into_bytes());
        }
    }

    #[test]
    fn counted_value_is_short_in_the_converters_shape() {
        let run = Shape::run(false);
        let converted = Shape {
            combined: true,
            ..Shape::run(false)
        };
        let written = |value: f64| {
            let mut buffer = Vec::new();
            Row::new(&mut buffer, b"", &run).value(value).open();
            Row::new(&mut buffer, b"", &converted).value(value).end();
            String::from_utf8(buffer).expect("text")
        };
        assert_eq!(written(16384.0), "16384.000000,16384\n");
        assert_eq!(written(1164.25), "1164.250000,1164.25\n");
        assert_eq!(written(0.5), "5.00000000e-01,0.5\n");
        assert_eq!(written(0.0), "0.00000000e+00,0\n");
        assert_eq!(written(-2.0), "-2.00000000e+00,-2\n");
        assert!(written(f64::NAN).starts_with("nan,"));
        assert!(written(f64::INFINITY).starts_with("inf,"));
    }

    #[test]
    fn statistics_have_as_many_decimals_as_those_of_the_original() {
        assert_eq!(duration(166_201.75), "166201.750000");
        assert_eq!(duration(0.0), "0.00000000e+00");
        assert_eq!(duration(0.005), "5.00000000e-03");
        assert_eq!(duration(1e123), format!("{:.6}", 1e123));
        assert_eq!(percentage(100.0), "100.00");
        assert_eq!(percentage(0.647), "0.6470");
        assert_eq!(percentage(0.009_123), "9.123e-03");
        assert_eq!(percentage(0.0), "0.000e+00");
    }
}
