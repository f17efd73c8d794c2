//! The part before the records: the run, agents, names, code, statistics.

use std::collections::{BTreeMap, HashMap};

use rpd_core::agent::AgentType;
use rpd_core::ids::{AgentHandle, CodeObjectId, KernelId, StringId};
use rpd_core::kernel_name::{KernelSpellings, spellings, without_symbol};
use rpd_core::naming::Target;
use rpd_core::options::{KernelNames, Options};
use rpd_core::session::{
    CodeObject, CounterDimension, HostFunction, KernelLabels, KernelSymbol, Session,
};
use rpd_core::stats::SessionStats;

use super::samples::Instructions;
use super::summary;
use crate::WriteError;
use crate::describe;
use crate::file::TextFile;
use crate::json::{Object, escape_bytes, quote, quote_bytes};
use crate::operations::OperationNumbers;
use crate::rocpd::identity::Node;
use crate::settings;

/// The largest id up to which arrays that are indexed by id get blanks for ids that are missing.
const LAST_BLANK: u64 = 1 << 16;

/// Writes every key of a process up to `summary`.
pub(super) fn write(
    file: &mut TextFile,
    session: &Session,
    stats: Option<&SessionStats<'_>>,
    options: &Options,
    target: &Target,
    operations: &OperationNumbers,
    instructions: &Instructions<'_>,
) -> Result<(), WriteError> {
    let labels = &KernelLabels::new(session, options.kernel_names);
    key(file, "metadata");
    raw(file, &metadata(session, options, target));
    // GPUs are numbered among themselves; CPUs have -1, as in the original.
    let mut gpus = 0;
    let agents = session.agents.iter().map(|agent| {
        let is_gpu = agent.agent_type == AgentType::Gpu;
        let index = if is_gpu { gpus } else { -1 };
        gpus += i64::from(is_gpu);
        describe::agent(agent, index)
    });
    array(file, ",\"agents\":", agents)?;
    let counters = session.counters.iter().map(describe::counter);
    array(file, ",\"counters\":", counters)?;
    raw(file, ",\"strings\":{");
    write_strings(file, session, options, operations, instructions)?;
    raw(file, "}");

    // Arrays whose index is the id: gaps are filled by blank entries.
    let codes = session.code_objects.iter();
    by_id(
        file,
        ",\"code_objects\":",
        codes.map(|code| (code.id.0, describe::code_object(code))),
        blank_code_object,
    )?;
    // Demangled once, and used by symbols and host functions.
    let names: HashMap<KernelId, KernelSpellings> = session
        .kernel_symbols
        .iter()
        .map(|symbol| (symbol.id, spellings(&symbol.name, options.kernel_names)))
        .collect();
    let symbols = session.kernel_symbols.iter();
    by_id(
        file,
        ",\"kernel_symbols\":",
        symbols.map(|symbol| {
            let text = describe::kernel_symbol(symbol, &names[&symbol.id]);
            (symbol.id.0, text)
        }),
        |id| blank_kernel_symbol(id, options.kernel_names),
    )?;
    let functions = session.host_functions.iter();
    by_id(
        file,
        ",\"host_functions\":",
        functions.map(|function| {
            let names = spellings(&function.name, options.kernel_names);
            (function.id, host_function(function, &names))
        }),
        blank_host_function,
    )?;
    summary::write(file, session, stats, labels)
}

pub(super) fn raw(file: &mut TextFile, text: &str) {
    file.buffer.extend_from_slice(text.as_bytes());
}

fn key(file: &mut TextFile, key: &str) {
    quote_bytes(&mut file.buffer, key);
    file.buffer.push(b':');
}

/// `start` and an array of values that are JSON already.
fn array(
    file: &mut TextFile,
    start: &str,
    values: impl IntoIterator<Item = String>,
) -> Result<(), WriteError> {
    raw(file, start);
    file.buffer.push(b'[');
    let mut separator = "";
    for value in values {
        raw(file, separator);
        raw(file, &value);
        separator = ",";
        file.flush_if_full()?;
    }
    file.buffer.push(b']');
    Ok(())
}

/// An array whose position is the id: what is missing is blank. `values` ascend.
fn by_id(
    file: &mut TextFile,
    start: &str,
    values: impl Iterator<Item = (u64, String)>,
    blank: impl Fn(u64) -> String,
) -> Result<(), WriteError> {
    let mut next = 1;
    let filled = values.flat_map(|(id, text)| {
        let missing = if id <= LAST_BLANK { next..id } else { 0..0 };
        next = id.saturating_add(1);
        let blanks: Vec<String> = missing.map(&blank).collect();
        blanks.into_iter().chain([text])
    });
    let all: Vec<String> = [blank(0)].into_iter().chain(filled).collect();
    array(file, start, all)
}

fn texts<'a>(values: impl Iterator<Item = &'a str>) -> Vec<String> {
    values
        .map(|value| {
            let mut text = String::new();
            quote(&mut text, value);
            text
        })
        .collect()
}

fn metadata(session: &Session, options: &Options, target: &Target) -> String {
    let process = &session.process;
    let node = Node::from_session(session);
    let node = Object::new()
        .number("id", node.id)
        .number("hash", node.hash)
        .text("machine_id", &node.machine_id)
        .text("system_name", &node.system_name)
        .text("hostname", &node.hostname)
        .text("release", &node.release)
        .text("version", &node.version)
        .text("hardware_name", &node.hardware_name)
        .text("domain_name", &node.domain_name);
    Object::new()
        .json("node", &node.end())
        .number("pid", process.pid)
        .number("init_time", process.init_time)
        .number("fini_time", process.fini_time)
        .array("command", texts(process.command.iter().map(String::as_str)))
        .json(
            "config",
            &settings::of_outputs(session, options, target).to_string(),
        )
        .end()
}

fn write_strings(
    file: &mut TextFile,
    session: &Session,
    options: &Options,
    operations: &OperationNumbers,
    instructions: &Instructions<'_>,
) -> Result<(), WriteError> {
    let table = |names: &(String, Vec<String>)| {
        Object::new()
            .text("kind", &names.0)
            .array("operations", texts(names.1.iter().map(String::as_str)))
            .end()
    };
    array(
        file,
        "\"callback_records\":",
        operations.callbacks.iter().map(table),
    )?;
    array(
        file,
        ",\"buffer_records\":",
        operations.buffers.iter().map(table),
    )?;
    // Written one by one: there may be millions of messages, which do not fit into memory as a document.
    raw(file, ",\"marker_api\":[");
    let calls = &session.calls;
    let mut separator: &[u8] = b"";
    let mut digits = itoa::Buffer::new();
    for index in calls.indices() {
        if !session.call(index).class.has_message() {
            continue;
        }
        let out = &mut file.buffer;
        out.extend_from_slice(separator);
        out.extend_from_slice(b"{\"key\":");
        out.extend_from_slice(digits.format(calls.correlation[index].0).as_bytes());
        out.extend_from_slice(b",\"value\":\"");
        escape_bytes(out, session.strings.get(calls.message[index]));
        out.extend_from_slice(b"\"}");
        separator = b",";
        file.flush_if_full()?;
    }
    raw(file, "]");
    // Without renaming the external ids of records are 0, and no text belongs to them.
    let renamed: BTreeMap<u64, StringId> = session
        .regions
        .iter()
        .filter(|_| options.kernel_names.rename)
        .map(|region| (region.correlation.0, region.message))
        .collect();
    array(
        file,
        ",\"correlation_id\":{\"external\":",
        renamed.into_iter().map(|(id, message)| {
            Object::new()
                .number("key", id)
                .text("value", session.strings.get(message))
                .end()
        }),
    )?;
    // Counters share dimensions; each is listed once.
    let dimensions: BTreeMap<(u64, u64), &CounterDimension> = session
        .counters
        .iter()
        .flat_map(|counter| &counter.dimensions)
        .map(|dimension| ((dimension.id, dimension.size), dimension))
        .collect();
    array(
        file,
        "},\"counters\":{\"dimension_ids\":",
        dimensions.into_values().map(describe::dimension),
    )?;
    raw(file, "},");
    instructions.write_texts(&mut file.buffer, session);
    let traces = &session.thread_traces;
    let names = |names: &[String]| {
        let mut text = String::new();
        for (number, name) in names.iter().enumerate() {
            text.push_str(if number > 0 { "," } else { "" });
            quote(&mut text, name);
        }
        text
    };
    // The first name of a code object stands for none.
    let first = [String::new()];
    let code = [&first, traces.code_files.as_slice()].concat();
    let text = format!(
        ",\"att_filenames\":[{}],\"code_object_snapshot_filenames\":[{}]",
        names(&traces.stream_files),
        names(&code)
    );
    raw(file, &text);
    Ok(())
}

fn blank_code_object(id: u64) -> String {
    let blank = describe::code_object(&CodeObject {
        id: CodeObjectId(id),
        agent: AgentHandle(0),
        uri: String::new(),
        load_base: 0,
        load_size: 0,
        load_delta: 0,
        storage_type: 0,
        memory_base: 0,
        memory_size: 0,
        size: 0,
    });
    // Where nothing is stored there is no place either.
    blank.replace(",\"memory_base\":0,\"memory_size\":0", "")
}

/// A kernel that was never registered. It is named as everywhere else, except for the first: number 0 stands for no
/// kernel, and has the name `0` in files of the original.
fn blank_kernel_symbol(id: u64, names: KernelNames) -> String {
    let symbol = KernelSymbol {
        id: KernelId(id),
        code_object: CodeObjectId(0),
        name: String::new(),
        kernel_object: 0,
        kernarg_size: 0,
        kernarg_align: 0,
        group_size: 0,
        private_size: 0,
        sgpr_count: 0,
        arch_vgpr_count: 0,
        accum_vgpr_count: 0,
        entry_offset: 0,
        kernel_address: 0,
        size: 0,
    };
    let name = match id {
        0 => "0".to_owned(),
        id => without_symbol(id, names),
    };
    let names = KernelSpellings {
        formatted: name.clone(),
        demangled: name.clone(),
        truncated: name,
    };
    describe::kernel_symbol(&symbol, &names)
}

fn blank_host_function(id: u64) -> String {
    let function = HostFunction {
        id,
        kernel: KernelId(0),
        code_object: CodeObjectId(0),
        address: 0,
        modules: 0,
        thread_limit: 0,
        name: String::new(),
    };
    let names = KernelSpellings {
        formatted: String::new(),
        demangled: String::new(),
        truncated: String::new(),
    };
    host_function(&function, &names)
}

/// Compilers register no indices and dimensions.
fn host_function(function: &HostFunction, names: &KernelSpellings) -> String {
    let handle = |value: u64| Object::new().number("handle", value).end();
    let zeros = Object::new()
        .number("x", 0)
        .number("y", 0)
        .number("z", 0)
        .end();
    // `HostFunction` is all of the 120 bytes that is kept.
    let size = if function.id == 0 { 0 } else { 120 };
    Object::new()
        .number("size", size)
        .number("host_function_id", function.id)
        .number("kernel_id", function.kernel)
        .number("code_object_id", function.code_object)
        .json("host_function", &handle(function.address))
        .json("modules", &handle(function.modules))
        .text("device_function", &function.name)
        .number("thread_limit", function.thread_limit)
        .json("thread_ids", &zeros)
        .json("block_ids", &zeros)
        .json("block_dims", &zeros)
        .json("grid_dims", &zeros)
        .number("workgroup_size", 0)
        .text("formatted_host_function_name", &names.formatted)
        .text("demangled_host_function_name", &names.demangled)
        .text("truncated_host_function_name", &names.truncated)
        .end()
}
