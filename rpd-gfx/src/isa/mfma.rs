//! Matrix operations of VOP3P (`v_mfma_*`).

use super::inst::Handler;

/// The operation of an opcode; none yet.
pub(super) fn handler(_opcode: u32) -> Option<Handler> {
    None
}
