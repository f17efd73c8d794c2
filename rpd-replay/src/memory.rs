//! Calls that allocate and free memory.

use std::ffi::CString;

use rpd_capture::Call;
use rpd_spool::capture::{Operation, Role, call_flag, item, memory_kind, number as n};

use crate::arguments::{out_word, word};
use crate::error::{ReplayError, Status};
use crate::hip::{Extent, PitchedPtr, SUCCESS, word_of};
use crate::player::Player;

impl Player {
    /// Replays a call that allocates or frees memory.
    pub(crate) fn memory(
        &mut self,
        call: &Call,
        operation: &'static Operation,
    ) -> Result<(), ReplayError> {
        let frees = matches!(
            call.api,
            n::hipFree | n::hipFreeAsync | n::hipHostFree | n::hipFreeHost | n::hipHostUnregister
        );
        if let Some(made) = call.allocation() {
            self.host_uses.allocated(made.kind, made.base, made.size);
            // All memory of the capture is there from the start; the call only says that it is in use.
            if self.same {
                self.reuse(call, operation, made.base, made.size)?;
                self.translation.insert(made.base, made.size, made.base);
                return self.note_managed(call, made.base);
            }
            if call.api == n::hipHostRegister {
                let now = self.host.buffer(made.base, made.size)?;
                self.hip
                    .check("hipHostRegister", &[now, made.size, u64::from(made.flags)])?;
                self.translation.insert(made.base, made.size, now);
                return Ok(());
            }
            // This function returns a struct by pointer and takes one by value, which calls with words cannot do.
            if call.api == n::hipMalloc3D {
                let mut pitched = PitchedPtr([0; 4]);
                let at = operation
                    .argument("extent")
                    .map_or(0, |one| usize::from(one.offset));
                let bytes = call.arguments.get(at..).unwrap_or_default();
                let extent = Extent([0, 1, 2].map(|index| word(bytes, index)));
                let error = self.hip.malloc_3d(&mut pitched, extent)?;
                if error != SUCCESS {
                    let text = self.hip.error_name(error);
                    return Err(ReplayError::new(Status::Api, format!("returned {text}")));
                }
                self.translation.insert(made.base, made.size, pitched.0[0]);
                return Ok(());
            }
            if matches!(made.kind, memory_kind::DEVICE | memory_kind::POOLED)
                && matches!(call.api, n::hipMallocPitch | n::hipMemAllocPitch)
            {
                // As many bytes as the program had, even if the pitch would differ here: the program's pitch is in its calls.
                let mut now = 0u64;
                self.hip
                    .check("hipMalloc", &[word_of(&mut now), made.size])?;
                self.translation.insert(made.base, made.size, now);
                return Ok(());
            }
            self.generic(call, operation)?;
            return self.note_managed(call, made.base);
        }
        if frees {
            let base = operation
                .with_role(Role::Address)
                .map_or(0, |argument| argument.value(&call.arguments));
            if base == 0 {
                return Ok(());
            }
            self.host_uses.freed(base);
            if self.same {
                let size = self.translation.remove(base).map_or(0, |(size, _)| size);
                // In the order of the stream: the memory may be used again when the event is complete.
                if call.api == n::hipFreeAsync {
                    // A free in a capture becomes a node, which frees nothing now.
                    if call.flags & call_flag::IN_STREAM_CAPTURE != 0 {
                        return Ok(());
                    }
                    let stream = self.stream(call, operation);
                    let mut event = 0u64;
                    self.hip
                        .check("hipEventCreateWithFlags", &[word_of(&mut event), 2])?;
                    self.hip.check("hipEventRecord", &[event, stream])?;
                    self.freed.push((base, base + size, stream, event));
                    return Ok(());
                }
                // The real call waits as well.
                return self.wait_for_all();
            }
            self.generic(call, operation)?;
            self.translation.remove(base);
            return Ok(());
        }
        if call.api == n::hipHostGetDevicePointer {
            let host = call.argument("hstPtr");
            // The device has the memory at the host's address, as most do: nothing to translate.
            if out_word(call, 0) == Some(host) {
                return Ok(());
            }
            let now = self.translation.find(host);
            let Some(now) = now else {
                return Err(ReplayError::damaged(
                    "the host memory is not in the capture",
                ));
            };
            let mut device = 0u64;
            self.hip
                .check("hipHostGetDevicePointer", &[word_of(&mut device), now, 0])?;
            if let Some(old) = out_word(call, 0) {
                let size = self
                    .translation
                    .memory(host)
                    .map_or(1, |(base, size, _)| base + size - host);
                self.host_uses.aliased(old, size, host);
                self.translation.insert(old, size, device);
            }
            return Ok(());
        }
        self.generic(call, operation)
    }

    /// Makes a call that allocates memory of a graph, and enters the address of that memory.
    pub(crate) fn graph_memory(
        &mut self,
        call: &Call,
        operation: &Operation,
    ) -> Result<(), ReplayError> {
        let Some(made) = call.allocation() else {
            return Err(ReplayError::damaged("its memory is not in the capture"));
        };
        let mut now = made.base;
        if self.same {
            self.reuse(call, operation, made.base, made.size)?
        } else {
            self.hip
                .check("hipMalloc", &[word_of(&mut now), made.size])?
        }
        self.translation.insert(made.base, made.size, now);
        Ok(())
    }

    /// Sets the variables of code objects to an allocation that is the memory of a managed variable.
    fn note_managed(&mut self, call: &Call, base: u64) -> Result<(), ReplayError> {
        let name = call.items().find(|item| item.kind == item::SYMBOL);
        let Some(name) = name.and_then(|item| CString::new(item.payload).ok()) else {
            return Ok(());
        };
        let loaded: Vec<(i64, i32)> = self.modules.keys().copied().collect();
        let device = self.device;
        for (code, on) in loaded {
            self.set_managed(code, on, &name, base)?;
        }
        self.managed.push((name, base));
        self.set_device(device)
    }

    /// Waits for work that was to be complete before memory at these addresses was freed: they are used again.
    pub(crate) fn reuse(
        &mut self,
        call: &Call,
        operation: &Operation,
        base: u64,
        size: u64,
    ) -> Result<(), ReplayError> {
        if call.flags & call_flag::IN_STREAM_CAPTURE != 0 {
            return Ok(());
        }
        let end = base + size;
        let mut events = Vec::new();
        self.freed.retain(|(start, stop, stream, event)| {
            let overlaps = *start < end && *stop > base;
            if overlaps {
                events.push((*stream, *event));
            }
            !overlaps
        });
        if events.is_empty() {
            return Ok(());
        }
        let asynchronous = operation.name().contains("Async");
        let stream = self.stream(call, operation);
        for (freed_on, event) in events {
            if !asynchronous {
                self.hip.check("hipEventSynchronize", &[event])?;
            } else if freed_on != stream {
                self.hip.check("hipStreamWaitEvent", &[stream, event, 0])?;
            }
            self.hip.check("hipEventDestroy", &[event])?;
        }
        Ok(())
    }
}
