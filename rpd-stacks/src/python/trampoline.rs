//! The perf trampolines of 3.12 and later.
//!
//! With `-X perf` each Python function is called through a stub of its own, which only calls the evaluator: it gives the
//! function an address that `perf` can name. All stubs are copies of one piece of the interpreter's code, by which they
//! are recognised. Their frames are recorded as frames of that piece, as they are frames of the interpreter.

use crate::copy;
use crate::native::exports::Exports;

/// Longest piece that is accepted.
const LONGEST: usize = 64;

/// The code of which the stubs are copies.
pub(super) struct Trampoline {
    /// Address of the code in the interpreter.
    start: u64,
    code: [u8; LONGEST],
    len: usize,
    /// Offset of the instruction after the call of the evaluator.
    returns_to: u64,
}

impl Trampoline {
    /// The code of an interpreter, if it has such code.
    pub(super) fn find(exports: &Exports) -> Option<Trampoline> {
        let address = |name| Some(exports.find(name)?.address as u64);
        let start = address("_Py_trampoline_func_start")?;
        let len = address("_Py_trampoline_func_end")?.checked_sub(start)? as usize;
        let mut code = [0; LONGEST];
        if !copy::checked(start, code.get_mut(..len)?) {
            return None;
        }
        let returns_to = after_call(&code[..len])? as u64;
        Some(Trampoline {
            start,
            code,
            len,
            returns_to,
        })
    }

    /// The address in the interpreter's own code that corresponds to `pc`, the last byte of the call in a stub; `None` if
    /// there is no stub.
    pub(super) fn original_of(&self, pc: u64) -> Option<u64> {
        let offset = self.returns_to - 1;
        let mut code = [0; LONGEST];
        let found = &mut code[..self.len];
        let is_copy =
            copy::checked(pc.checked_sub(offset)?, found) && *found == self.code[..self.len];
        is_copy.then_some(self.start + offset)
    }
}

/// Offset of the instruction after the first `call` of a register.
fn after_call(code: &[u8]) -> Option<usize> {
    let is_call = |pair: &[u8]| pair[0] == 0xff && (0xd0..=0xd7).contains(&pair[1]);
    Some(code.windows(2).position(is_call)? + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `sub $8, %rsp; call *%rcx; add $8, %rsp; ret`.
    const CODE: [u8; 11] = [
        0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3,
    ];

    #[test]
    fn trampoline_recognises_copies_of_its_code_alone() {
        let mut code = [0; LONGEST];
        code[..CODE.len()].copy_from_slice(&CODE);
        let returns_to = after_call(&CODE).expect("it calls") as u64;
        assert_eq!(returns_to, 6);
        let trampoline = Trampoline {
            start: 0x1000,
            code,
            len: CODE.len(),
            returns_to,
        };
        let (stub, mut other) = (CODE.to_vec(), CODE.to_vec());
        other[10] = 0x90;
        let pc_in = |code: &[u8]| code.as_ptr() as u64 + returns_to - 1;
        assert_eq!(trampoline.original_of(pc_in(&stub)), Some(0x1005));
        assert_eq!(trampoline.original_of(pc_in(&other)), None);
        assert_eq!(trampoline.original_of(pc_in(&stub) + 1), None);
        assert_eq!(trampoline.original_of(3), None);
    }
}
