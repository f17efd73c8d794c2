//! Calls about graph nodes and operations on memory: translates handles and addresses of the capture to those of the
//! replay.

use rpd_capture::Call;
use rpd_spool::capture::HandleKind;
use rpd_spool::capture::structs::{
    MEMORY_OPERATION, address_of_operation, any_node, node_type, type_of_node, waits_for_value,
};

use crate::arguments::{PointedMemory, input, set_word, word};
use crate::error::ReplayError;
use crate::hip::word_of;
use crate::player::Player;

impl Player {
    /// Translates a `hipMemcpy3DParms`.
    pub(crate) fn translate_box(&mut self, bytes: &mut [u8]) -> Result<(), ReplayError> {
        for at in [0, 8] {
            let now = self.handle(HandleKind::Array, word(bytes, at))?;
            set_word(bytes, at, now);
        }
        for at in [4, 12] {
            // Pitch, rows of a slice, and slices with those before the box.
            let (pitch, rows) = (word(bytes, at + 1), word(bytes, at + 3));
            let slices = word(bytes, at - 1).saturating_add(word(bytes, 18));
            let rows = rows.max(word(bytes, at - 2).saturating_add(word(bytes, 17)));
            let size = pitch
                .saturating_mul(rows)
                .saturating_mul(slices)
                .saturating_add(word(bytes, 16));
            let now = self.base_of(word(bytes, at), size)?;
            set_word(bytes, at, now);
        }
        Ok(())
    }

    /// Translates a `hipKernelNodeParams`.
    pub(crate) fn translate_kernel_node(
        &mut self,
        call: &Call,
        bytes: &mut [u8],
        behind: &mut PointedMemory,
    ) -> Result<(), ReplayError> {
        let kernel = self.kernel(call)?;
        let mut function = kernel.function;
        if self.shared_variables.contains_key(&function) {
            // The launches of the chosen kernel by itself are those of the other build.
            if self.chosen_node.is_none() {
                return Err(ReplayError::failed(format!(
                    "--replace {}: as a node of a graph the kernel cannot be replaced, because its code has device variables, \
                     which are copied between the builds only around launches; --kernel runs the other build by itself",
                    self.kernel_name(call)
                )));
            }
            function = self.captured_build(call)?;
        }
        let packed = self.packed(call, &kernel);
        let values = behind.copy(&packed);
        let mut pointers = Vec::new();
        for (offset, ..) in kernel.arguments.iter() {
            pointers.extend_from_slice(&(values + u64::from(*offset)).to_le_bytes());
        }
        // extra, func, kernelParams.
        set_word(bytes, 2, 0);
        set_word(bytes, 3, function);
        let pointers = behind.copy(&pointers);
        set_word(bytes, 6, pointers);
        Ok(())
    }

    /// Translates a `hipGraphNodeParams`.
    pub(crate) fn translate_node(
        &mut self,
        call: &Call,
        bytes: &mut [u8],
        behind: &mut PointedMemory,
    ) -> Result<(), ReplayError> {
        let cut = || ReplayError::damaged("the parameters of a node are cut");
        let kind = type_of_node(bytes);
        let at = match kind {
            node_type::COPY => any_node::COPY,
            _ => any_node::PARAMETERS,
        };
        let parameters = bytes.get_mut(at..).ok_or_else(cut)?;
        let handle = word(parameters, 0);
        let now = match kind {
            node_type::KERNEL => return self.translate_kernel_node(call, parameters, behind),
            node_type::COPY => return self.translate_box(parameters),
            node_type::FILL => self.address(call, handle)?,
            node_type::GRAPH => self.handle(HandleKind::Graph, handle)?,
            node_type::WAIT_EVENT | node_type::RECORD_EVENT => {
                self.handle(HandleKind::Event, handle)?
            }
            _ => return Ok(()),
        };
        set_word(parameters, 0, now);
        Ok(())
    }

    /// Translates an array of `hipStreamBatchMemOpParams`.
    pub(crate) fn translate_operations(
        &mut self,
        call: &Call,
        list: &mut [u8],
    ) -> Result<(), ReplayError> {
        for operation in list.chunks_exact_mut(MEMORY_OPERATION) {
            if let Some(at) = address_of_operation(operation) {
                let now = self.address(call, word(operation, at / 8))?;
                set_word(operation, at / 8, now);
            }
        }
        Ok(())
    }

    /// Makes the operations of a list that do not wait, in the one stream that there is.
    pub(crate) fn write_values(&mut self, call: &Call) -> Result<(), ReplayError> {
        let mut list = input(call).unwrap_or_default().to_vec();
        self.translate_operations(call, &mut list)?;
        let operations = list.chunks_exact(MEMORY_OPERATION);
        let rest: Vec<u8> = operations
            .filter(|operation| !waits_for_value(operation))
            .flatten()
            .copied()
            .collect();
        let count = (rest.len() / MEMORY_OPERATION) as u64;
        if count == 0 {
            self.report.skipped += 1;
            return Ok(());
        }
        let mut behind = PointedMemory::default();
        let words = [0, count, behind.copy(&rest), call.argument("flags")];
        self.hip.check("hipStreamBatchMemOp", &words)
    }

    /// The current context of the runtime.
    pub(crate) fn context(&mut self) -> Result<u64, ReplayError> {
        let mut context = 0u64;
        self.hip
            .check("hipCtxGetCurrent", &[word_of(&mut context)])?;
        Ok(context)
    }
}
