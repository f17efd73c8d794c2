//! The frame on a thread's stack from which it returns to where it was, by itself: that of a signal handler.
//!
//! `rt_sigreturn` takes all registers, the vector registers and the signal mask from it. So a thread that was made to run
//! something else needs nobody who puts its registers back: an attacher may be killed meanwhile.

use std::arch::x86_64::__cpuid_count;

use crate::trace::Registers;

/// Bytes below the stack pointer that belong to the running function.
const RED_ZONE: u64 = 128;
/// Offset of the context, to which the stack pointer leads at the system call, from the begin of the frame.
const CONTEXT: usize = 8;
/// Bytes of a context: flags, link, alternative stack, registers, mask.
const CONTEXT_LEN: usize = 40 + 256 + 8;
/// Bytes of the description of a signal behind it, which nothing reads.
const SIGNAL_LEN: usize = 128;
/// Flags of the context: vector registers have the form of `xsave`; the stack segment is given, and taken exactly.
const FLAGS: u64 = 1 | 2 | 4;
/// A mode of alternative stacks that does not exist: the thread keeps its own.
const KEEP_STACK: u64 = 3;

/// Offset of the part of the vector registers that is for software, and the marks in it and behind the registers.
const SOFTWARE: usize = 464;
const MARK: u32 = 0x4650_5853;
const END_MARK: u32 = 0x4650_5845;
/// Offset of the bits that say which vector registers are in use.
const IN_USE: usize = 512;
/// Bytes of the vector registers without any extension, with the head of the extensions.
const LEAST: usize = 576;
/// Registers of matrices: a thread has room for them only after it asked for that.
const MATRICES: u64 = 1 << 17 | 1 << 18;

/// A frame, and where it belongs.
#[derive(Debug)]
pub(crate) struct Frame {
    /// Address of the first byte.
    pub(crate) address: u64,
    /// What belongs there.
    pub(crate) bytes: Vec<u8>,
}

impl Frame {
    /// The frame from which a thread with these registers goes on as if nothing had been.
    ///
    /// `vectors` are its vector registers as `xsave` writes them, `blocked` the signals that it blocks.
    pub(crate) fn new(registers: &Registers, vectors: &[u8], blocked: u64) -> Frame {
        let vectors = for_return(vectors);
        let top = registers.rsp - RED_ZONE;
        let place = (top - vectors.len() as u64) & !63;
        let address = (place - (CONTEXT + CONTEXT_LEN + SIGNAL_LEN) as u64) & !15;
        let resumed = resumed(registers);
        // In the order of the kernel's structures; the first word is the address to which a handler would return.
        let segments = (registers.cs & 0xffff) | (registers.ss & 0xffff) << 48;
        let words = [
            [0, FLAGS, 0, 0, KEEP_STACK, 0].as_slice(),
            &[registers.r8, registers.r9, registers.r10, registers.r11],
            &[registers.r12, registers.r13, registers.r14, registers.r15],
            &[registers.rdi, registers.rsi, registers.rbp, registers.rbx],
            &[registers.rdx, resumed.rax, registers.rcx, registers.rsp],
            &[resumed.rip, registers.eflags, segments],
            // Error, trap, old mask, faulting address.
            &[0, 0, 0, 0],
            &[place],
            &[0; 8],
            &[blocked],
        ];
        let mut bytes: Vec<u8> = words
            .concat()
            .iter()
            .flat_map(|word: &u64| word.to_le_bytes())
            .collect();
        debug_assert_eq!(bytes.len(), CONTEXT + CONTEXT_LEN, "the kernel's layout");
        bytes.resize((place - address) as usize, 0);
        bytes.extend_from_slice(&vectors);
        Frame { address, bytes }
    }

    /// The stack pointer with which `rt_sigreturn` takes the frame.
    pub(crate) fn context(&self) -> u64 {
        self.address + CONTEXT as u64
    }
}

/// What a resumed thread has in two of its registers.
struct Resumed {
    rip: u64,
    rax: u64,
}

/// Whether a stopped thread is inside a system call that it makes again when it goes on, or that answers that it was
/// interrupted: it sleeps, and runs no code that could hold a lock of the C library.
pub(crate) fn sleeps(registers: &Registers) -> bool {
    let interrupted = -i64::from(libc::EINTR);
    let result = registers.rax.cast_signed();
    is_in_system_call(registers) && (is_restarted(registers) || result == interrupted)
}

fn is_in_system_call(registers: &Registers) -> bool {
    registers.orig_rax.cast_signed() >= 0
}

/// Whether the kernel would make the system call again.
fn is_restarted(registers: &Registers) -> bool {
    /// The kernel's own errors for that.
    const AGAIN: [i64; 4] = [-512, -513, -514, -516];
    AGAIN.contains(&registers.rax.cast_signed())
}

/// Makes an interrupted system call again, as the kernel does: from its instruction, which has two bytes.
fn resumed(registers: &Registers) -> Resumed {
    if is_in_system_call(registers) && is_restarted(registers) {
        return Resumed {
            rip: registers.rip - 2,
            rax: registers.orig_rax,
        };
    }
    Resumed {
        rip: registers.rip,
        rax: registers.rax,
    }
}

/// Vector registers in the form in which `rt_sigreturn` takes them.
fn for_return(vectors: &[u8]) -> Vec<u8> {
    let word = |at: usize| {
        let bytes = vectors.get(at..at + 8).and_then(|it| it.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    };
    let in_use = word(IN_USE);
    // Registers that the processor has, as the kernel notes them in that part.
    let mut features = word(SOFTWARE);
    if in_use & MATRICES == 0 {
        features &= !MATRICES;
    }
    let len = (2..63)
        .filter(|bit| features & 1 << bit != 0)
        .map(|bit| {
            let leaf = __cpuid_count(0xd, bit);
            leaf.ebx as usize + leaf.eax as usize
        })
        .fold(LEAST, usize::max);
    let mut made = vectors.to_vec();
    // A processor or kernel without extensions has only the old part.
    if vectors.len() < len {
        made.resize(made.len().max(IN_USE), 0);
        made[SOFTWARE..IN_USE].fill(0);
        return made;
    }
    made.truncate(len);
    let mut software = Vec::with_capacity(IN_USE - SOFTWARE);
    software.extend_from_slice(&MARK.to_le_bytes());
    software.extend_from_slice(&(len as u32 + 4).to_le_bytes());
    software.extend_from_slice(&features.to_le_bytes());
    software.extend_from_slice(&(len as u32).to_le_bytes());
    software.resize(IN_USE - SOFTWARE, 0);
    made[SOFTWARE..IN_USE].copy_from_slice(&software);
    made.extend_from_slice(&END_MARK.to_le_bytes());
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers() -> Registers {
        // SAFETY: zeros are registers.
        let mut registers: Registers = unsafe { std::mem::zeroed() };
        registers.rsp = 0x7fff_0000_1238;
        registers.rip = 0x1000;
        registers
    }

    fn word(frame: &Frame, address: u64) -> u64 {
        let at = (address - frame.address) as usize;
        u64::from_le_bytes(frame.bytes[at..at + 8].try_into().expect("eight bytes"))
    }

    #[test]
    fn frame_lies_below_what_the_function_uses() {
        let registers = registers();
        let frame = Frame::new(&registers, &vec![0; 2696], 5);
        let end = frame.address + frame.bytes.len() as u64;
        assert!(end <= registers.rsp - 128);
        assert_eq!(frame.address % 16, 0);
        let vectors = word(&frame, frame.context() + 40 + 184);
        assert_eq!(vectors % 64, 0);
        assert!(vectors < end);
        assert_eq!(word(&frame, frame.context() + 40 + 256), 5, "the mask");
        assert_eq!(word(&frame, frame.context() + 40 + 120), registers.rsp);
    }

    #[test]
    fn interrupted_system_call_is_made_again() {
        let mut registers = registers();
        registers.orig_rax = u64::MAX;
        assert!(!sleeps(&registers), "it runs code of its own");
        registers.orig_rax = 202;
        registers.rax = (-512i64).cast_unsigned();
        assert!(sleeps(&registers));
        let frame = Frame::new(&registers, &[0; 576], 0);
        assert_eq!(word(&frame, frame.context() + 40 + 128), 0xffe, "rip");
        assert_eq!(word(&frame, frame.context() + 40 + 104), 202, "rax");
        registers.rax = (-4i64).cast_unsigned();
        assert!(sleeps(&registers));
        let frame = Frame::new(&registers, &[0; 576], 0);
        assert_eq!(word(&frame, frame.context() + 40 + 128), 0x1000);
        registers.rax = 0;
        assert!(!sleeps(&registers), "the system call has just ended");
    }
}
