//! The calls of a capture as JSON lines.

use std::io::Write;

use rpd_spool::capture::{Role, item};
use serde_json::{Map, Value, json};

use crate::geometry::geometry;
use crate::{Call, Capture, CaptureError};

/// Writes one line for each call.
///
/// # Errors
/// When the capture cannot be read or the lines cannot be written.
pub fn export(capture: &Capture, out: &mut dyn Write) -> Result<(), CaptureError> {
    capture.calls(1, u64::MAX, |call| -> Result<bool, CaptureError> {
        let line = line(&call);
        writeln!(out, "{line}").map_err(CaptureError::io(capture.path()))?;
        Ok(true)
    })?;
    out.flush().map_err(CaptureError::io(capture.path()))
}

fn line(call: &Call) -> Value {
    let mut arguments = Map::new();
    let operation = call.operation();
    for argument in operation.iter().flat_map(|found| found.arguments()) {
        let value = argument.value(&call.arguments);
        // Addresses and handles are texts: many readers of JSON lose the lowest bits of such large numbers.
        let value = match argument.role {
            Role::Value => json!(value),
            _ => json!(format!("{value:#x}")),
        };
        arguments.insert(argument.name().to_owned(), value);
    }
    let mut line = json!({
        "seq": call.seq,
        "name": operation.map_or("", |found| found.name()),
        "thread": call.tid,
        "device": call.device,
        "result": call.result,
        "start": call.time.0,
        "end": call.time.1,
        "args": arguments,
    });
    if let Some(operation) = operation
        && let Some(kernel) = call.items().find(|item| item.kind == item::KERNEL)
    {
        let (grid, block, lds) = geometry(operation, &call.arguments, &call.items);
        // The name follows the provider's handle of the kernel, which has 8 bytes.
        let name = kernel.payload.get(8..).unwrap_or_default();
        line["kernel"] = json!({
            "name": String::from_utf8_lossy(name),
            "grid": grid,
            "block": block,
            "dynamic_lds": lds,
        });
    }
    let data: Vec<Value> = call
        .data()
        .map(|data| json!({"address": format!("{:#x}", data.address), "size": data.size, "data": data.offset, "use": data.purpose}))
        .collect();
    if !data.is_empty() {
        line["data"] = Value::from(data);
    }
    line
}
