//! Reads the facts that records refer to: process, strings, agents, code.

use std::collections::HashMap;

use rpd_core::agent::{Agent, AgentType};
use rpd_core::ids::{AgentHandle, CodeObjectId, KernelId, Nanoseconds, ProcessId, StringId};
use rpd_core::kernel_name::formatted;
use rpd_core::launcher::Place;
use rpd_core::options::KernelNames;
use rpd_core::session::{
    ClockAnchor, CodeObject, KernelSymbol, Origin, Process, Provider, ResourceKind, ResourceName,
    Session, Strings,
};
use rpd_core::storage::by_id::ById;
use rpd_core::storage::column::Storage;
use rusqlite::Result;
use serde_json::Value;

use super::super::stack_views::FIRST_MADE_UP;
use super::super::symbols::{INTERPRETER_FRAMES, RUNTIME_FRAMES};
use super::super::tables::has_graph_columns;
use super::agent::{from_json, number};
use super::counters::columns;
use super::scan::{Source, bits, integer, text, word};
use super::{Recording, Settings};
use crate::settings::keys;

/// First id of a string that only damaged databases have, unless the database has about as many texts.
const MAX_IDS: usize = 1 << 24;
const MAX_IDS_PER_TEXT: usize = 16;
/// Name in our databases of agents without a description; the handle follows.
const UNKNOWN_AGENT: &str = "unknown agent ";

/// A session while it is read from a database.
#[derive(Default)]
pub(super) struct Info {
    pub(super) session: Session,
    /// All texts of the database, whether the session uses them or not.
    texts: Strings,
    /// A text's id in `texts`, by its id in the database; 0 for ids that no text has.
    text_ids: ById<u32>,
    /// A text's id in the session plus 1, by its id in the database; 0 for texts that the session does not use.
    used: ById<u32>,
    /// Agents, by their ids in the database.
    pub(super) agents: HashMap<i64, AgentHandle>,
    /// Whether dispatches were counted and not traced.
    pub(super) only_counted: bool,
}

impl Info {
    /// The text with this id in the database.
    pub(super) fn text(&self, id: u32) -> &str {
        self.texts.get(StringId(self.text_ids.get(id)))
    }

    /// The session's id of a text of the database.
    #[inline]
    pub(super) fn string(&mut self, id: u32) -> StringId {
        match self.used.get(id) {
            0 => {
                let text = self.texts.get(StringId(self.text_ids.get(id)));
                let string = self.session.strings.intern(text);
                if let Some(used) = self.used.get_mut(id) {
                    *used = string.0 + 1;
                }
                string
            }
            known => StringId(known - 1),
        }
    }

    /// The handle of an agent; 0 for NULL (which reads as -1) and for ids that name none.
    pub(super) fn agent(&self, id: i64) -> AgentHandle {
        self.agents.get(&id).copied().unwrap_or_default()
    }
}

pub(super) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

/// Reads all facts of a recording.
pub(super) fn read(
    source: &Source<'_>,
    recording: &Recording,
    storage: &Storage,
) -> Result<(Info, Settings)> {
    let mut info = Info::default();
    // Id 0 is the empty text, which stands for texts that the database lacks.
    for strings in [&mut info.session.strings, &mut info.texts] {
        strings.spill_to(storage);
        strings.intern("");
    }
    // Databases have no ledger: without these two the session would be reported as an incomplete recording.
    info.session.ledger.ended = true;
    info.session.ledger.runtime_seen = true;
    let mut settings = process(source, recording, &mut info)?;
    strings(source, &mut info, storage)?;
    agents(source, &mut info)?;
    // Renaming is a setting of the recording; how names were made is known from the names alone.
    settings.kernel_names = KernelNames {
        rename: settings.kernel_names.rename,
        ..code(source, &mut info.session)?
    };
    names_of_threads(source, &mut info.session)?;
    names_of_streams(source, &mut info.session)?;
    Ok((info, settings))
}

fn process(source: &Source<'_>, recording: &Recording, info: &mut Info) -> Result<Settings> {
    let Info {
        session,
        only_counted,
        ..
    } = info;
    let mut settings = Settings::default();
    let mut node = 0;
    source.each(
        "id, nid, ppid, pid, init, fini, command, environment, extdata",
        "rocpd_info_process",
        |row| {
            // A merged database has a process of each recording.
            if integer(row, 0) != recording.id {
                return Ok(());
            }
            node = integer(row, 1);
            let process = &mut session.process;
            process.ppid = ProcessId(word(row, 2));
            process.pid = ProcessId(word(row, 3));
            process.init_time = Nanoseconds(bits(row, 4));
            process.fini_time = Nanoseconds(bits(row, 5));
            process.command = text(row, 6).split(' ').map(str::to_owned).collect();
            process.executable = process.command.first().cloned().unwrap_or_default();
            if let Value::Object(variables) = json(&text(row, 7)) {
                process.environment = variables
                    .into_iter()
                    .filter_map(|(name, value)| Some((name, value.as_str()?.to_owned())))
                    .collect();
            }
            let extdata = json(&text(row, 8));
            if extdata["provider"] == "direct" {
                process.provider = Provider::Direct;
            } else if extdata["provider"] == "cuda" {
                process.provider = Provider::Cuda;
            }
            of_launcher(process, &extdata);
            session.ledger.ended = extdata[keys::ENDED] != Value::Bool(false);
            let is_set = |key: &str| extdata[key].as_bool().unwrap_or(number(&extdata, key) != 0);
            settings.kernel_names.rename = is_set("kernel_rename");
            settings.group_by_queue = is_set("group_by_queue");
            *only_counted = extdata["kernel_trace"] == Value::Bool(false);
            Ok(())
        },
    )?;
    let mut origin = Origin {
        guid: recording.guid.clone(),
        node,
        has_graphs: has_graph_columns(&columns(source, "rocpd_kernel_dispatch")?),
        ..Origin::default()
    };
    source.each(
        "id, hash, machine_id, system_name, hostname, release, version, hardware_name, domain_name",
        "rocpd_info_node",
        |row| {
            if integer(row, 0) == node {
                origin.node_hash = integer(row, 1);
                origin.machine_id = text(row, 2);
                origin.system_name = text(row, 3);
                origin.hostname = text(row, 4);
                origin.release = text(row, 5);
                origin.version = text(row, 6);
                origin.hardware_name = text(row, 7);
                origin.domain_name = text(row, 8);
            }
            Ok(())
        },
    )?;
    session.origin = Some(origin);
    source.each_tag(|tag, value| match tag {
        RUNTIME_FRAMES => settings.shown_frames.runtime = value == "1",
        INTERPRETER_FRAMES => settings.shown_frames.interpreter = value == "1",
        _ => {}
    })?;
    Ok(settings)
}

/// Takes what a database has of a process in a parallel program: its place, and its clocks.
fn of_launcher(process: &mut Process, extdata: &Value) {
    process.place = Place {
        rank: extdata[keys::RANK].as_u64(),
        size: extdata[keys::RANKS].as_u64(),
        launcher: extdata[keys::LAUNCHER].as_str().unwrap_or("").to_owned(),
    };
    let anchors = extdata[keys::ANCHORS].as_array().into_iter().flatten();
    for pair in anchors {
        let (Some(time), Some(real_time)) = (pair[0].as_u64(), pair[1].as_u64()) else {
            continue;
        };
        // The first one is that of the beginning, unless the recording had none.
        if time == process.init_time.0 && process.real_time == 0 {
            process.real_time = real_time;
        } else {
            process.last_anchor = Some(ClockAnchor {
                time: Nanoseconds(time),
                real_time,
            });
        }
    }
}

fn strings(source: &Source<'_>, info: &mut Info, storage: &Storage) -> Result<()> {
    for ids in [&mut info.text_ids, &mut info.used] {
        *ids = ById::zeros(0, Some(storage));
    }
    // Texts that views put together are none of the recording's, and take long.
    let stored = format!("(SELECT * FROM rocpd_string WHERE id < {FIRST_MADE_UP})");
    source.each("id, string", &stored, |row| {
        let id = integer(row, 0);
        // Ids index a list: one id that only damage explains must not take memory for all ids below it.
        let most = MAX_IDS.max(MAX_IDS_PER_TEXT * info.texts.len());
        let Some(index) = usize::try_from(id).ok().filter(|&index| index < most) else {
            return Ok(());
        };
        for ids in [&mut info.text_ids, &mut info.used] {
            ids.grow(index + 1);
        }
        let text = info.texts.intern(&text(row, 1));
        if let Some(of_id) = info.text_ids.get_mut(index as u32) {
            *of_id = text.0;
        }
        Ok(())
    })
}

fn agents(source: &Source<'_>, info: &mut Info) -> Result<()> {
    let columns = "id, type, absolute_index, logical_index, type_index, name, model_name, vendor_name, product_name, \
        extdata";
    source.each(columns, "rocpd_info_agent", |row| {
        let id = integer(row, 0);
        let name = text(row, 5);
        let known = name
            .strip_prefix(UNKNOWN_AGENT)
            .and_then(|handle| handle.parse().ok());
        // Such a row stands for a handle of which nothing else is known.
        if let Some(handle) = known {
            info.agents.insert(id, AgentHandle(handle));
            return Ok(());
        }
        let labelled = AgentType::from_label(&text(row, 1));
        let mut agent = from_json(&json(&text(row, 9))).unwrap_or_else(|| Agent {
            // Any value that is no other agent's will do.
            handle: AgentHandle(u64::MAX - id.cast_unsigned()),
            agent_type: labelled,
            node_id: word(row, 2),
            logical_node_id: integer(row, 3) as i32,
            logical_node_type_id: integer(row, 4) as i32,
            name,
            model_name: text(row, 6),
            vendor_name: text(row, 7),
            product_name: text(row, 8),
            ..Agent::default()
        });
        // The description has a number, which network adapters lack.
        if labelled == AgentType::Nic {
            agent.agent_type = labelled;
        }
        info.agents.insert(id, agent.handle);
        info.session.agents.push(agent);
        Ok(())
    })
}

/// Reads code objects and kernels. Returns how the names of kernels are shown in this database.
fn code(source: &Source<'_>, session: &mut Session) -> Result<KernelNames> {
    source.each(
        "id, uri, load_base, load_size, load_delta, extdata",
        "rocpd_info_code_object",
        |row| {
            let json = json(&text(row, 5));
            // Ours writes rows without description where kernels name a code object that was never seen.
            if json["code_object_id"].is_null() {
                return Ok(());
            }
            session.code_objects.push(CodeObject {
                id: CodeObjectId(bits(row, 0)),
                agent: AgentHandle(number(&json["agent_id"], "handle")),
                uri: text(row, 1),
                load_base: bits(row, 2),
                load_size: bits(row, 3),
                load_delta: integer(row, 4),
                storage_type: number(&json, "storage_type") as u32,
                memory_base: number(&json, "memory_base"),
                memory_size: number(&json, "memory_size"),
                size: number(&json, "size"),
            });
            Ok(())
        },
    )?;
    let mut shown: Vec<String> = Vec::new();
    let columns = "id, code_object_id, kernel_name, display_name, kernel_object, kernarg_segment_size, \
        kernarg_segment_alignment, group_segment_size, private_segment_size, sgpr_count, arch_vgpr_count, \
        accum_vgpr_count, extdata";
    source.each(columns, "rocpd_info_kernel_symbol", |row| {
        let (raw, display) = (text(row, 2), text(row, 3));
        let json = json(&text(row, 12));
        if json["kernel_id"].is_null() && raw == integer(row, 0).to_string() {
            // A kernel that was not registered is named after its number.
            return Ok(());
        }
        session.kernel_symbols.push(KernelSymbol {
            id: KernelId(bits(row, 0)),
            code_object: CodeObjectId(bits(row, 1)),
            name: if raw.is_empty() { display.clone() } else { raw },
            kernel_object: bits(row, 4),
            kernarg_size: word(row, 5),
            kernarg_align: word(row, 6),
            group_size: word(row, 7),
            private_size: word(row, 8),
            sgpr_count: word(row, 9),
            arch_vgpr_count: word(row, 10),
            accum_vgpr_count: word(row, 11),
            entry_offset: number(&json, "kernel_code_entry_byte_offset").cast_signed(),
            kernel_address: number(&json["kernel_address"], "handle"),
            size: number(&json, "size"),
        });
        shown.push(display);
        Ok(())
    })?;
    // Databases do not tell how names were made: it is the first way that makes all names that they have.
    let is_how = |names: &KernelNames| {
        let pairs = session.kernel_symbols.iter().zip(&shown);
        pairs
            .filter(|(_, shown)| !shown.is_empty())
            .all(|(symbol, shown)| formatted(&symbol.name, *names) == **shown)
    };
    let names = |truncate, mangled, original| KernelNames {
        truncate,
        mangled,
        rename: false,
        original,
    };
    let ways = [
        names(false, false, false),
        names(false, false, true),
        names(true, false, false),
        names(true, false, true),
        names(false, true, false),
    ];
    Ok(ways.into_iter().find(is_how).unwrap_or_default())
}

/// Names that the program gave to streams: those that are not made of a number.
fn names_of_streams(source: &Source<'_>, session: &mut Session) -> Result<()> {
    source.each("id, name", "rocpd_info_stream", |row| {
        let name = text(row, 1);
        let is_made = name == "Default Stream"
            || name
                .strip_prefix("Stream ")
                .is_some_and(|rest| rest.parse::<u64>().is_ok());
        if !name.is_empty() && !is_made {
            session.resource_names.push(ResourceName {
                kind: ResourceKind::Stream,
                resource: bits(row, 0),
                name,
            });
        }
        Ok(())
    })
}

fn names_of_threads(source: &Source<'_>, session: &mut Session) -> Result<()> {
    source.each("tid, name", "rocpd_info_thread", |row| {
        let name = text(row, 1);
        if !name.is_empty() {
            session.resource_names.push(ResourceName {
                kind: ResourceKind::Thread,
                resource: bits(row, 0),
                name,
            });
        }
        Ok(())
    })
}
