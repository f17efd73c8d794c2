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

impl Registers {
    /// The registers of the function into which this call is inlined. Its frame must outlive the use of them.
    #[inline(always)]
    pub(crate) fn of_caller() -> Registers {
        let mut registers = Registers::default();
        store(&mut registers);
        registers
    }
}

/// Stores the caller's registers as they are after the return of this function.
#[unsafe(naked)]
extern "C" fn store(registers: &mut Registers) {
    std::arch::naked_asm!(
        "mov rax, [rsp]",
        "dec rax",
        "mov [rdi], rax",
        "lea rax, [rsp + 8]",
        "mov [rdi + 8], rax",
        "mov [rdi + 16], rbp",
        "ret",
    )
}
