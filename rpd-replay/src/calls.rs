//! Repeats each call of a capture.

use rpd_capture::Call;
use rpd_spool::capture::structs::{self, node_type};
use rpd_spool::capture::{Group, HandleKind, Operation, Role, call_flag, item, number as n};

use crate::arguments::{PointedMemory, input, out_word, word};
use crate::error::{ReplayError, Status};
use crate::hip::{Extent, PitchedPtr, SUCCESS, word_of};
use crate::player::Player;

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
            n::hipGraphAddMemcpyNodeToSymbol | n::hipGraphAddMemcpyNodeFromSymbol => {
                self.with_name(call, operation, "hipGraphAddMemcpyNode1D")
            }
            n::hipGraphMemcpyNodeSetParamsToSymbol | n::hipGraphMemcpyNodeSetParamsFromSymbol => {
                self.with_name(call, operation, "hipGraphMemcpyNodeSetParams1D")
            }
            n::hipGraphExecMemcpyNodeSetParamsToSymbol
            | n::hipGraphExecMemcpyNodeSetParamsFromSymbol => {
                self.with_name(call, operation, "hipGraphExecMemcpyNodeSetParams1D")
            }
            n::hipStreamDestroy => {
                let raw = call.argument("stream");
                let stream = self.handle(HandleKind::Stream, raw)?;
                self.handles.remove(&(HandleKind::Stream, raw));
                self.forget_capture(stream);
                self.host_uses.stream_is_idle(stream);
                self.hip.check("hipStreamDestroy", &[stream])
            }
            n::hipStreamQuery | n::hipStreamQuery_spt => {
                self.with_name(call, operation, "hipStreamSynchronize")
            }
            n::hipEventQuery => self.with_name(call, operation, "hipEventSynchronize"),
            // Effects of host callbacks are in the data of later calls.
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
            n::hipStreamBeginCapture
            | n::hipStreamBeginCapture_spt
            | n::hipStreamBeginCaptureToGraph
            | n::hipStreamEndCapture
            | n::hipStreamEndCapture_spt => self.stream_capture(call, operation),
            // All that it could wait for is done in one stream, or comes later.
            n::hipStreamWaitValue32 | n::hipStreamWaitValue64 if self.options.serial => {
                self.report.skipped += 1;
                Ok(())
            }
            n::hipStreamBatchMemOp if self.options.serial => self.write_values(call),
            n::hipSetDevice => self.set_device(call.argument("deviceId") as i32),
            n::hipDeviceReset => {
                // Memory stays where it is; what the program had is not used any more.
                self.wait_for_all()
            }
            // What the host did in their functions is in the data of later calls as well. Memory of a graph is there from its node to
            // the end of the replay, which is longer than it has to be.
            n::hipGraphAddHostNode
            | n::hipGraphAddMemFreeNode
            | n::hipDrvGraphAddMemFreeNode => {
                self.with_name(call, operation, "hipGraphAddEmptyNode")
            }
            n::hipGraphAddNode | n::hipGraphNodeSetParams | n::hipGraphExecNodeSetParams => {
                self.any_node(call, operation)
            }
            n::hipGraphAddMemAllocNode => {
                self.graph_memory(call, operation)?;
                self.with_name(call, operation, "hipGraphAddEmptyNode")
            }
            n::hipGraphInstantiateWithParams => self.instantiate(call),
            n::hipGraphDestroy
                if self.keeps_graph(self.handle(HandleKind::Graph, call.argument("graph"))?) =>
            {
                self.report.skipped += 1;
                Ok(())
            }
            // Every call has the device on which it was made.
            n::hipCtxCreate
            | n::hipCtxDestroy
            | n::hipCtxPopCurrent
            | n::hipCtxPushCurrent
            | n::hipCtxSetCurrent
            | n::hipGraphHostNodeSetParams
            | n::hipGraphExecHostNodeSetParams
            | n::hipFuncSetAttribute
            | n::hipFuncSetCacheConfig
            | n::hipFuncSetSharedMemConfig
            // What they set is with the launch.
            | n::hipConfigureCall
            | n::hipSetupArgument
            // References are found when something is bound to them.
            | n::hipModuleGetTexRef => {
                self.report.skipped += 1;
                Ok(())
            }
            _ if operation.group == Group::Image => self.image(call, operation),
            n::hipMemAddressReserve
            | n::hipMemAddressFree
            | n::hipMemCreate
            | n::hipMemMap
            | n::hipMemRelease
            | n::hipMemRetainAllocationHandle
            | n::hipMemSetAccess
            | n::hipMemUnmap => self.virtual_memory(call, operation),
            _ if operation.group == Group::Memory => self.memory(call, operation),
            _ => self.generic(call, operation),
        }
    }

    /// Makes a call with its own name and arguments.
    pub(crate) fn generic(
        &mut self,
        call: &Call,
        operation: &'static Operation,
    ) -> Result<(), ReplayError> {
        let name = operation.name();
        // The per-thread default stream is a separate stream here.
        let name = name.strip_suffix("_spt").unwrap_or(name);
        self.with_name(call, operation, name)
    }

    /// Makes a call about a node of any type. Some are other nodes in a replay.
    fn any_node(&mut self, call: &Call, operation: &'static Operation) -> Result<(), ReplayError> {
        let parameters = node_parameters(call, operation);
        let kind = parameters.map(structs::type_of_node);
        let adds = call.api == n::hipGraphAddNode;
        match kind {
            Some(node_type::ALLOCATE) if adds => {
                self.graph_memory(call, operation)?;
                self.with_name(call, operation, "hipGraphAddEmptyNode")
            }
            Some(node_type::HOST | node_type::FREE) if adds => {
                self.with_name(call, operation, "hipGraphAddEmptyNode")
            }
            Some(node_type::HOST) => {
                self.report.skipped += 1;
                Ok(())
            }
            _ => self.generic(call, operation),
        }
    }

    fn with_name(
        &mut self,
        call: &Call,
        operation: &'static Operation,
        name: &'static str,
    ) -> Result<(), ReplayError> {
        let mut behind = PointedMemory::default();
        // Variables are addresses here, to which the offset is added.
        let has_variable = operation.with_role(Role::Symbol).is_some();
        let words = operation
            .arguments()
            .iter()
            .enumerate()
            .filter(|(_, argument)| !(has_variable && argument.name() == "offset"))
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
                Role::NodesOut | Role::NodeListOut => {
                    // The runtime lists nodes in the order in which they were made.
                    let slot = match argument.role {
                        Role::NodesOut => words.get(position).copied(),
                        _ => self.listed(call, operation, position, &behind)?,
                    };
                    let slot = slot.unwrap_or(0) as *const u64;
                    if slot.is_null() {
                        continue;
                    }
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

    /// Address at which the runtime has the nodes that it lists behind an argument; an error when it lists another
    /// number of them than in the capture.
    fn listed(
        &self,
        call: &Call,
        operation: &Operation,
        position: usize,
        behind: &PointedMemory,
    ) -> Result<Option<u64>, ReplayError> {
        let wanted = out_word(call, position_of_count(operation, position) as u16);
        let found = behind.stored(position_of_count(operation, position));
        if wanted == found {
            Ok(behind.stored(position))
        } else {
            Err(ReplayError::new(
                Status::Api,
                format!(
                    "lists {} nodes here, and listed {} in the capture",
                    found.unwrap_or(0),
                    wanted.unwrap_or(0)
                ),
            ))
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

    /// Makes an executable graph; its parameters are flags, a stream for an upload, and results.
    fn instantiate(&mut self, call: &Call) -> Result<(), ReplayError> {
        let graph = self.handle(HandleKind::Graph, call.argument("graph"))?;
        let flags = input(call).map_or(0, |parameters| word(parameters, 0));
        let mut made = 0u64;
        self.hip.check(
            "hipGraphInstantiateWithFlags",
            &[word_of(&mut made), graph, flags],
        )?;
        if let Some(old) = out_word(call, 0) {
            self.handles.insert((HandleKind::GraphExec, old), made);
        }
        Ok(())
    }

    fn fill_3d(&mut self, call: &Call, operation: &'static Operation) -> Result<(), ReplayError> {
        let field = |name: &str, index: usize| {
            let at = operation
                .argument(name)
                .map_or(0, |argument| usize::from(argument.offset));
            word(call.arguments.get(at..).unwrap_or_default(), index)
        };
        let slices = field("extent", 2);
        let size = field("pitchedDevPtr", 1)
            .saturating_mul(field("pitchedDevPtr", 3))
            .saturating_mul(slices);
        let base = self.base_of(field("pitchedDevPtr", 0), size)?;
        let at = PitchedPtr([
            base,
            field("pitchedDevPtr", 1),
            field("pitchedDevPtr", 2),
            field("pitchedDevPtr", 3),
        ]);
        let extent = Extent([0, 1, 2].map(|index| field("extent", index)));
        let value = call.argument("value") as i32;
        let stream = if operation.name().contains("Async") {
            Some(self.stream(call, operation))
        } else {
            None
        };
        match self.hip.memset_3d(at, value, extent, stream)? {
            SUCCESS => Ok(()),
            error => {
                let text = self.hip.error_name(error);
                Err(ReplayError::new(Status::Api, format!("returned {text}")))
            }
        }
    }
}

/// `hipGraphNodeParams` of a call.
fn node_parameters<'a>(call: &'a Call, operation: &Operation) -> Option<&'a [u8]> {
    let mut arguments = operation.arguments().iter();
    let position = arguments.position(|argument| argument.role == Role::AnyNode)?;
    let mut items = call.items();
    let found = items.find(|item| item.kind == item::IN && usize::from(item.argument) == position);
    found.map(|item| item.payload)
}

/// The position of the argument that has the number of nodes behind another argument.
fn position_of_count(operation: &Operation, position: usize) -> usize {
    let arguments = operation.arguments().iter().enumerate().skip(position);
    let mut counts = arguments.filter(|(_, argument)| argument.role == Role::Count);
    counts.next().map_or(position, |(found, _)| found)
}
