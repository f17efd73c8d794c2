//! How each call is made again.

use std::ffi::CString;
use std::sync::Arc;

use rpd_capture::Call;
use rpd_spool::capture::{
    Argument, Group, HandleKind, Operation, Role, call_flag, item, memory_kind, number as n,
};

use crate::error::{ReplayError, Status};
use crate::hip::{Extent, PitchedPtr, SUCCESS, word_of};
use crate::host;
use crate::player::{Launchable, Player, broken};

/// What a call's pointers lead to while it is made.
#[derive(Default)]
struct Behind {
    texts: Vec<CString>,
    buffers: Vec<Box<[u64]>>,
    /// Where handles and addresses are stored: position of the argument and slot.
    slots: Vec<(usize, Box<u64>)>,
}

impl Behind {
    /// The address of a copy of `bytes`.
    fn copy(&mut self, bytes: &[u8]) -> u64 {
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

    fn slot(&mut self, position: usize, value: u64) -> u64 {
        let mut slot = Box::new(value);
        let address = word_of(&mut *slot);
        self.slots.push((position, slot));
        address
    }

    fn stored(&self, position: usize) -> Option<u64> {
        let found = self.slots.iter().find(|(known, _)| *known == position);
        // SAFETY: the slot is alive; the runtime may have written it through its address.
        found.map(|(_, slot)| unsafe { std::ptr::from_ref::<u64>(slot).read_volatile() })
    }
}

fn word(bytes: &[u8], index: usize) -> u64 {
    let found = bytes.get(index * 8..index * 8 + 8);
    found.map_or(0, |found| {
        u64::from_le_bytes(found.try_into().unwrap_or_default())
    })
}

fn set_word(bytes: &mut [u8], index: usize, value: u64) {
    if let Some(place) = bytes.get_mut(index * 8..index * 8 + 8) {
        place.copy_from_slice(&value.to_le_bytes());
    }
}

impl Player {
    /// Makes a call again.
    pub(crate) fn make(
        &mut self,
        call: &Call,
        operation: &'static Operation,
    ) -> Result<(), ReplayError> {
        match call.api {
            n::hipGraphLaunch | n::hipGraphLaunch_spt => self.generic(call, operation),
            _ if operation.group == Group::Launch => self.launch(call, operation),
            n::hipModuleLoad | n::hipModuleLoadData | n::hipModuleLoadDataEx => self.load(call),
            n::hipModuleUnload => self.unload(call),
            n::hipGetFuncBySymbol => {
                let found = self.kernel(call)?;
                self.take_handles(call, operation, |_| Some(found.function));
                Ok(())
            }
            n::hipModuleGetGlobal => self.global(call),
            n::hipGetSymbolAddress => {
                let now = self.symbol(call)?;
                if let Some(old) = out_word(call, 0) {
                    self.translation.insert(old, now.1, now.0);
                }
                Ok(())
            }
            n::hipMemcpyToSymbol
            | n::hipMemcpyToSymbol_spt
            | n::hipMemcpyToSymbolAsync
            | n::hipMemcpyToSymbolAsync_spt
            | n::hipMemcpyFromSymbol
            | n::hipMemcpyFromSymbol_spt
            | n::hipMemcpyFromSymbolAsync
            | n::hipMemcpyFromSymbolAsync_spt => self.copy_symbol(call, operation),
            n::hipMemset3D | n::hipMemset3D_spt | n::hipMemset3DAsync | n::hipMemset3DAsync_spt => {
                self.fill_3d(call, operation)
            }
            n::hipStreamDestroy => {
                let raw = call.argument("stream");
                let stream = self.handle(HandleKind::Stream, raw)?;
                self.handles.remove(&(HandleKind::Stream, raw));
                self.hip.check("hipStreamDestroy", &[stream])
            }
            n::hipStreamQuery | n::hipStreamQuery_spt => {
                self.with_name(call, operation, "hipStreamSynchronize")
            }
            n::hipEventQuery => self.with_name(call, operation, "hipEventSynchronize"),
            // What the host did in them is in the data of later calls.
            n::hipStreamAddCallback
            | n::hipStreamAddCallback_spt
            | n::hipLaunchHostFunc
            | n::hipLaunchHostFunc_spt => {
                if call.flags & call_flag::IN_STREAM_CAPTURE == 0 {
                    let stream = self.stream(call, operation);
                    self.hip.check("hipStreamSynchronize", &[stream])?;
                }
                Ok(())
            }
            n::hipSetDevice => self.set_device(call.argument("deviceId") as i32),
            n::hipDeviceReset => {
                // Memory stays where it is; what the program had is not used any more.
                self.wait_for_all()
            }
            n::hipFuncSetAttribute | n::hipFuncSetCacheConfig | n::hipFuncSetSharedMemConfig => {
                self.report.skipped += 1;
                Ok(())
            }
            _ if operation.group == Group::Memory => self.memory(call, operation),
            _ => self.generic(call, operation),
        }
    }

    /// The stream of a call.
    fn stream(&mut self, call: &Call, operation: &Operation) -> u64 {
        let handle = Role::Handle(HandleKind::Stream);
        let raw = operation
            .with_role(handle)
            .map_or(0, |argument| argument.value(&call.arguments));
        self.stream_of(call, raw, operation.name().ends_with("_spt"))
            .unwrap_or(0)
    }

    fn stream_of(&mut self, call: &Call, raw: u64, per_thread: bool) -> Result<u64, ReplayError> {
        if self.options.serial {
            return Ok(0);
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

    fn handle(&self, kind: HandleKind, raw: u64) -> Result<u64, ReplayError> {
        if raw == 0 {
            return Ok(0);
        }
        self.handles.get(&(kind, raw)).copied().ok_or_else(|| {
            ReplayError::damaged(format!(
                "the capture does not say where the {} {raw:#x} comes from",
                kind.name()
            ))
        })
    }

    /// Where an address of the capture is now: memory of the runtime, or a buffer for host memory.
    fn address(&mut self, call: &Call, address: u64) -> u64 {
        if address == 0 {
            return 0;
        }
        if let Some(now) = self.translation.find(address) {
            return now;
        }
        let known = call
            .data()
            .filter(|data| data.address == address)
            .map(|data| host::span(&data))
            .max();
        // Results of work under way are data of a later call.
        let size = ["sizeBytes", "count", "size"]
            .iter()
            .map(|name| call.argument(name))
            .find(|size| *size > 0)
            .unwrap_or(8);
        let pitch = call.argument("dpitch").max(call.argument("spitch"));
        let rows = pitch * call.argument("height");
        self.host
            .buffer(address, size.max(rows).max(known.unwrap_or(0)))
    }

    /// Makes a call with its own name and arguments.
    fn generic(&mut self, call: &Call, operation: &'static Operation) -> Result<(), ReplayError> {
        let name = operation.name();
        // The per-thread default stream is a stream of its own here.
        let name = name.strip_suffix("_spt").unwrap_or(name);
        self.with_name(call, operation, name)
    }

    fn with_name(
        &mut self,
        call: &Call,
        operation: &'static Operation,
        name: &'static str,
    ) -> Result<(), ReplayError> {
        let mut behind = Behind::default();
        let words = operation
            .arguments()
            .iter()
            .enumerate()
            .map(|(position, argument)| {
                self.word_for(call, operation, position, argument, &mut behind)
            })
            .collect::<Result<Vec<u64>, ReplayError>>()?;
        match self.hip.call(name, &words)? {
            SUCCESS => {}
            error => {
                let text = self.hip.error_name(error);
                return Err(ReplayError::new(Status::Api, format!("returned {text}")));
            }
        }
        for (position, argument) in operation.arguments().iter().enumerate() {
            let item = call
                .items()
                .find(|item| item.kind == item::OUT && usize::from(item.argument) == position);
            let Some(item) = item else { continue };
            match argument.role {
                Role::HandleOut(kind) => {
                    if let (Some(old), Some(new)) = (item.word(), behind.stored(position)) {
                        self.handles.insert((kind, old), new);
                    }
                }
                Role::AddressOut => {
                    if let (Some(old), Some(new)) = (item.word(), behind.stored(position)) {
                        let size = call.allocation().map_or(1, |made| made.size);
                        self.translation.insert(old, size, new);
                    }
                }
                Role::NodesOut => {
                    // The runtime lists nodes in the order in which they were made.
                    let slot = words.get(position).copied().unwrap_or(0) as *const u64;
                    for (index, old) in item.payload.as_chunks::<8>().0.iter().enumerate() {
                        // SAFETY: the buffer has room for as many nodes as the capture lists.
                        let new = unsafe { slot.add(index).read_volatile() };
                        self.handles
                            .insert((HandleKind::Node, u64::from_le_bytes(*old)), new);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The word of an argument.
    fn word_for(
        &mut self,
        call: &Call,
        operation: &Operation,
        position: usize,
        argument: &Argument,
        behind: &mut Behind,
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
            Role::Value => match argument.name() {
                "dstDeviceId" | "srcDeviceId" | "srcDevice" | "deviceId" | "peerDeviceId"
                | "device" => u64::from(self.place(value as i32).cast_unsigned()),
                _ => value,
            },
            Role::Handle(HandleKind::Stream) => {
                self.stream_of(call, value, operation.name().ends_with("_spt"))?
            }
            Role::Handle(kind) => self.handle(kind, value)?,
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
            Role::Address => self.address(call, value),
            Role::Struct(_) => match value {
                0 => 0,
                _ => behind.copy(&read.ok_or_else(missing)?),
            },
            Role::Array(..) => match (value, read) {
                (0, _) | (_, None) => 0,
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
                for (kind, host, device) in [(2, 3, 4), (9, 10, 11)] {
                    // Host, device or unified memory; arrays are refused when they are made.
                    let at = if word(&bytes, kind) as u32 == 0 {
                        host
                    } else {
                        device
                    };
                    // Pitch times rows, with those before the rectangle.
                    let (pitch, before) = (word(&bytes, kind + 4), word(&bytes, kind - 1));
                    let size = pitch * (before + word(&bytes, 15)) + word(&bytes, 14);
                    let now = self.base_of(word(&bytes, at), size);
                    set_word(&mut bytes, at, now);
                }
                behind.copy(&bytes)
            }
            Role::Copy3d => {
                let mut bytes = read.ok_or_else(missing)?;
                for at in [4, 12] {
                    // Pitch, rows of a slice, and slices with those before the box.
                    let (pitch, rows) = (word(&bytes, at + 1), word(&bytes, at + 3));
                    let slices = word(&bytes, at - 1) + word(&bytes, 18);
                    let rows = rows.max(word(&bytes, at - 2) + word(&bytes, 17));
                    let size = pitch * rows * slices + word(&bytes, 16);
                    let now = self.base_of(word(&bytes, at), size);
                    set_word(&mut bytes, at, now);
                }
                behind.copy(&bytes)
            }
            Role::KernelNode => {
                let mut bytes = read.ok_or_else(missing)?;
                let kernel = self.kernel(call)?;
                let packed = self.packed(call, &kernel);
                let values = behind.copy(&packed);
                let mut pointers = Vec::new();
                for (offset, ..) in kernel.arguments.iter() {
                    pointers.extend_from_slice(&(values + u64::from(*offset)).to_le_bytes());
                }
                // extra, func, kernelParams.
                set_word(&mut bytes, 2, 0);
                set_word(&mut bytes, 3, kernel.function);
                let pointers = behind.copy(&pointers);
                set_word(&mut bytes, 6, pointers);
                behind.copy(&bytes)
            }
            Role::MemsetNode => {
                let mut bytes = read.ok_or_else(missing)?;
                let now = self.address(call, word(&bytes, 0));
                set_word(&mut bytes, 0, now);
                behind.copy(&bytes)
            }
            Role::NodesOut => match wrote {
                Some(nodes) if value != 0 => behind.copy(&vec![0; nodes.len()]),
                _ => 0,
            },
            Role::Count => match wrote {
                Some(count) if value != 0 => behind.copy(&count),
                _ => 0,
            },
            Role::Scratch => match value {
                0 => 0,
                _ => self.scratch.as_mut_ptr() as u64,
            },
            Role::Ignored
            | Role::Symbol
            | Role::Kernel
            | Role::Arguments
            | Role::Extra
            | Role::StructOut(_)
            | Role::Pitched => 0,
        })
    }

    /// Where the base address of a rectangle is now, which has at most `size` bytes from there.
    fn base_of(&mut self, base: u64, size: u64) -> u64 {
        if base == 0 {
            return 0;
        }
        match self.translation.find(base) {
            Some(now) => now,
            None => self.host.buffer(base, size),
        }
    }

    /// Stores the handle that a call made.
    fn take_handles(
        &mut self,
        call: &Call,
        operation: &Operation,
        new: impl Fn(HandleKind) -> Option<u64>,
    ) {
        for item in call.items().filter(|item| item.kind == item::OUT) {
            if let Some(argument) = operation.arguments().get(usize::from(item.argument))
                && let Role::HandleOut(kind) = argument.role
                && let (Some(old), Some(new)) = (item.word(), new(kind))
            {
                self.handles.insert((kind, old), new);
            }
        }
    }

    /// Number of the code object that a provider's number means at a call: numbers may be given out again.
    fn code_at(&self, provider: u64, seq: u64) -> Option<i64> {
        let found = self
            .codes
            .iter()
            .filter(|row| row.provider_id == provider && row.load_seq <= seq);
        found.map(|row| row.id).next_back()
    }

    /// Whether the call launches a kernel whose code object the capture lacks.
    pub(crate) fn lacks_code(&self, call: &Call) -> bool {
        let found = call.items().find(|item| item.kind == item::KERNEL);
        let provider = found.and_then(|item| item.word());
        provider.is_some_and(|provider| self.code_at(provider, call.seq).is_none())
    }

    /// The kernel of a call.
    pub(crate) fn kernel(&mut self, call: &Call) -> Result<Launchable, ReplayError> {
        let found = call.items().find(|item| item.kind == item::KERNEL);
        let Some((item, provider)) = found.and_then(|item| Some((item, item.word()?))) else {
            return Err(ReplayError::damaged("the capture does not have its kernel"));
        };
        let name = item.payload.get(8..).unwrap_or_default();
        let key = (provider, self.device, name.to_vec());
        if let Some(known) = self.functions.get(&key) {
            return Ok(known.clone());
        }
        let code = self.code_at(provider, call.seq).ok_or_else(|| {
            ReplayError::damaged(format!("the capture lacks code object {provider}"))
        })?;
        let shown = String::from_utf8_lossy(name).into_owned();
        let module = match self.replaced(&shown, code)? {
            Some(module) => module,
            None => self.module(code)?,
        };
        let text =
            CString::new(name).map_err(|_| ReplayError::damaged("a kernel's name has a NUL"))?;
        let mut function = 0u64;
        let words = [word_of(&mut function), module, text.as_ptr() as u64];
        self.hip.check("hipModuleGetFunction", &words)?;
        let arguments: String = self
            .capture
            .database()
            .query_row(
                "SELECT args FROM kernel WHERE code = ? AND name = ?",
                (code, &shown),
                |row| row.get(0),
            )
            .map_err(broken)?;
        let found = Launchable {
            function,
            arguments: Arc::new(explicit(&arguments)),
        };
        self.functions.insert(key, found.clone());
        Ok(found)
    }

    /// The explicit argument bytes of a launch, translated.
    pub(crate) fn packed(&mut self, call: &Call, kernel: &Launchable) -> Vec<u8> {
        let mut packed = call
            .items()
            .find(|item| item.kind == item::KERNEL_ARGUMENTS)
            .map(|item| item.payload.to_vec())
            .unwrap_or_default();
        for (offset, size, certain) in kernel.arguments.iter() {
            let (offset, size) = (*offset as usize, *size as usize);
            // With the same addresses only those of variables differ, which are few.
            if !*certain && !self.options.guess {
                continue;
            }
            for at in (offset..offset + size / 8 * 8).step_by(8) {
                let Some(place) = packed.get_mut(at..at + 8) else {
                    continue;
                };
                let value = u64::from_le_bytes(place.try_into().unwrap_or_default());
                if value == 0 {
                    continue;
                }
                if let Some(now) = self.translation.find(value)
                    && now != value
                {
                    place.copy_from_slice(&now.to_le_bytes());
                    match certain {
                        true => self.translation.certain += 1,
                        false => self.translation.probable += 1,
                    }
                }
            }
        }
        packed
    }

    fn launch(&mut self, call: &Call, operation: &'static Operation) -> Result<(), ReplayError> {
        let kernel = self.kernel(call)?;
        let packed = self.packed(call, &kernel);
        let (grid, block, shared) = rpd_capture::geometry(operation, &call.arguments, &call.items);
        let stream = match call.api {
            n::hipLaunchKernelExC => {
                let config = call.items().find(|item| item.kind == item::IN);
                let raw = config.map_or(0, |item| word(item.payload, 4));
                self.stream_of(call, raw, false)?
            }
            _ => self.stream(call, operation),
        };
        self.launch_kernel(
            call,
            operation,
            &kernel,
            &packed,
            (grid, block, shared),
            stream,
        )
    }

    /// Launches a kernel.
    pub(crate) fn launch_kernel(
        &mut self,
        call: &Call,
        operation: &Operation,
        kernel: &Launchable,
        packed: &[u8],
        (grid, block, shared): ([u32; 3], [u32; 3], u64),
        stream: u64,
    ) -> Result<(), ReplayError> {
        const POINTER: u64 = 1;
        const SIZE: u64 = 2;
        const END: u64 = 3;
        let mut size = packed.len() as u64;
        let size_at = word_of(&mut size);
        let extra = [POINTER, packed.as_ptr() as u64, SIZE, size_at, END];
        let [gx, gy, gz] = grid.map(u64::from);
        let [bx, by, bz] = block.map(u64::from);
        let events = ["startEvent", "stopEvent"].map(|name| call.argument(name));
        if operation.name().contains("Cooperative") {
            let pointers: Vec<u64> = kernel
                .arguments
                .iter()
                .map(|(offset, ..)| packed.as_ptr() as u64 + u64::from(*offset))
                .collect();
            let words = [
                kernel.function,
                gx,
                gy,
                gz,
                bx,
                by,
                bz,
                shared,
                stream,
                pointers.as_ptr() as u64,
            ];
            return self.hip.check("hipModuleLaunchCooperativeKernel", &words);
        }
        if events != [0, 0] {
            let start = self.handle(HandleKind::Event, events[0])?;
            let stop = self.handle(HandleKind::Event, events[1])?;
            let words = [
                kernel.function,
                gx * bx,
                gy * by,
                gz * bz,
                bx,
                by,
                bz,
                shared,
                stream,
                0,
                extra.as_ptr() as u64,
                start,
                stop,
                0,
            ];
            return self.hip.check("hipExtModuleLaunchKernel", &words);
        }
        let words = [
            kernel.function,
            gx,
            gy,
            gz,
            bx,
            by,
            bz,
            shared,
            stream,
            0,
            extra.as_ptr() as u64,
        ];
        self.hip.check("hipModuleLaunchKernel", &words)
    }

    /// Loads a module of the program: its code object for the current device.
    fn load(&mut self, call: &Call) -> Result<(), ReplayError> {
        let ids = call
            .items()
            .find(|item| item.kind == item::CODE)
            .map(|item| item.payload.as_chunks::<8>().0.to_vec())
            .unwrap_or_default();
        let codes = ids
            .into_iter()
            .filter_map(|id| self.code_at(u64::from_le_bytes(id), call.seq));
        let Some(code) = codes.into_iter().next_back() else {
            return Err(ReplayError::damaged(
                "the capture does not have the module's code",
            ));
        };
        let Some(row) = self.codes.iter().find(|row| row.id == code).cloned() else {
            return Err(ReplayError::damaged(
                "the capture does not have the module's code",
            ));
        };
        let bytes = self.capture.bytes(row.blob)?;
        let module = self.load_module(&bytes, &row.triple)?;
        if let Some(old) = out_word(call, 0) {
            self.handles.insert((HandleKind::Module, old), module);
        }
        Ok(())
    }

    fn unload(&mut self, call: &Call) -> Result<(), ReplayError> {
        let raw = call.argument("module");
        let module = self.handle(HandleKind::Module, raw)?;
        self.handles.remove(&(HandleKind::Module, raw));
        self.hip.check("hipModuleUnload", &[module])
    }

    fn global(&mut self, call: &Call) -> Result<(), ReplayError> {
        let module = self.handle(HandleKind::Module, call.argument("hmod"))?;
        let name = call.items().find(|item| item.kind == item::IN);
        let name = name.and_then(|item| CString::new(item.payload).ok());
        let Some(name) = name else {
            return Err(ReplayError::damaged(
                "the name of the variable is not in the capture",
            ));
        };
        let (address, size) = self.variable(module, &name)?;
        if let Some(old) = out_word(call, 0) {
            self.translation.insert(old, size, address);
        }
        Ok(())
    }

    fn variable(&mut self, module: u64, name: &CString) -> Result<(u64, u64), ReplayError> {
        let (mut address, mut size) = (0u64, 0u64);
        let words = [
            word_of(&mut address),
            word_of(&mut size),
            module,
            name.as_ptr() as u64,
        ];
        self.hip.check("hipModuleGetGlobal", &words)?;
        Ok((address, size))
    }

    /// Address and size of the device variable of a call.
    fn symbol(&mut self, call: &Call) -> Result<(u64, u64), ReplayError> {
        let name = call.items().find(|item| item.kind == item::SYMBOL);
        let name = name.and_then(|item| CString::new(item.payload).ok());
        let Some(name) = name else {
            return Err(ReplayError::damaged(
                "the name of the variable is not in the capture",
            ));
        };
        // The code object that has it, the first first: those of the program are loaded before modules.
        let codes: Vec<i64> = self.codes.iter().map(|row| row.id).collect();
        for code in codes {
            let Some(row) = self.codes.iter().find(|row| row.id == code).cloned() else {
                continue;
            };
            let bytes = self.capture.bytes(row.blob)?;
            let has_it = rpd_gfx::codeobj::CodeObject::parse(&bytes).is_ok_and(|object| {
                let mut variables = object.variables();
                variables.any(|variable| variable.name.as_bytes() == name.as_bytes())
            });
            if has_it {
                let module = self.module(code)?;
                return self.variable(module, &name);
            }
        }
        Err(ReplayError::damaged(format!(
            "no code object of the capture has the variable {}",
            name.to_string_lossy()
        )))
    }

    fn copy_symbol(
        &mut self,
        call: &Call,
        operation: &'static Operation,
    ) -> Result<(), ReplayError> {
        let (variable, _) = self.symbol(call)?;
        let variable = variable + call.argument("offset");
        let to = operation.name().contains("ToSymbol");
        let other = call.argument(if to { "src" } else { "dst" });
        let other = self.address(call, other);
        let (size, kind) = (call.argument("sizeBytes"), call.argument("kind"));
        let (destination, source) = if to {
            (variable, other)
        } else {
            (other, variable)
        };
        if operation.name().contains("Async") {
            let stream = self.stream(call, operation);
            return self
                .hip
                .check("hipMemcpyAsync", &[destination, source, size, kind, stream]);
        }
        self.hip
            .check("hipMemcpy", &[destination, source, size, kind])
    }

    fn fill_3d(&mut self, call: &Call, operation: &'static Operation) -> Result<(), ReplayError> {
        let field = |name: &str, index: usize| {
            let at = operation
                .argument(name)
                .map_or(0, |argument| usize::from(argument.offset));
            word(call.arguments.get(at..).unwrap_or_default(), index)
        };
        let base = self.address(call, field("pitchedDevPtr", 0));
        let at = PitchedPtr([
            base,
            field("pitchedDevPtr", 1),
            field("pitchedDevPtr", 2),
            field("pitchedDevPtr", 3),
        ]);
        let extent = Extent([0, 1, 2].map(|index| field("extent", index)));
        let value = call.argument("value") as i32;
        let stream = match operation.name().contains("Async") {
            true => Some(self.stream(call, operation)),
            false => None,
        };
        match self.hip.memset_3d(at, value, extent, stream)? {
            SUCCESS => Ok(()),
            error => {
                let text = self.hip.error_name(error);
                Err(ReplayError::new(Status::Api, format!("returned {text}")))
            }
        }
    }

    /// Allocations and frees.
    fn memory(&mut self, call: &Call, operation: &'static Operation) -> Result<(), ReplayError> {
        let frees = matches!(
            call.api,
            n::hipFree | n::hipFreeAsync | n::hipHostFree | n::hipFreeHost | n::hipHostUnregister
        );
        if let Some(made) = call.allocation() {
            if self.same {
                self.reuse(call, operation, made.base, made.size)?;
                self.translation.insert(made.base, made.size, made.base);
                return Ok(());
            }
            if call.api == n::hipHostRegister {
                let now = self.host.buffer(made.base, made.size);
                self.hip
                    .check("hipHostRegister", &[now, made.size, u64::from(made.flags)])?;
                self.translation.insert(made.base, made.size, now);
                return Ok(());
            }
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
                // As many bytes as the program had, whatever the pitch would be here: its own pitch is in its calls.
                let mut now = 0u64;
                self.hip
                    .check("hipMalloc", &[word_of(&mut now), made.size])?;
                self.translation.insert(made.base, made.size, now);
                return Ok(());
            }
            return self.generic(call, operation);
        }
        if frees {
            let base = operation
                .with_role(Role::Address)
                .map_or(0, |argument| argument.value(&call.arguments));
            if base == 0 {
                return Ok(());
            }
            if self.same {
                let size = self.translation.remove(base).map_or(0, |(size, _)| size);
                if call.api == n::hipFreeAsync {
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
                self.translation.insert(old, size, device);
            }
            return Ok(());
        }
        self.generic(call, operation)
    }

    /// Memory at these addresses is used again: work that was to be complete before it was freed comes first.
    fn reuse(
        &mut self,
        call: &Call,
        operation: &Operation,
        base: u64,
        size: u64,
    ) -> Result<(), ReplayError> {
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

/// The first word that the call stored behind an argument.
fn out_word(call: &Call, position: u16) -> Option<u64> {
    call.items()
        .find(|item| item.kind == item::OUT && item.argument == position)?
        .word()
}

/// Offset, size and certainty of the explicit arguments, from the description in the database.
fn explicit(text: &str) -> Vec<(u32, u32, bool)> {
    let all: Vec<serde_json::Value> = serde_json::from_str(text).unwrap_or_default();
    let number =
        |value: &serde_json::Value| u32::try_from(value.as_u64().unwrap_or(0)).unwrap_or(0);
    all.iter()
        .filter(|one| one["hidden"].as_bool() != Some(true))
        .map(|one| {
            let certain = one["kind"].as_str() == Some("GlobalBuffer");
            (number(&one["offset"]), number(&one["size"]), certain)
        })
        .collect()
}
