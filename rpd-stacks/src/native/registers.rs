//! Registers at the start of a walk.

/// The registers that a walk needs. The program counter is that of a byte of the instruction being executed: the return
/// address minus one, or the interrupted instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub(crate) struct Registers {
    pub(crate) pc: u64,
    pub(crate) sp: u64,
    pub(crate) bp: u64,
}

/// Number of RBX in call frame information.
pub(crate) const RBX: u16 = 3;
/// Number of RBP in call frame information.
pub(crate) const RBP: u16 = 6;
/// Number of RSP in call frame information.
pub(crate) const RSP: u16 = 7;
/// Number of R12 in call frame information; R13, R14 and R15 follow.
pub(crate) const R12: u16 = 12;

/// The registers with which a walk starts.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Start {
    pub(crate) registers: Registers,
    /// Value of RBX, which like R12 to R15 a function preserves for its caller, for frames whose layout depends on it.
    pub(crate) rbx: u64,
    /// Values of R12, R13, R14 and R15.
    pub(crate) r12_to_r15: [u64; 4],
}

impl Start {
    /// The registers of the function into which this call is inlined. Its frame must outlive the use of them.
    #[inline(always)]
    pub(crate) fn from_caller() -> Start {
        let mut start = Start::default();
        store(&mut start);
        start
    }
}

/// Stores the caller's registers as they are after the return of this function.
#[unsafe(naked)]
extern "C" fn store(start: &mut Start) {
    std::arch::naked_asm!(
        "mov rax, [rsp]",
        "dec rax",
        "mov [rdi], rax",
        "lea rax, [rsp + 8]",
        "mov [rdi + 8], rax",
        "mov [rdi + 16], rbp",
        "mov [rdi + 24], rbx",
        "mov [rdi + 32], r12",
        "mov [rdi + 40], r13",
        "mov [rdi + 48], r14",
        "mov [rdi + 56], r15",
        "ret",
    )
}

/// Number of general registers.
pub(crate) const REGISTERS: usize = 16;

/// Values of the general registers in a frame, by their numbers in call frame information, as far as they are known.
#[derive(Clone, Copy, Default)]
pub(crate) struct RegisterFile([Option<u64>; REGISTERS]);

impl RegisterFile {
    /// The registers that are known where a walk starts.
    pub(crate) fn at_start(start: &Start) -> RegisterFile {
        let mut file = RegisterFile::default();
        file.set(RBX, Some(start.rbx));
        for (number, value) in (R12..).zip(start.r12_to_r15) {
            file.set(number, Some(value));
        }
        file
    }

    /// The register with this number; `None` if its value is not known, or there is no such general register.
    pub(crate) fn get(&self, number: u16) -> Option<u64> {
        *self.0.get(usize::from(number))?
    }

    /// Sets the register with this number, if there is one.
    pub(crate) fn set(&mut self, number: u16, value: Option<u64>) {
        if let Some(register) = self.0.get_mut(usize::from(number)) {
            *register = value;
        }
    }
}
