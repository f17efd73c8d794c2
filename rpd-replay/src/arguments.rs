//! The arguments of a call: handles and addresses of the capture become those of the replay.

use std::ffi::CString;

use rpd_capture::Call;
use rpd_spool::capture::{Argument, Group, HandleKind, Operation, Role, item};

use crate::error::ReplayError;
use crate::hip::word_of;
use crate::host;
use crate::player::Player;
use crate::stream_capture;

/// Memory behind the pointers of a call, which lives while it is made.
#[derive(Default)]
pub(crate) struct PointedMemory {
    texts: Vec<CString>,
    buffers: Vec<Box<[u64]>>,
    /// Slots for new handles and addresses: position of the argument and slot.
    slots: Vec<(usize, Box<u64>)>,
}

impl PointedMemory {
    /// The address of a copy of `bytes`.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> u64 {
        let mut buffer = vec![0u64; bytes.len().div_ceil(8).max(1)].into_boxed_slice();
        for (word, part) in buffer.iter_mut().zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            whole[..part.len()].copy_from_slice(part);
            *word = u64::from_le_bytes(whole);
        }
        let address = buffer.as_ptr() as u64;
        self.buffers.push(buffer);
        address
    }

    pub(crate) fn slot(&mut self, position: usize, value: u64) -> u64 {
        let mut slot = Box::new(value);
        let address = word_of(&mut *slot);
        self.slots.push((position, slot));
        address
    }

    pub(crate) fn stored(&self, position: usize) -> Option<u64> {
        let found = self.slots.iter().find(|(known, _)| *known == position);
        // SAFETY: the slot is alive; the runtime may have written it through its address.
        found.map(|(_, slot)| unsafe { std::ptr::from_ref::<u64>(slot).read_volatile() })
    }
}

pub(crate) fn word(bytes: &[u8], index: usize) -> u64 {
    let found = bytes.get(index * 8..index * 8 + 8);
    found.map_or(0, |found| {
        u64::from_le_bytes(found.try_into().unwrap_or_default())
    })
}

pub(crate) fn set_word(bytes: &mut [u8], index: usize, value: u64) {
    if let Some(place) = bytes.get_mut(index * 8..index * 8 + 8) {
        place.copy_from_slice(&value.to_le_bytes());
    }
}

/// The bytes that the call read behind its arguments, for calls that read in one place; `None` when it read nothing.
pub(crate) fn input(call: &Call) -> Option<&[u8]> {
    let item = call.items().find(|item| item.kind == item::IN)?;
    Some(item.payload)
}

/// The first word that the call stored behind the argument at `position`; `None` when it stored nothing.
pub(crate) fn out_word(call: &Call, position: u16) -> Option<u64> {
    call.items()
        .find(|item| item.kind == item::OUT && item.argument == position)?
        .word()
}

impl Player {
    /// The stream of a call.
    pub(crate) fn stream(&mut self, call: &Call, operation: &Operation) -> u64 {
        let handle = Role::Handle(HandleKind::Stream);
        let raw = operation
            .with_role(handle)
            .map_or(0, |argument| argument.value(&call.arguments));
        self.stream_of(call, raw, operation.name().ends_with("_spt"))
            .unwrap_or(0)
    }

    pub(crate) fn stream_of(
        &mut self,
        call: &Call,
        raw: u64,
        per_thread: bool,
    ) -> Result<u64, ReplayError> {
        if self.options.serial {
            // The null stream cannot be captured.
            return Ok(self.serial_captures.of(call, raw, per_thread).unwrap_or(0));
        }
        match raw {
            0 if !per_thread => Ok(0),
            1 => Ok(0),
            0 | 2 => {
                if let Some(found) = self.thread_streams.get(&call.tid) {
                    return Ok(*found);
                }
                let mut made = 0u64;
                self.hip.check("hipStreamCreate", &[word_of(&mut made)])?;
                self.thread_streams.insert(call.tid, made);
                Ok(made)
            }
            handle => self.handle(HandleKind::Stream, handle),
        }
    }

    pub(crate) fn handle(&self, kind: HandleKind, raw: u64) -> Result<u64, ReplayError> {
        if raw == 0 {
            return Ok(0);
        }
        self.handles.get(&(kind, raw)).copied().ok_or_else(|| {
            ReplayError::damaged(format!(
                "the capture does not hold where the {} {raw:#x} comes from",
                kind.name()
            ))
        })
    }

    /// Address in the replay of an address of the capture: memory of the runtime, or a buffer for host memory.
    pub(crate) fn address(&mut self, call: &Call, address: u64) -> Result<u64, ReplayError> {
        if address == 0 {
            return Ok(0);
        }
        let known = call
            .data()
            .filter(|data| data.address == address)
            .map(|data| host::span(&data))
            .max();
        // Results of work under way are data of a later call.
        let size = ["sizeBytes", "count", "size", "ByteCount"]
            .iter()
            .map(|name| call.argument(name))
            .find(|size| *size > 0)
            .unwrap_or(8);
        // Fills may count larger units.
        let unit = match call.operation().map_or("", Operation::name) {
            name if name.contains("D32") => 4,
            name if name.contains("D16") => 2,
            _ => 1,
        };
        let size = size.saturating_mul(unit);
        let pitch = call.argument("dpitch").max(call.argument("spitch"));
        let rows = pitch.saturating_mul(call.argument("height"));
        self.base_of(address, size.max(rows).max(known.unwrap_or(0)))
    }

    /// The word of an argument.
    pub(crate) fn word_for(
        &mut self,
        call: &Call,
        operation: &Operation,
        position: usize,
        argument: &Argument,
        behind: &mut PointedMemory,
    ) -> Result<u64, ReplayError> {
        let value = argument.value(&call.arguments);
        let read = call
            .items()
            .find(|item| item.kind == item::IN && usize::from(item.argument) == position)
            .map(|item| item.payload.to_vec());
        let wrote = call
            .items()
            .find(|item| item.kind == item::OUT && usize::from(item.argument) == position)
            .map(|item| item.payload.to_vec());
        let missing = || ReplayError::damaged(format!("{} is not in the capture", argument.name()));
        Ok(match argument.role {
            // Numbers of devices may be others in the replay; the function's declaration tells them apart by name only.
            Role::Value => match argument.name() {
                "mode" => stream_capture::mode(call).unwrap_or(value),
                "dstDeviceId" | "srcDeviceId" | "srcDevice" | "deviceId" | "peerDeviceId"
                | "device" => u64::from(self.place(value as i32).cast_unsigned()),
                _ => value,
            },
            Role::Handle(HandleKind::Stream) => {
                self.stream_of(call, value, operation.name().ends_with("_spt"))?
            }
            Role::Handle(kind) => self.handle(kind, value)?,
            // Results go into slots: the program's own variables are not part of a replay.
            Role::HandleOut(_) | Role::AddressOut => match value {
                0 => 0,
                _ => behind.slot(position, 0),
            },
            Role::Text => {
                let text = CString::new(read.ok_or_else(missing)?).map_err(|_| missing())?;
                let address = text.as_ptr() as u64;
                behind.texts.push(text);
                address
            }
            Role::Address => self.address(call, value)?,
            Role::Struct(_) => match value {
                0 => 0,
                _ => behind.copy(&read.ok_or_else(missing)?),
            },
            Role::Resource(_) => {
                let mut bytes = read.ok_or_else(missing)?;
                self.translate_resource(&mut bytes)?;
                behind.copy(&bytes)
            }
            Role::Symbol => (self.symbol(call)?.0).wrapping_add(call.argument("offset")),
            // A list that the capture lacks was null or empty.
            Role::Array(..) => match (value, read) {
                (0, _) | (_, None) => 0,
                // Nodes are handles; words of other lists are plain values.
                (_, Some(mut bytes)) => {
                    if operation.group == Group::Graph {
                        for index in 0..bytes.len() / 8 {
                            let node = self.handle(HandleKind::Node, word(&bytes, index))?;
                            set_word(&mut bytes, index, node);
                        }
                    }
                    behind.copy(&bytes)
                }
            },
            Role::Copy2d => {
                let mut bytes = read.ok_or_else(missing)?;
                // Words of one side of `hip_Memcpy2D`: kind of memory, host address, device address, array.
                for (kind, host, device, array) in [(2, 3, 4, 5), (9, 10, 11, 12)] {
                    // `hipMemoryType`.
                    let at = match word(&bytes, kind) as u32 {
                        1 => host,
                        10 => {
                            let now = self.handle(HandleKind::Array, word(&bytes, array))?;
                            set_word(&mut bytes, array, now);
                            continue;
                        }
                        _ => device,
                    };
                    // Pitch times rows, with those before the rectangle.
                    let (pitch, before) = (word(&bytes, kind + 4), word(&bytes, kind - 1));
                    let pitch = pitch.max(word(&bytes, 14));
                    let size = before
                        .saturating_add(word(&bytes, 15))
                        .saturating_mul(pitch)
                        .saturating_add(word(&bytes, 14));
                    let now = self.base_of(word(&bytes, at), size)?;
                    set_word(&mut bytes, at, now);
                }
                behind.copy(&bytes)
            }
            Role::Copy3d => {
                let mut bytes = read.ok_or_else(missing)?;
                self.translate_box(&mut bytes)?;
                behind.copy(&bytes)
            }
            Role::DriverCopy3d => {
                let mut bytes = read.ok_or_else(missing)?;
                // Of each side: x, y, z, level, `hipMemoryType`, host, device, array, pitch, rows of a slice.
                for side in [0, 10] {
                    let at = match word(&bytes, side + 4) as u32 {
                        1 => side + 5,
                        10 => {
                            let now = self.handle(HandleKind::Array, word(&bytes, side + 7))?;
                            set_word(&mut bytes, side + 7, now);
                            continue;
                        }
                        _ => side + 6,
                    };
                    let pitch = word(&bytes, side + 8).max(word(&bytes, 20));
                    let rows_used = word(&bytes, side + 1).saturating_add(word(&bytes, 21));
                    let rows = word(&bytes, side + 9).max(rows_used);
                    let slices = word(&bytes, side + 2).saturating_add(word(&bytes, 22));
                    let size = pitch
                        .saturating_mul(rows)
                        .saturating_mul(slices)
                        .saturating_add(word(&bytes, side))
                        .saturating_add(word(&bytes, 20));
                    let now = self.base_of(word(&bytes, at), size)?;
                    set_word(&mut bytes, at, now);
                }
                behind.copy(&bytes)
            }
            Role::KernelNode => {
                let mut bytes = read.ok_or_else(missing)?;
                self.translate_kernel_node(call, &mut bytes, behind)?;
                behind.copy(&bytes)
            }
            Role::MemsetNode => {
                let mut bytes = read.ok_or_else(missing)?;
                let now = self.address(call, word(&bytes, 0))?;
                set_word(&mut bytes, 0, now);
                behind.copy(&bytes)
            }
            Role::AnyNode => {
                let mut bytes = read.ok_or_else(missing)?;
                self.translate_node(call, &mut bytes, behind)?;
                behind.copy(&bytes)
            }
            Role::MemoryOperations(_) => {
                let mut list = read.ok_or_else(missing)?;
                self.translate_operations(call, &mut list)?;
                behind.copy(&list)
            }
            Role::MemoryOperationsNode => {
                let mut bytes = read.ok_or_else(missing)?;
                let mut lists = call
                    .items()
                    .filter(|item| item.kind == item::IN && usize::from(item.argument) == position);
                let mut list = lists.nth(1).ok_or_else(missing)?.payload.to_vec();
                self.translate_operations(call, &mut list)?;
                // Context, number of operations, list, flags.
                let context = self.context()?;
                set_word(&mut bytes, 0, context);
                let list = behind.copy(&list);
                set_word(&mut bytes, 2, list);
                behind.copy(&bytes)
            }
            Role::Context => self.context()?,
            Role::NodesOut => match wrote {
                Some(nodes) if value != 0 => behind.copy(&vec![0; nodes.len()]),
                _ => 0,
            },
            Role::NodeListOut => match value {
                0 => 0,
                _ => behind.slot(position, 0),
            },
            // The arrays have room for as many nodes as the capture lists.
            Role::Count => match wrote {
                Some(count) if value != 0 => {
                    let arrays = operation.arguments().iter().enumerate();
                    let mut arrays = arrays.filter(|(_, one)| one.role == Role::NodesOut);
                    let room = arrays.find_map(|(array, _)| {
                        let mut items = call.items();
                        items.find(|item| {
                            item.kind == item::OUT && usize::from(item.argument) == array
                        })
                    });
                    let room = room.map(|item| (item.payload.len() / 8) as u64);
                    behind.slot(position, room.unwrap_or_else(|| word(&count, 0)))
                }
                _ => 0,
            },
            // The program's buffer is not there; what the call writes is not looked at.
            Role::Scratch => match value {
                0 => 0,
                _ => self.scratch.as_mut_ptr() as u64,
            },
            // These are set by the functions that make such calls.
            Role::Ignored
            | Role::Kernel
            | Role::Arguments
            | Role::Extra
            | Role::LaunchConfig
            | Role::TextureReference
            | Role::StructOut(_)
            | Role::Pitched => 0,
        })
    }

    /// Address in the replay of a rectangle's base, which has at most `size` bytes from there.
    pub(crate) fn base_of(&mut self, base: u64, size: u64) -> Result<u64, ReplayError> {
        if base == 0 {
            return Ok(0);
        }
        let found = self.translation.find(base);
        self.host_uses.name(base, size, found.is_some());
        match found {
            Some(now) => Ok(now),
            None => self.host.buffer(base, size),
        }
    }
}
