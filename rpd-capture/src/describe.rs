//! A call as text.

use rpd_core::text::foreign;
use rpd_spool::capture::{HandleKind, Role, data_place, data_use, item};
use rpd_spool::demangle::demangle;

use crate::Call;
use crate::geometry::geometry;
use crate::objects::memory_name;

/// A call as text: one line, or with `details` its items below.
pub fn describe(call: &Call, details: bool) -> String {
    let Some(operation) = call.operation() else {
        return format!("{:>8}  unknown call {}", call.seq, call.api);
    };
    let kernel = call.items().find(|item| item.kind == item::KERNEL);
    let kernel = kernel.map(|item| {
        // The first eight bytes are the number of the code object.
        let name = item.payload.get(8..).unwrap_or_default();
        demangle(&String::from_utf8_lossy(name)).into_owned()
    });
    let mut is_named = false;
    let arguments: Vec<String> = operation
        .arguments()
        .iter()
        .map(|argument| {
            let value = argument.value(&call.arguments);
            let text = match argument.role {
                // Structs that are passed by value: of 12 bytes it is a `dim3`, else fields of eight bytes.
                Role::Value if argument.size > 8 => {
                    let at = usize::from(argument.offset);
                    let words = call
                        .arguments
                        .get(at..at + usize::from(argument.size))
                        .unwrap_or_default();
                    let parts: Vec<String> = if argument.size == 12 {
                        let words = words.as_chunks::<4>().0.iter();
                        words
                            .map(|word| u32::from_le_bytes(*word).to_string())
                            .collect()
                    } else {
                        let words = words.as_chunks::<8>().0.iter();
                        words
                            .map(|word| u64::from_le_bytes(*word).to_string())
                            .collect()
                    };
                    format!("{{{}}}", parts.join(", "))
                }
                Role::Value => value.to_string(),
                // The kernel's name says more than its handle, and stands once only.
                Role::Kernel | Role::Handle(HandleKind::Function) if kernel.is_some() => {
                    is_named = true;
                    kernel.clone().unwrap_or_default()
                }
                _ => format!("{value:#x}"),
            };
            format!("{}={text}", argument.name())
        })
        .collect();
    let mut text = format!(
        "{:>8}  {}({})",
        call.seq,
        operation.name(),
        arguments.join(", ")
    );
    if let Some(kernel) = kernel.filter(|_| !is_named) {
        text += &format!(" of {kernel}");
    }
    if call.result != 0 {
        text += &format!(" = {}", call.result);
    }
    // One line a call, unless details were requested: a capture has millions.
    if !details {
        return text;
    }
    let mut row = |name: &str, value: String| {
        text += &format!("\n  {name:<12} {}", foreign::shown(&value));
    };
    row("thread", call.tid.to_string());
    row("device", call.device.to_string());
    row(
        "time",
        format!("{} ns", call.time.1.saturating_sub(call.time.0)),
    );
    // Launches of graphs have no sizes of their own.
    if call.items().any(|item| item.kind == item::KERNEL_ARGUMENTS) {
        let (grid, block, lds) = geometry(operation, &call.arguments, &call.items);
        row(
            "grid",
            format!("{grid:?} blocks of {block:?}, {lds} bytes of dynamic local memory"),
        );
    }
    if let Some(made) = call.allocation() {
        row(
            "allocated",
            format!(
                "{} bytes of {} memory at {:#x}",
                made.size,
                memory_name(made.kind),
                made.base
            ),
        );
    }
    for item in call.items() {
        let name = operation
            .arguments()
            .get(usize::from(item.argument))
            .map_or("", |argument| argument.name());
        match item.kind {
            item::OUT => {
                if let Some(word) = item.word() {
                    row("stored", format!("{name} = {word:#x}"));
                }
            }
            item::IN => row("read", format!("{name}: {} bytes", item.payload.len())),
            item::KERNEL => {
                let kernel = item.payload.get(8..).unwrap_or_default();
                row("kernel", String::from_utf8_lossy(kernel).into_owned());
            }
            item::KERNEL_ARGUMENTS => {
                let words = item.payload.as_chunks::<8>().0.iter();
                let words: Vec<String> = words
                    .map(|word| format!("{:#x}", u64::from_le_bytes(*word)))
                    .collect();
                row(
                    "arguments",
                    format!("{} bytes: {}", item.payload.len(), words.join(" ")),
                );
            }
            item::SYMBOL => row(
                "variable",
                String::from_utf8_lossy(item.payload).into_owned(),
            ),
            item::VARIABLE => {
                if let Some((head, name)) = item.variable() {
                    let name = String::from_utf8_lossy(name);
                    row("variable", format!("{name} (data {})", head.data));
                }
            }
            item::VARIABLE_RESULT => {
                if let Some((head, name)) = item.variable() {
                    let name = String::from_utf8_lossy(name);
                    row("variable after", format!("{name} (data {})", head.data));
                }
            }
            item::MISSING => row(
                "missing",
                String::from_utf8_lossy(item.payload).into_owned(),
            ),
            item::DATA => {
                if let Some((data, _)) = item.data() {
                    let purpose = match data.purpose {
                        data_use::SOURCE => "reads",
                        data_use::UPDATE => "host memory",
                        data_use::OUTPUT => "wrote",
                        data_use::MEMORY => "memory",
                        data_use::RESULT => "result",
                        data_use::ARRAY => "array",
                        data_use::ARRAY_RESULT => "array after",
                        _ => "code",
                    };
                    // 0: data were requested and could not be taken; skipped: the capture was made without data.
                    let which = match data.offset {
                        0 | data_place::SKIPPED => "not taken".to_owned(),
                        blob => format!("data {blob}"),
                    };
                    row(
                        purpose,
                        format!("{} bytes at {:#x} ({which})", data.size, data.address),
                    );
                }
            }
            _ => {}
        }
    }
    text
}
