//! Rules from call frame information (`.eh_frame`).

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, FrameDescriptionEntry, LittleEndian,
    Operation, Register, RegisterRule, UnwindContext, UnwindContextStorage, UnwindExpression,
    UnwindSection, UnwindTableRow,
};

use crate::native::registers::{self, RegisterFile};
use crate::native::rules::{Rule, RuleKind, SavedBp};

const RBP: Register = Register(registers::RBP);
const RSP: Register = Register(registers::RSP);
const RETURN_ADDRESS: Register = Register(16);
/// `mov $SYS_rt_sigreturn, %rax; syscall`: what a signal handler returns to.
const SIGNAL_RETURN: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
/// Offset of RSP in the `ucontext` of a signal.
pub(crate) const UCONTEXT_RSP: u64 = 160;
/// Offset of RBP in the `ucontext` of a signal.
pub(crate) const UCONTEXT_RBP: u64 = 120;
/// Offset of RIP in the `ucontext` of a signal.
pub(crate) const UCONTEXT_RIP: u64 = 168;

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// Rows of at most 32 registers, in place: evaluating call frame information allocates nothing.
pub(crate) struct InPlace;

impl<T: gimli::ReaderOffset> UnwindContextStorage<T> for InPlace {
    type Rules = [(Register, RegisterRule<T>); 32];
    type Stack = [UnwindTableRow<T, Self>; 4];
}

/// Room for evaluating call frame information; large, so it is kept outside the stack.
pub(crate) type Context = UnwindContext<usize, InPlace>;

/// A range of memory that may be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// First address of the memory.
    pub(crate) start: u64,
    /// Address after the last byte of the memory.
    pub(crate) end: u64,
}

impl Memory {
    /// The bytes from `address` to the end of the range.
    ///
    /// # Safety
    ///
    /// The range is mapped and constant for as long as the result is used.
    unsafe fn from<'a>(self, address: u64) -> Option<&'a [u8]> {
        if address < self.start || address >= self.end {
            return None;
        }
        // SAFETY: inside the range.
        Some(unsafe {
            std::slice::from_raw_parts(address as *const u8, (self.end - address) as usize)
        })
    }
}

/// The call frame information of one instruction.
pub(crate) struct Row<'a> {
    row: &'a UnwindTableRow<usize, InPlace>,
    section: &'a EhFrame<Bytes<'a>>,
    pc: u64,
    is_signal: bool,
}

/// The rule for `pc` from the `.eh_frame_hdr` at `header`. `None`: nothing covers `pc`.
///
/// # Safety
///
/// `memory` is mapped, and not unmapped meanwhile.
pub(crate) unsafe fn rule_from_header(
    context: &mut Context,
    header: u64,
    memory: Memory,
    pc: u64,
    module: u32,
) -> Option<Rule> {
    // SAFETY: the caller's promise.
    unsafe { with_row_from_header(context, header, memory, pc, |row| rule_of(row, module)) }
}

/// Calls `read` with the row for `pc` from the `.eh_frame_hdr` at `header`, or with `None` if the row cannot be read.
/// `None`: nothing covers `pc`.
///
/// # Safety
///
/// `memory` is mapped, and not unmapped meanwhile.
pub(crate) unsafe fn with_row_from_header<T>(
    context: &mut Context,
    header: u64,
    memory: Memory,
    pc: u64,
    read: impl FnOnce(Option<&Row<'_>>) -> T,
) -> Option<T> {
    let bases = BaseAddresses::default().set_eh_frame_hdr(header);
    // SAFETY: the caller's promise.
    let bytes = unsafe { memory.from(header) }?;
    let parsed = EhFrameHdr::new(bytes, LittleEndian).parse(&bases, 8).ok()?;
    let gimli::Pointer::Direct(start) = parsed.eh_frame_ptr() else {
        return None;
    };
    // SAFETY: the caller's promise.
    let section = EhFrame::new(unsafe { memory.from(start) }?, LittleEndian);
    let bases = bases.set_eh_frame(start);
    let entry = match parsed.table() {
        Some(table) => table.fde_for_address(&section, &bases, pc, EhFrame::cie_from_offset),
        None => section.fde_for_address(&bases, pc, EhFrame::cie_from_offset),
    };
    with_row_of_entry(context, &section, &bases, &entry.ok()?, pc, read)
}

/// The rule for `pc` from one registered entry at `entry`.
///
/// # Safety
///
/// `entry` is the address of a frame description entry whose common entry can be read.
pub(crate) unsafe fn rule_from_entry(
    context: &mut Context,
    entry: u64,
    pc: u64,
    module: u32,
) -> Option<Rule> {
    // SAFETY: the caller's promise: the length and the distance to the common entry.
    let word = |address: u64| u64::from(unsafe { std::ptr::read_unaligned(address as *const u32) });
    let common = (entry + 4).wrapping_sub(word(entry + 4) as i32 as i64 as u64);
    let end_of = |start: u64| start + 4 + word(start);
    let (start, end) = (entry.min(common), end_of(entry).max(end_of(common)));
    if word(entry) >= 0xffff_fff0 || word(common) >= 0xffff_fff0 || end - start > 1 << 24 {
        return None;
    }
    // SAFETY: both entries, and what is between them, are one registered table.
    let section = EhFrame::new(unsafe { Memory { start, end }.from(start) }?, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(start);
    let offset = gimli::EhFrameOffset((entry - start) as usize);
    let entry = section
        .fde_from_offset(&bases, offset, EhFrame::cie_from_offset)
        .ok()?;
    with_row_of_entry(context, &section, &bases, &entry, pc, |row| {
        rule_of(row, module)
    })
}

fn with_row_of_entry<T>(
    context: &mut Context,
    section: &EhFrame<Bytes<'_>>,
    bases: &BaseAddresses,
    entry: &FrameDescriptionEntry<Bytes<'_>>,
    pc: u64,
    read: impl FnOnce(Option<&Row<'_>>) -> T,
) -> Option<T> {
    if !entry.contains(pc) || entry.cie().return_address_register() != RETURN_ADDRESS {
        return None;
    }
    let row = entry.unwind_info_for_address(section, bases, context, pc);
    let row = row.ok().map(|row| Row {
        row,
        section,
        pc,
        is_signal: entry.is_signal_trampoline(),
    });
    Some(read(row.as_ref()))
}

fn rule_of(row: Option<&Row<'_>>, module: u32) -> Rule {
    let rule = row.and_then(|row| rule_of_row(row, module));
    rule.unwrap_or_else(|| Rule::from_kind(RuleKind::Uncovered, module))
}

impl Row<'_> {
    fn evaluate(&self, expression: &UnwindExpression<usize>) -> Option<Value> {
        evaluate(expression, self.section, self.pc)
    }

    fn cfa_value(&self) -> Option<Value> {
        match self.row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => Some(Value::Register {
                register: *register,
                offset: *offset,
            }),
            CfaRule::Expression(cfa) => self.evaluate(cfa),
        }
    }

    /// The canonical frame address (CFA) of a frame with these registers. `None`: it depends on a register that is not
    /// known.
    pub(crate) fn cfa(
        &self,
        registers: &RegisterFile,
        word: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Option<u64> {
        self.cfa_value()?.resolve(registers, word)
    }

    /// Whether the return address is in the word below the CFA.
    pub(crate) fn returns_below_cfa(&self) -> bool {
        self.row.register(RETURN_ADDRESS) == Some(RegisterRule::Offset(-8))
    }

    /// The value of register `number` in the caller of a frame with these registers and this CFA. `None`: it is not
    /// known.
    pub(crate) fn register_of_caller(
        &self,
        number: u16,
        cfa: u64,
        registers: &RegisterFile,
        word: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Option<u64> {
        match self.row.register(Register(number)) {
            None | Some(RegisterRule::SameValue) => registers.get(number),
            Some(RegisterRule::Offset(offset)) => word(cfa.wrapping_add_signed(offset)),
            Some(RegisterRule::ValOffset(offset)) => Some(cfa.wrapping_add_signed(offset)),
            Some(RegisterRule::Register(other)) => registers.get(other.0),
            Some(RegisterRule::Expression(place)) => {
                let place = self.evaluate(&place)?.resolve(registers, word)?;
                word(place)
            }
            Some(RegisterRule::ValExpression(value)) => {
                self.evaluate(&value)?.resolve(registers, word)
            }
            Some(_) => None,
        }
    }
}

/// The rule of a row; `None` if rules cannot express it.
fn rule_of_row(row: &Row<'_>, module: u32) -> Option<Rule> {
    let cfa = row.cfa_value()?;
    // The trampoline's CFA is the stack pointer in the `ucontext`; rules cannot express any other.
    if row.is_signal {
        let known = cfa
            == Value::Word {
                register: RSP,
                offset: UCONTEXT_RSP as i64,
            };
        return known.then(|| Rule::from_kind(RuleKind::Signal, module));
    }
    match row.row.register(RETURN_ADDRESS) {
        Some(RegisterRule::Undefined) => return Some(Rule::from_kind(RuleKind::End, module)),
        // All code that compilers make returns to the word below the CFA, and rules have no room for another place.
        Some(RegisterRule::Offset(-8)) => {}
        _ => return None,
    }
    let (bp, bp_offset) = match row.row.register(RBP) {
        None | Some(RegisterRule::SameValue) => (SavedBp::Same, 0),
        Some(RegisterRule::Offset(offset)) => (SavedBp::AtCfa, offset),
        Some(RegisterRule::Expression(place)) => match row.evaluate(&place)? {
            Value::Register {
                register: RBP,
                offset,
            } => (SavedBp::AtBp, offset),
            _ => (SavedBp::Lost, 0),
        },
        // A rule without the caller's RBP is still of use: most callers do not need it.
        Some(_) => (SavedBp::Lost, 0),
    };
    let (register, offset, deref) = match cfa {
        Value::Register { register, offset } => (register, offset, false),
        Value::Word { register, offset } => (register, offset, true),
        Value::Number(_) => return None,
    };
    // Walks follow RSP and RBP only.
    if register != RSP && register != RBP {
        return Some(Rule::from_kind(RuleKind::OtherRegister, module));
    }
    Rule::frame(register == RBP, deref, offset, bp, bp_offset, module)
}

/// Value of an expression, where rules can express it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Number(i64),
    Register { register: Register, offset: i64 },
    Word { register: Register, offset: i64 },
}

impl Value {
    /// The number that a value has in a frame with these registers. `None`: a register is not known, or the word cannot
    /// be read.
    fn resolve(
        self,
        registers: &RegisterFile,
        word: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Option<u64> {
        let of = |register: Register, offset| {
            let value = registers.get(register.0)?;
            Some(value.wrapping_add_signed(offset))
        };
        match self {
            Value::Number(number) => Some(number as u64),
            Value::Register { register, offset } => of(register, offset),
            Value::Word { register, offset } => word(of(register, offset)?),
        }
    }
}

/// Evaluates an expression with the registers unknown but the program counter known: that covers frames with a
/// realigned stack (a word relative to RBP), signal frames and entries of procedure linkage tables (RSP plus an amount
/// that depends on the program counter).
fn evaluate(
    expression: &UnwindExpression<usize>,
    section: &EhFrame<Bytes<'_>>,
    pc: u64,
) -> Option<Value> {
    let encoding = gimli::Encoding {
        address_size: 8,
        format: gimli::Format::Dwarf32,
        version: 4,
    };
    let mut operations = expression.get(section).ok()?.operations(encoding);
    // Expressions in call frame information are short: one that needs more than eight values is refused.
    let mut stack = [Value::Number(0); 8];
    let mut depth = 0;
    while let Some(operation) = operations.next().ok()? {
        let mut pop = || {
            depth = usize::checked_sub(depth, 1)?;
            Some(stack[depth])
        };
        let value = match operation {
            Operation::RegisterOffset {
                register: RETURN_ADDRESS,
                offset,
                ..
            } => Value::Number((pc as i64).wrapping_add(offset)),
            Operation::RegisterOffset {
                register, offset, ..
            } => Value::Register { register, offset },
            Operation::UnsignedConstant { value } => Value::Number(value as i64),
            Operation::SignedConstant { value } => Value::Number(value),
            Operation::PlusConstant { value } => add(pop()?, value as i64)?,
            Operation::Deref {
                size: 8,
                space: false,
                ..
            } => match pop()? {
                Value::Register { register, offset } => Value::Word { register, offset },
                _ => return None,
            },
            Operation::Plus => match (pop()?, pop()?) {
                (Value::Number(number), other) | (other, Value::Number(number)) => {
                    add(other, number)?
                }
                _ => return None,
            },
            Operation::And => numbers(pop()?, pop()?, |a, b| a & b)?,
            Operation::Ge => numbers(pop()?, pop()?, |a, b| i64::from(a >= b))?,
            Operation::Shl => numbers(pop()?, pop()?, |a, b| if b < 64 { a << b } else { 0 })?,
            // Anything else cannot be a rule: the walk ends here and says so, rather than guess.
            _ => return None,
        };
        *stack.get_mut(depth)? = value;
        depth += 1;
    }
    // More than one value left is a damaged expression.
    if depth == 1 { Some(stack[0]) } else { None }
}

fn add(value: Value, number: i64) -> Option<Value> {
    match value {
        Value::Number(other) => Some(Value::Number(other.wrapping_add(number))),
        Value::Register { register, offset } => Some(Value::Register {
            register,
            offset: offset.wrapping_add(number),
        }),
        Value::Word { .. } => None,
    }
}

/// Applies an operation to the second and the first popped number.
fn numbers(top: Value, below: Value, operation: impl Fn(i64, i64) -> i64) -> Option<Value> {
    match (below, top) {
        (Value::Number(below), Value::Number(top)) if top >= 0 => {
            Some(Value::Number(operation(below, top)))
        }
        _ => None,
    }
}

/// Whether the code at `pc` is the return trampoline of signal handlers.
///
/// # Safety
///
/// The bytes up to `code_end` are mapped.
pub(crate) unsafe fn is_signal_return(pc: u64, code_end: u64) -> bool {
    let len = SIGNAL_RETURN.len() as u64;
    // SAFETY: the caller's promise.
    pc.checked_add(len).is_some_and(|end| end <= code_end)
        && unsafe { std::slice::from_raw_parts(pc as *const u8, len as usize) } == SIGNAL_RETURN
}
