//! Texts of arguments, as files carry them, from the arguments' bytes.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::rc::Rc;

use super::{ArgLayout, Argument, Form, Pointee, enumerator};
use crate::spool::demangle::demangle_type;
use crate::spool::format::call_flag;
use crate::spool::reader::ByteStrings;

impl ArgLayout {
    /// Writes the arguments whose bytes, with what was copied behind them, are in `raw`; `flags` are those of the record.
    /// `emit` gets position, argument, type of the value, and value, which is only valid during that call. The value of
    /// an output is what the call stored where it points, with the type of that, if that was recorded. What `raw` is
    /// too short for is left out.
    pub fn for_each(
        &self,
        flags: u32,
        raw: &[u8],
        mut emit: impl FnMut(usize, &Argument, ValueType<'_>, &str),
    ) {
        let (fixed, tail) = raw
            .split_at_checked(self.size as usize)
            .unwrap_or((raw, &[]));
        // Results lie between the argument struct and the texts, and only in records with this flag.
        let (mut results, tail) = match flags & call_flag::RESULTS {
            0 => (Results::default(), tail),
            _ => Results::split(self.arguments, tail),
        };
        let mut texts = ByteStrings(tail);
        let mut value = String::new();
        for (position, argument) in self.arguments.iter().enumerate() {
            let from = argument.offset as usize;
            let Some(bytes) = fixed.get(from..from + argument.size as usize) else {
                // A record that ends early yields the arguments that are whole; a part of a value would be another
                // value.
                return;
            };
            value.clear();
            // Where the call stored a result, that is shown in place of the pointer to it, as the original tools do.
            if let Some((output, bytes)) = results.of(argument) {
                write_value(&mut value, output.form, output.declared, bytes);
                emit(position, argument, ValueType::Result(output), &value);
                continue;
            }
            if argument.form == Form::Text {
                match texts.next() {
                    Some(Some(text)) => value.push_str(&String::from_utf8_lossy(text)),
                    Some(None) => value.push_str("(null)"),
                    // The collector copies no text where the pointer could not be read: the address is all there is.
                    None => write_value(&mut value, Form::Pointer, argument.declared, bytes),
                }
            } else {
                write_value(&mut value, argument.form, argument.declared, bytes);
            }
            emit(position, argument, ValueType::Argument, &value);
        }
    }
}

/// The type of an argument's shown value.
#[derive(Debug, Clone, Copy)]
pub enum ValueType<'a> {
    /// The declared type of the argument.
    Argument,
    /// The type of the value that the argument points to: the call stored a result there.
    Result(&'a Pointee),
}

/// The values that a call stored through its output arguments.
#[derive(Default)]
struct Results<'a> {
    /// A bit for each output: whether its value is there.
    present: u32,
    values: &'a [u8],
}

impl<'a> Results<'a> {
    /// The results at the beginning of `tail`, and the rest. None when the tail is too short.
    fn split(arguments: &[Argument], tail: &'a [u8]) -> (Results<'a>, &'a [u8]) {
        let outputs = arguments.iter().filter_map(|argument| argument.output);
        let len: usize = outputs.map(|output| output.size as usize).sum();
        let parts = tail.split_first_chunk().and_then(|(present, rest)| {
            let (values, rest) = rest.split_at_checked(len)?;
            let present = u32::from_le_bytes(*present);
            Some((Results { present, values }, rest))
        });
        parts.unwrap_or_default()
    }

    /// The value of the next argument in their order; `None` when it is no output, or the call stored nothing there.
    fn of<'b>(&mut self, argument: &'b Argument) -> Option<(&'b Pointee, &'a [u8])> {
        let output = argument.output.as_ref()?;
        let (bytes, rest) = self.values.split_at_checked(output.size as usize)?;
        let is_present = self.present & 1 != 0;
        (self.present, self.values) = (self.present >> 1, rest);
        is_present.then_some((output, bytes))
    }
}

/// Writes the arguments of a recorded call, whichever way they were recorded. `layout` is that of its operation;
/// `emit` gets position, type, name and value.
pub fn for_each_argument(
    layout: Option<&ArgLayout>,
    flags: u32,
    raw: &[u8],
    mut emit: impl FnMut(usize, &str, &str, &str),
) {
    if flags & call_flag::ARGUMENTS != 0 {
        if let Some(layout) = layout {
            layout.for_each(flags, raw, |position, argument, ty, value| {
                let ty = match ty {
                    ValueType::Argument => argument.resolved,
                    ValueType::Result(output) => output.resolved,
                    // A layout is missing for operations of a newer runtime; their bytes cannot be interpreted.
                };
                emit(position, ty, argument.name, value);
            });
        }
    } else if flags & call_flag::ARGUMENT_TEXTS != 0 {
        let mut texts =
            ByteStrings(raw).map(|text| String::from_utf8_lossy(text.unwrap_or_default()));
        let mut position = 0;
        while let (Some(declared), Some(name), Some(value)) =
            (texts.next(), texts.next(), texts.next())
        {
            // Padding of the record reads as empty texts.
            if name.is_empty() {
                break;
            }
            emit(position, &type_name(&declared), &name, &value);
            position += 1;
        }
    }
}

/// Types that a thread remembers. A run has some hundred; a damaged recording may have any number.
const MOST_TYPES: usize = 4096;

thread_local! {
    /// Spellings of types in C++, by the encoding that compilers give them.
    static TYPES: RefCell<HashMap<Box<str>, Rc<str>>> = RefCell::default();
}

/// The type that a compiler encodes as `encoded`, demangled once.
fn type_name(encoded: &str) -> Rc<str> {
    TYPES.with_borrow_mut(|types| {
        if let Some(known) = types.get(encoded) {
            return Rc::clone(known);
        }
        let name: Rc<str> = demangle_type(encoded).into();
        if types.len() < MOST_TYPES {
            types.insert(encoded.into(), Rc::clone(&name));
        }
        name
    })
}

fn write_value(out: &mut String, form: Form, declared: &str, bytes: &[u8]) {
    // Writing to a `String` cannot fail.
    let _ = match form {
        Form::Unsigned => write!(out, "{}", unsigned(bytes)),
        Form::Signed => write!(out, "{}", signed(bytes)),
        Form::Float => write!(out, "{}", float(bytes)),
        Form::Bool => write!(out, "{}", unsigned(bytes) != 0),
        Form::Enum => {
            // Enumerators are `int` in C. A greater value is damage or another type, and has no name.
            let value = signed(bytes);
            match i32::try_from(value) {
                Ok(value) => out.write_str(enumerator(declared, value)),
                Err(_) => write!(out, "{value}"),
            }
        }
        Form::Pointer | Form::Function | Form::Text => match unsigned(bytes) {
            0 => out.write_str("(null)"),
            address => write_hexadecimal(out, address),
        },
        Form::Opaque => match unsigned(bytes) {
            0 => out.write_str("0"),
            address => write_hexadecimal(out, address),
        },
        // Reversed, as the original prints these structs: readers of its files split the text by position.
        Form::Dim3 => write!(
            out,
            "{{z={}, y={}, x={}}}",
            word(bytes, 2),
            word(bytes, 1),
            word(bytes, 0)
        ),
        Form::Extent => write!(
            out,
            "{{depth={}, height={}, width={}}}",
            long(bytes, 2),
            long(bytes, 1),
            long(bytes, 0)
        ),
        Form::Pitched => write!(
            out,
            "{{ysize={}, xsize={}, pitch={}, ptr={:#x}}}",
            long(bytes, 3),
            long(bytes, 2),
            long(bytes, 1),
            long(bytes, 0)
        ),
        Form::Handle => write!(out, "handle={}", unsigned(bytes)),
        Form::BracedHandle => write!(out, "{{handle={}}}", unsigned(bytes)),
        Form::Directives => write!(
            out,
            "control_directives_mask={}, break_exceptions_mask={}, detect_exceptions_mask={}, \
             max_dynamic_group_size={}, max_flat_grid_size={}, max_flat_workgroup_size={}, \
             required_grid_size=({},{},{}), required_workgroup_size=({},{},{}), required_dim={}",
            long(bytes, 0),
            word(bytes, 2),
            word(bytes, 3),
            word(bytes, 4),
            long(bytes, 3),
            word(bytes, 8),
            long(bytes, 5),
            long(bytes, 6),
            long(bytes, 7),
            word(bytes, 16),
            word(bytes, 17),
            word(bytes, 18),
            bytes.get(76).copied().unwrap_or_default(),
        ),
        Form::Bytes => {
            // Trailing zeros are padding of the struct, and say nothing.
            let end = bytes.iter().rposition(|&byte| byte != 0);
            let used = &bytes[..end.map_or(0, |end| end + 1)];
            out.write_str("0x")
                .and_then(|()| used.iter().try_for_each(|byte| write!(out, "{byte:02x}")))
        }
    };
}

/// Appends a number as `{:#x}` prints it, in half the time: most arguments are addresses.
fn write_hexadecimal(out: &mut String, number: u64) -> fmt::Result {
    let digits = (64 - number.leading_zeros()).div_ceil(4).max(1);
    let mut text = [0; 16];
    let text = &mut text[..digits as usize];
    let mut rest = number;
    for digit in text.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(rest & 0xf) as usize];
        rest >>= 4;
    }
    out.write_str("0x")?;
    out.write_str(str::from_utf8(text).map_err(|_| fmt::Error)?)
}

/// Little-endian number of up to 8 bytes.
fn unsigned(bytes: &[u8]) -> u64 {
    if let Some(bytes) = bytes.first_chunk() {
        return u64::from_le_bytes(*bytes);
    }
    bytes
        .iter()
        .take(8)
        .rev()
        .fold(0, |value, &byte| value << 8 | u64::from(byte))
}

fn signed(bytes: &[u8]) -> i64 {
    let shift = 64 - 8 * bytes.len().clamp(1, 8);
    (unsigned(bytes) << shift).cast_signed() >> shift
}

fn float(bytes: &[u8]) -> f64 {
    match bytes.try_into() {
        Ok(bytes) => f64::from_le_bytes(bytes),
        // The shortest text of the `float`, not that of the `double` nearest to it.
        Err(_) => format!("{}", f32::from_bits(word(bytes, 0)))
            .parse()
            .unwrap_or(f64::NAN),
    }
}

fn word(bytes: &[u8], index: usize) -> u32 {
    let bytes = bytes.get(index * 4..).unwrap_or_default();
    // Four bytes at most are taken.
    unsigned(&bytes[..bytes.len().min(4)]) as u32
}

fn long(bytes: &[u8], index: usize) -> u64 {
    unsigned(bytes.get(index * 8..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::super::layout;
    use super::*;
    use crate::domain::Kind;

    fn texts(kind: Kind, operation: &str, raw: &[u8]) -> Vec<String> {
        texts_with(0, kind, operation, raw)
    }

    fn texts_with(flags: u32, kind: Kind, operation: &str, raw: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        for_each_argument(
            layout(kind, operation),
            call_flag::ARGUMENTS | flags,
            raw,
            |position, ty, name, value| found.push(format!("{position} {ty} {name}={value}")),
        );
        found
    }

    #[test]
    fn argument_texts_of_a_copy_are_those_of_rocprofv3() {
        let mut raw = Vec::new();
        for value in [0x7f2b_e200_0000_u64, 0, 262_144, 1, 0x7f2d_0400_1c70] {
            raw.extend(value.to_le_bytes());
        }
        assert_eq!(
            texts(Kind::HipRuntime, "hipMemcpyAsync", &raw),
            [
                "0 void* dst=0x7f2be2000000",
                "1 void const* src=0",
                "2 unsigned long sizeBytes=262144",
                "3 hipMemcpyKind kind=HostToDevice",
                "4 ihipStream_t* stream=0x7f2d04001c70",
            ]
        );
    }

    #[test]
    fn argument_text_of_an_output_is_the_stored_value() {
        let raw = |mask: u32| {
            let mut raw = Vec::new();
            for value in [0x7ffd_0000_0010_u64, 0x7ffd_0000_0020, 100, 7] {
                raw.extend(value.to_le_bytes());
            }
            raw.extend(mask.to_le_bytes());
            for value in [0x7f34_0000_1000_u64, 512] {
                raw.extend(value.to_le_bytes());
            }
            raw
        };
        let texts = |flags, mask| {
            texts_with(flags, Kind::HipRuntime, "hipMallocPitch", &raw(mask))[..2].to_vec()
        };
        let address = "0 void** ptr=0x7ffd00000010";
        let pitch_address = "1 unsigned long* pitch=0x7ffd00000020";
        let (result, pitch) = ("0 void* ptr=0x7f3400001000", "1 unsigned long pitch=512");
        assert_eq!(texts(call_flag::RESULTS, 3), [result, pitch]);
        assert_eq!(texts(call_flag::RESULTS, 2), [address, pitch]);
        assert_eq!(texts(call_flag::RESULTS, 0), [address, pitch_address]);
        assert_eq!(texts(0, 0), [address, pitch_address]);
        let short = &raw(3)[..40];
        let short = texts_with(
            call_flag::RESULTS,
            Kind::HipRuntime,
            "hipMallocPitch",
            short,
        );
        assert_eq!(short[0], address, "the results are cut off");
    }

    #[test]
    fn argument_texts_are_read_behind_the_results() {
        let mut raw = Vec::new();
        for value in [0x7ffd_0000_0010_u64, 0x10, 0x20] {
            raw.extend(value.to_le_bytes());
        }
        raw.extend(1_u32.to_le_bytes());
        raw.extend(0x5500_u64.to_le_bytes());
        raw.extend(4_u32.to_le_bytes());
        raw.extend(b"fill");
        let flags = call_flag::RESULTS;
        let texts = texts_with(flags, Kind::HipRuntime, "hipModuleGetFunction", &raw);
        assert_eq!(texts[0], "0 ihipModuleSymbol_t* function=0x5500");
        assert_eq!(texts[2], "2 char const* kname=fill");
    }

    #[test]
    fn argument_texts_of_a_registration_have_copied_texts_and_null_pointers() {
        let size = layout(Kind::HipCompiler, "__hipRegisterFunction")
            .expect("in the table")
            .size as usize;
        let mut raw = vec![0; size];
        raw[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
        for text in ["_Z4dev", "name\"\n"] {
            raw.extend((text.len() as u32).to_le_bytes());
            raw.extend(text.as_bytes());
        }
        let texts = texts(Kind::HipCompiler, "__hipRegisterFunction", &raw);
        assert_eq!(texts[0], "0 void** modules=(null)");
        assert_eq!(texts[2], "2 char* deviceFunction=_Z4dev");
        assert_eq!(texts[3], "3 char const* deviceName=name\"\n");
        assert_eq!(texts[4], "4 unsigned int threadLimit=4294967295");
        assert_eq!(texts[5], "5 HIP_vector_type<unsigned int, 3u>* tid=(null)");
        assert_eq!(texts[7], "7 dim3* blockDim=(null)");
    }

    #[test]
    fn argument_texts_of_a_launch_print_z_before_y_and_x() {
        let mut raw = vec![0; 56];
        for (index, value) in [1024_u32, 1, 2, 64, 3, 4].into_iter().enumerate() {
            raw[8 + index * 4..12 + index * 4].copy_from_slice(&value.to_le_bytes());
        }
        let texts = texts(Kind::HipRuntime, "hipLaunchKernel", &raw);
        assert_eq!(
            texts[1],
            "1 rocprofiler_dim3_t numBlocks={z=2, y=1, x=1024}"
        );
        assert_eq!(texts[2], "2 rocprofiler_dim3_t dimBlocks={z=4, y=3, x=64}");
    }

    #[test]
    fn argument_table_encodes_each_type_as_its_resolved_spelling() {
        let layouts = super::super::LAYOUTS.iter().flat_map(|(_, all)| *all);
        for argument in layouts.flat_map(|(_, layout)| layout.arguments) {
            assert_eq!(demangle_type(argument.mangled), argument.resolved);
            if let Some(output) = argument.output {
                assert_eq!(demangle_type(output.mangled), output.resolved);
            }
        }
    }

    #[test]
    fn argument_texts_end_where_the_record_is_too_short() {
        assert!(texts(Kind::HipRuntime, "hipMemcpyAsync", &[]).is_empty());
        assert_eq!(texts(Kind::HipRuntime, "hipMemcpyAsync", &[1; 20]).len(), 2);
        let mut raw = vec![0; 24];
        raw.extend(u32::MAX.wrapping_sub(1).to_le_bytes());
        assert_eq!(
            texts(Kind::HipRuntime, "hipModuleGetFunction", &raw)[2],
            "2 char const* kname=(null)"
        );
    }

    #[test]
    fn write_hexadecimal_prints_what_the_standard_library_does() {
        for number in (0..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit, u64::MAX - (1 << bit)]) {
            let mut out = String::new();
            write_hexadecimal(&mut out, number).expect("a string takes it");
            assert_eq!(out, format!("{number:#x}"));
        }
    }

    #[test]
    fn write_value_prints_unknown_enumerators_and_negative_numbers() {
        let mut out = String::new();
        write_value(&mut out, Form::Enum, "hipMemcpyKind", &77_i32.to_le_bytes());
        out.push(' ');
        write_value(
            &mut out,
            Form::Signed,
            "hipError_t",
            &(-1_i32).to_le_bytes(),
        );
        out.push(' ');
        write_value(&mut out, Form::Float, "float", &0.1_f32.to_le_bytes());
        out.push(' ');
        write_value(&mut out, Form::Handle, "hsa_agent_t", &7_u64.to_le_bytes());
        assert_eq!(out, "Unknown -1 0.1 handle=7");
    }

    #[test]
    fn type_name_demangles_a_type_once_and_remembers_a_limited_number() {
        let first = type_name("P12ihipStream_t");
        assert_eq!(&*first, "ihipStream_t*");
        assert!(Rc::ptr_eq(&first, &type_name("P12ihipStream_t")));
        for number in 0..2 * MOST_TYPES {
            type_name(&format!("A{number}_i"));
        }
        assert_eq!(TYPES.with_borrow(HashMap::len), MOST_TYPES);
        assert_eq!(&*type_name("A9999_i"), "int [9999]");
    }

    #[test]
    fn for_each_argument_demangles_types_in_the_providers_texts() {
        let mut raw = Vec::new();
        for text in ["P12ihipStream_t", "stream", "0x1", "i", "n", "-3"] {
            raw.extend((text.len() as u32).to_le_bytes());
            raw.extend(text.as_bytes());
        }
        raw.extend([0; 4]);
        let mut found = Vec::new();
        for_each_argument(None, call_flag::ARGUMENT_TEXTS, &raw, |p, t, n, v| {
            found.push(format!("{p} {t} {n} {v}"));
        });
        assert_eq!(found, ["0 ihipStream_t* stream 0x1", "1 int n -3"]);
    }
}
