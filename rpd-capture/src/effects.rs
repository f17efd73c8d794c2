//! Effects of successful calls: rows for handles, memory, copies and launches.

use rpd_spool::capture::{
    AllocationItem, CaptureCall, Group, HandleKind, Items, Operation, Role, item, number,
};
use rusqlite::params;
use zerocopy::FromBytes as _;

use crate::geometry::geometry;
use crate::objects::Intervals;
use crate::writer::{WriteError, Writer};

impl Writer<'_> {
    /// Adds the rows of the effects of a call. `rest` are its items, followed by the data that it read and wrote.
    pub(crate) fn effects(
        &mut self,
        call: &CaptureCall,
        operation: &'static Operation,
        arguments: &[u8],
        rest: &[u8],
        (source_blob, output_blob): (Option<i64>, Option<i64>),
    ) -> Result<(), WriteError> {
        let named = |name: &str| operation.argument(name).map(|one| one.value(arguments));
        // Handles and memory first: the call's own rows refer to them by number.
        for item in Items(rest) {
            if item.kind == item::OUT
                && let Some(argument) = operation.arguments().get(usize::from(item.argument))
                && let Role::HandleOut(kind) = argument.role
                && let Some(raw) = item.word()
            {
                // Flags and priorities of a stream or event are in the arguments of the call that made it.
                let props: serde_json::Map<String, serde_json::Value> = operation
                    .arguments()
                    .iter()
                    .filter(|one| one.role == Role::Value && one.size <= 8)
                    .map(|one| (one.name().to_owned(), one.value(arguments).into()))
                    .collect();
                self.object(kind, raw, &serde_json::Value::from(props).to_string())?;
            }
            if item.kind == item::ALLOCATION
                && let Ok((made, _)) = AllocationItem::read_from_prefix(item.payload)
            {
                self.last_memory += 1;
                self.memory.insert(made.base, made.size, self.last_memory);
                self.database
                    .prepare_cached("INSERT INTO alloc VALUES (?, ?, ?, ?, ?, ?, ?, NULL)")?
                    .execute(params![
                        self.last_memory,
                        made.kind,
                        call.device,
                        made.base as i64,
                        made.size as i64,
                        made.flags,
                        self.seq
                    ])?;
            }
        }
        // The end of an object's life closes its row; the runtime may give the same handle or address out again.
        match call.operation {
            number::hipFree
            | number::hipFreeAsync
            | number::hipHostFree
            | number::hipFreeHost
            | number::hipHostUnregister => {
                let base = operation
                    .with_role(Role::Address)
                    .map_or(0, |argument| argument.value(arguments));
                if let Some(number) = self.memory.remove(base) {
                    self.database
                        .prepare_cached("UPDATE alloc SET destroyed = ? WHERE num = ?")?
                        .execute(params![self.seq, number])?;
                }
            }
            number::hipMemUnmap => {
                let (base, size) = (named("ptr").unwrap_or(0), named("size").unwrap_or(0));
                for number in self.memory.remove_all(base, size) {
                    self.database
                        .prepare_cached("UPDATE alloc SET destroyed = ? WHERE num = ?")?
                        .execute(params![self.seq, number])?;
                }
            }
            number::hipMemRelease => {
                self.destroyed(HandleKind::Physical, named("handle").unwrap_or(0))?
            }
            number::hipFreeArray | number::hipArrayDestroy => {
                self.destroyed(HandleKind::Array, named("array").unwrap_or(0))?
            }
            number::hipDestroyTextureObject => {
                self.destroyed(HandleKind::Texture, named("textureObject").unwrap_or(0))?
            }
            number::hipTexObjectDestroy => {
                self.destroyed(HandleKind::Texture, named("texObject").unwrap_or(0))?
            }
            number::hipDestroySurfaceObject => {
                self.destroyed(HandleKind::Surface, named("surfaceObject").unwrap_or(0))?
            }
            number::hipStreamDestroy => {
                self.destroyed(HandleKind::Stream, named("stream").unwrap_or(0))?
            }
            number::hipEventDestroy => {
                self.destroyed(HandleKind::Event, named("event").unwrap_or(0))?
            }
            number::hipModuleUnload => {
                self.destroyed(HandleKind::Module, named("module").unwrap_or(0))?
            }
            number::hipGraphDestroy => {
                self.destroyed(HandleKind::Graph, named("graph").unwrap_or(0))?
            }
            number::hipGraphExecDestroy => {
                self.destroyed(HandleKind::GraphExec, named("graphExec").unwrap_or(0))?;
            }
            _ => {}
        }
        let name = operation.name();
        // By name: every kind of object has functions of its own, which work alike.
        if name.contains("Synchronize") || name.contains("Query") {
            let object = named("stream").or_else(|| named("event"));
            self.database
                .prepare_cached("INSERT INTO sync VALUES (?, ?, ?, ?)")?
                .execute(params![
                    self.seq,
                    name,
                    object.map(|raw| raw as i64),
                    call.result
                ])?;
        }
        if operation.group == Group::Transfer {
            let destination = named("dst").or_else(|| named("dest"));
            let source = named("src");
            // A rectangle has no size of its own.
            let size = named("sizeBytes").or_else(|| Some(named("width")? * named("height")?));
            let place = |memory: &Intervals, address: Option<u64>| {
                address.and_then(|address| memory.find(address)).unzip()
            };
            let (to, to_offset) = place(&self.memory, destination);
            let (from, from_offset) = place(&self.memory, source);
            self.database
                .prepare_cached("INSERT INTO copy VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")?
                .execute(params![
                    self.seq,
                    named("kind").map(|kind| kind as i64),
                    destination.map(|address| address as i64),
                    to,
                    to_offset.map(|offset| offset as i64),
                    source.map(|address| address as i64),
                    from,
                    from_offset.map(|offset| offset as i64),
                    size.map(|size| size as i64),
                    source_blob,
                    output_blob,
                    None::<i64>,
                ])?;
        }
        if operation.group == Group::Launch {
            self.launch(call, operation, arguments, rest)?;
        }
        Ok(())
    }

    fn launch(
        &mut self,
        call: &CaptureCall,
        operation: &'static Operation,
        arguments: &[u8],
        rest: &[u8],
    ) -> Result<(), WriteError> {
        self.summary.launches += 1;
        let kernel = Items(rest).find(|item| item.kind == item::KERNEL);
        let packed = Items(rest)
            .find(|item| item.kind == item::KERNEL_ARGUMENTS)
            .map_or(&[][..], |item| item.payload);
        // The kernel may be of a code object that was not captured: the launch is a row all the same.
        let mut found = None;
        if let Some(item) = kernel
            && let Some(provider) = item.word()
        {
            let code = self.codes.get(&provider).copied().unwrap_or(0);
            let name = item.payload.get(8..).unwrap_or_default().to_vec();
            if let Some(kernel) = self.kernels.get_mut(&(code, name)) {
                kernel.launches += 1;
                found = Some((kernel.id, kernel.launches, kernel.arguments.clone()));
            }
        }
        let (grid, block, lds) = geometry(operation, arguments, rest);
        let (id, launch_number) = match &found {
            Some((id, number, _)) => (Some(*id), Some(*number)),
            None => (None, None),
        };
        self.database
            .prepare_cached("INSERT INTO launch VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")?
            .execute(params![
                self.seq,
                id,
                grid[0],
                grid[1],
                grid[2],
                block[0],
                block[1],
                block[2],
                lds as i64,
                call.flags,
                launch_number,
                packed
            ])?;
        // Words inside structs may be pointers as well; that is only probable, and the column says so.
        for (offset, size, certain) in found.iter().flat_map(|(_, _, arguments)| arguments) {
            for at in (*offset..offset + size / 8 * 8).step_by(8) {
                let bytes = packed.get(at as usize..at as usize + 8);
                let Some(word) = bytes.and_then(|bytes| bytes.try_into().ok()) else {
                    continue;
                };
                if let Some((memory, inside)) = self.memory.find(u64::from_le_bytes(word)) {
                    self.database
                        .prepare_cached("INSERT INTO arg_ptr VALUES (?, ?, ?, ?, ?)")?
                        .execute(params![
                            self.seq,
                            at,
                            memory,
                            inside as i64,
                            if *certain { "pointer" } else { "probable" }
                        ])?;
                }
            }
        }
        Ok(())
    }

    fn object(&mut self, kind: HandleKind, raw: u64, props: &str) -> Result<i64, WriteError> {
        self.last_object += 1;
        self.objects.insert((kind, raw), self.last_object);
        self.database
            .prepare_cached("INSERT INTO object VALUES (?, ?, ?, NULL, ?, ?)")?
            .execute(params![
                self.last_object,
                kind.name(),
                self.seq,
                raw as i64,
                props
            ])?;
        Ok(self.last_object)
    }

    fn destroyed(&mut self, kind: HandleKind, raw: u64) -> Result<(), WriteError> {
        if let Some(number) = self.objects.remove(&(kind, raw)) {
            self.database
                .prepare_cached("UPDATE object SET destroyed = ? WHERE num = ?")?
                .execute(params![self.seq, number])?;
        }
        Ok(())
    }
}
