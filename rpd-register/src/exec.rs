//! The functions by which a program replaces itself with another, or starts one: what is complete by then is recorded first,
//! the next program gets the variables by which it is recorded ([`attach`]), and what cannot be recorded is noted
//! ([`obstacle`]).
//!
//! Some of these functions take any number of arguments. Each saves the argument registers and asks [`begin`] how many bytes
//! of the stack the changed arguments take. Without a change it jumps to the next function of its name, as if it had not been
//! there; otherwise [`change`] writes the arguments to the stack and names the function to call with them. The stack
//! is the only memory that is free again after `exec` in a child that shares its parent's memory.

use std::arch::naked_asm;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};

use crate::attach::{self, Environment};
use crate::obstacle;

/// Place of a function's environment.
#[derive(Clone, Copy)]
enum Given {
    /// The environment is in a register, by its position among the arguments.
    Register(usize),
    /// The environment is that of this program.
    Own,
    /// Arguments up to a null pointer begin at the second one; the environment follows them.
    AfterList,
    /// Arguments up to a null pointer begin at the second one; the environment is that of this program.
    OwnAfterList,
}

/// Form in which a function gets the program.
#[derive(Clone, Copy)]
enum Named {
    /// A path is in the register.
    Path,
    /// A name is in the register, which is searched in `PATH` unless it has a slash.
    Searched,
    /// A descriptor is in the register.
    Descriptor,
    /// A command of the shell is in the register.
    Command,
    /// A descriptor is in the register, a path that is relative to it in the next one, and flags in the fifth one.
    At,
}

struct Function {
    name: &'static CStr,
    /// Position of the argument that names the program.
    program: usize,
    named: Named,
    environment: Given,
    /// Position in [`FUNCTIONS`] of the function that has the environment in a register.
    explicit: usize,
    /// Whether this program ends when it succeeds.
    replaces: bool,
}

const fn function(
    name: &'static CStr,
    named: Named,
    environment: Given,
    explicit: usize,
) -> Function {
    Function {
        name,
        program: 0,
        named,
        environment,
        explicit,
        replaces: true,
    }
}

const fn spawn(name: &'static CStr, named: Named, explicit: usize) -> Function {
    Function {
        program: 1,
        replaces: false,
        ..function(name, named, Given::Register(5), explicit)
    }
}

/// A function that has the shell run a command. The C library starts the shell without the functions above, with the environment
/// of this program: what the command needs is set by the command.
const fn shell(name: &'static CStr, explicit: usize) -> Function {
    Function {
        replaces: false,
        ..function(name, Named::Command, Given::Own, explicit)
    }
}

/// The functions, in the order of [`NEXT`].
static FUNCTIONS: [Function; 13] = [
    function(c"execve", Named::Path, Given::Register(2), 0),
    function(c"execv", Named::Path, Given::Own, 0),
    function(c"execvp", Named::Searched, Given::Own, 3),
    function(c"execvpe", Named::Searched, Given::Register(2), 3),
    function(c"execl", Named::Path, Given::OwnAfterList, 0),
    function(c"execle", Named::Path, Given::AfterList, 0),
    function(c"execlp", Named::Searched, Given::OwnAfterList, 3),
    function(c"fexecve", Named::Descriptor, Given::Register(2), 7),
    function(c"execveat", Named::At, Given::Register(3), 8),
    spawn(c"posix_spawn", Named::Path, 9),
    spawn(c"posix_spawnp", Named::Searched, 10),
    shell(c"system", 11),
    shell(c"popen", 12),
];

/// What the C library runs commands with.
const SHELL: &CStr = c"/bin/sh";

/// The next definitions, usually the C library's.
static NEXT: [AtomicPtr<c_void>; FUNCTIONS.len()] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; FUNCTIONS.len()];

/// The effective user and group of this program when it was loaded.
static USER: AtomicU32 = AtomicU32::new(0);
/// The process for which this library was loaded, or 0: others are its children.
static PROCESS: AtomicI32 = AtomicI32::new(0);

unsafe extern "C" {
    static environ: Environment;
}

/// Looks the next definitions up. To be called when the library is loaded: a child that was forked while another thread was
/// in the loader could not do it.
pub(crate) fn prepare() {
    for (function, next) in FUNCTIONS.iter().zip(&NEXT) {
        // SAFETY: the name is text.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, function.name.as_ptr()) };
        next.store(found, Ordering::Release);
    }
    // SAFETY: these system calls take no pointers.
    let (user, process) = unsafe { (libc::geteuid(), libc::getpid()) };
    USER.store(user, Ordering::Relaxed);
    PROCESS.store(process, Ordering::Relaxed);
}

/// The arguments of a call: the argument registers, the caller's frame, the return address, and the arguments on the
/// stack.
#[repr(C)]
struct Call {
    registers: [usize; 6],
    _frame: usize,
    _back: usize,
    stack: [usize; 0],
}

impl Call {
    /// The argument at this position.
    ///
    /// # Safety
    ///
    /// The function was called with that many.
    unsafe fn argument(&self, position: usize) -> usize {
        match self.registers.get(position) {
            Some(value) => *value,
            // SAFETY: by the contract of this function, it is on the stack.
            None => unsafe {
                let stack = std::ptr::from_ref(&self.stack).cast::<usize>();
                *stack.add(position - self.registers.len())
            },
        }
    }

    /// Number of arguments from the second one to the null pointer, which is not counted.
    ///
    /// # Safety
    ///
    /// The function takes such a list.
    unsafe fn listed(&self) -> usize {
        // SAFETY: nothing behind the null pointer is read.
        (1..)
            .take_while(|at| unsafe { self.argument(*at) } != 0)
            .count()
    }

    /// The environment that the function would use.
    ///
    /// # Safety
    ///
    /// `self` holds the arguments of `function`.
    unsafe fn environment(&self, function: &Function) -> Environment {
        match function.environment {
            Given::Register(position) => self.registers[position] as Environment,
            // SAFETY: the C library's variable.
            Given::Own | Given::OwnAfterList => unsafe { environ },
            // SAFETY: by the contract of this function, it follows the list and its null pointer.
            Given::AfterList => unsafe { self.argument(self.listed() + 2) as Environment },
        }
    }
}

/// Called by a function of [`FUNCTIONS`] before it does its work. Bytes of the stack that [`change`] needs, a multiple of
/// 16; 0 when the arguments stay as they are. Nothing of the GPU is recorded in a child that shares its parent's memory or was
/// forked from it.
extern "C" fn begin(index: usize, call: &Call) -> usize {
    let function = &FUNCTIONS[index];
    let prepared = || {
        let collector = crate::collector::opened()?;
        if function.replaces {
            collector.flush();
        }
        note(function, call);
        // SAFETY: the arguments with which the program called the function.
        unsafe {
            let environment = attach::size(call.environment(function))?;
            let more = match (function.named, call.registers[0] as *const c_char) {
                (Named::Command, command) if command.is_null() => return None,
                (Named::Command, command) => command_size(environment, CStr::from_ptr(command)),
                _ => list_size(function, call),
            };
            Some((environment + more).next_multiple_of(16))
        }
    };
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(prepared))
        .ok()
        .flatten()
        .unwrap_or(0)
}

/// Bytes of the arguments that are in a list.
///
/// # Safety
///
/// `call` has the arguments of `function`.
unsafe fn list_size(function: &Function, call: &Call) -> usize {
    match function.environment {
        Given::Register(_) | Given::Own => 0,
        // SAFETY: by the contract of this function.
        Given::AfterList | Given::OwnAfterList => unsafe {
            (call.listed() + 1) * size_of::<usize>()
        },
    }
}

/// Makes the arguments of the function that is returned, with the environment and lists to which they point in
/// `memory`.
extern "C" fn change(index: usize, call: &mut Call, memory: *mut u8) -> *const c_void {
    let function = &FUNCTIONS[index];
    // SAFETY: the arguments with which the program called the function, and as many bytes as `begin` asked for.
    unsafe {
        let environment = call.environment(function);
        if let Named::Command = function.named {
            let command = CStr::from_ptr(call.registers[0] as *const c_char);
            let made = attach::write(environment, memory);
            let place = memory.add(attach::size(environment).unwrap_or(0));
            write_command(environment, made, command, place);
            call.registers[0] = place as usize;
            return next(function.explicit);
        }
        let listed = list_size(function, call);
        let made = attach::write(environment, memory.add(listed)) as usize;
        match function.environment {
            Given::Register(position) => call.registers[position] = made,
            Given::Own => call.registers[2] = made,
            Given::AfterList | Given::OwnAfterList => {
                let list = memory.cast::<usize>();
                for at in 0..listed / size_of::<usize>() {
                    list.add(at).write(call.argument(at + 1));
                }
                call.registers[1] = list as usize;
                call.registers[2] = made;
            }
        }
    }
    next(function.explicit)
}

/// What comes before a command that is changed, between its variables and itself, and after it. The shell becomes another one, with
/// the same process and name, so that nothing but the variables differs.
const COMMAND: [&[u8]; 3] = [b"export", b"; exec /bin/sh -c '", b"' sh\0"];

/// Bytes of a quote in quoted text.
const QUOTE: &[u8] = b"'\\''";

/// Room for what [`write_command`] writes when the changed environment takes `environment` bytes: every byte of it and of the
/// command may be a quote.
fn command_size(environment: usize, command: &CStr) -> usize {
    let fixed: usize = COMMAND.iter().map(|part| part.len()).sum();
    // Of each variable a space and two quotes, in place of its pointer and its NUL.
    fixed + QUOTE.len() * (environment + attach::texts() + command.count_bytes())
}

/// Writes a command that sets the variables which `changed` has and `environment` lacks, and then does what `command` does.
///
/// # Safety
///
/// Both are environments that are not changed meanwhile, and `place` has as many bytes as [`command_size`] said.
unsafe fn write_command(
    environment: Environment,
    changed: Environment,
    command: &CStr,
    place: *mut u8,
) {
    let mut at = place;
    let mut write = |bytes: &[u8]| {
        // SAFETY: by the contract of this function.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len());
            at = at.add(bytes.len());
        }
    };
    let quote = |text: &[u8], write: &mut dyn FnMut(&[u8])| {
        for (index, part) in text.split(|byte| *byte == b'\'').enumerate() {
            write(if index == 0 { b"" } else { QUOTE });
            write(part);
        }
    };
    write(COMMAND[0]);
    // SAFETY: by the contract of this function.
    for entry in unsafe { attach::entries(changed) } {
        // SAFETY: as above.
        let mut own = unsafe { attach::entries(environment) };
        if own.any(|known| std::ptr::eq(known.as_ptr(), entry.as_ptr())) {
            continue;
        }
        let entry = entry.to_bytes();
        let value = entry
            .iter()
            .position(|byte| *byte == b'=')
            .map_or(0, |at| at + 1);
        write(b" ");
        write(&entry[..value]);
        write(b"'");
        quote(&entry[value..], &mut write);
        write(b"'");
    }
    write(COMMAND[1]);
    quote(command.to_bytes(), &mut write);
    write(COMMAND[2]);
}

/// The next function of this name.
extern "C" fn next(index: usize) -> *const c_void {
    if NEXT[index].load(Ordering::Acquire).is_null() {
        // Another constructor calls it before ours has run.
        prepare();
    }
    let next = NEXT[index].load(Ordering::Acquire);
    if next.is_null() {
        missing as *const c_void
    } else {
        next
    }
}

/// Takes the place of a function that the C library does not have.
extern "C" fn missing() -> c_int {
    // SAFETY: the calling thread's own errno.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
}

/// Makes the collector note a program that will run without it.
fn note(function: &Function, call: &Call) {
    let name = call.registers[function.program];
    let text = name as *const c_char;
    // SAFETY: the arguments with which the program called the function: text, unless it is null.
    let found = unsafe {
        match function.named {
            _ if !matches!(function.named, Named::Descriptor | Named::At) && text.is_null() => None,
            Named::Command => obstacle::at(libc::AT_FDCWD, SHELL, 0),
            Named::Path => obstacle::at(libc::AT_FDCWD, CStr::from_ptr(text), 0),
            Named::Searched => obstacle::searched(CStr::from_ptr(text)),
            Named::Descriptor => obstacle::at(name as c_int, c"", libc::AT_EMPTY_PATH),
            Named::At => match call.registers[1] as *const c_char {
                path if path.is_null() => None,
                path => {
                    let flags = call.registers[4] as c_int & libc::AT_EMPTY_PATH;
                    obstacle::at(name as c_int, CStr::from_ptr(path), flags)
                }
            },
        }
    };
    let user = USER.load(Ordering::Relaxed);
    let Some(why) = found.or_else(|| obstacle::of_user(user)) else {
        return;
    };
    let program = match function.named {
        Named::Command => SHELL,
        Named::Descriptor => c"(a file by its descriptor)",
        // SAFETY: as above; where it is null the call fails.
        Named::At => unsafe { CStr::from_ptr(call.registers[1] as *const c_char) },
        // SAFETY: as above.
        Named::Path | Named::Searched => unsafe { CStr::from_ptr(text) },
    };
    // SAFETY: takes no pointers. The C library may have the id of a parent that shares its memory.
    let process = unsafe { libc::syscall(libc::SYS_getpid) };
    let own = function.replaces && process == i64::from(PROCESS.load(Ordering::Relaxed));
    if let Some(collector) = crate::collector::opened() {
        collector.ran_without(program, why, own);
    }
}

macro_rules! wrapped {
    ($($name:ident = $index:literal;)*) => {$(
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub(crate) extern "C" fn $name() {
            // The saved registers are a `Call`, with what is above them. rax counts the vector registers that hold variable
            // arguments. Eight words and the return address keep the stack aligned for calls.
            naked_asm!(
                "push rbp",
                "mov rbp, rsp",
                "push r9",
                "push r8",
                "push rcx",
                "push rdx",
                "push rsi",
                "push rdi",
                "push rax",
                "push rax",
                "mov edi, {index}",
                "lea rsi, [rbp - 48]",
                "call {begin}",
                "test rax, rax",
                "jz 2f",
                "sub rsp, rax",
                "mov edi, {index}",
                "lea rsi, [rbp - 48]",
                "mov rdx, rsp",
                "call {change}",
                "mov r11, rax",
                "mov rdi, [rbp - 48]",
                "mov rsi, [rbp - 40]",
                "mov rdx, [rbp - 32]",
                "mov rcx, [rbp - 24]",
                "mov r8, [rbp - 16]",
                "mov r9, [rbp - 8]",
                "call r11",
                "leave",
                "ret",
                "2:",
                "mov edi, {index}",
                "call {next}",
                "mov r11, rax",
                "mov rax, [rbp - 56]",
                "mov rdi, [rbp - 48]",
                "mov rsi, [rbp - 40]",
                "mov rdx, [rbp - 32]",
                "mov rcx, [rbp - 24]",
                "mov r8, [rbp - 16]",
                "mov r9, [rbp - 8]",
                "leave",
                "jmp r11",
                index = const $index,
                begin = sym begin,
                change = sym change,
                next = sym next,
            )
        }
    )*};
}

wrapped! {
    execve = 0;
    execv = 1;
    execvp = 2;
    execvpe = 3;
    execl = 4;
    execle = 5;
    execlp = 6;
    fexecve = 7;
    execveat = 8;
    posix_spawn = 9;
    posix_spawnp = 10;
    system = 11;
    popen = 12;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_sets_what_its_environment_lacks_and_stays_the_same() {
        let own = [c"A=1", c"LD_PRELOAD=/x.so"];
        let changed = [own[0], c"LD_PRELOAD=/x.so:/it's.so", c"RPD_SPOOL=/run"];
        let list = |texts: &[&'static CStr]| -> Vec<*const c_char> {
            let texts = texts.iter().map(|text| text.as_ptr());
            texts.chain([std::ptr::null()]).collect()
        };
        let (own, changed) = (list(&own), list(&changed));
        let command = c"echo 'a b' \"$0\"";
        let mut memory = vec![0xaa_u8; 4 * 200];
        // SAFETY: lists of text with a null pointer at their ends, and memory for more than what is written.
        unsafe { write_command(own.as_ptr(), changed.as_ptr(), command, memory.as_mut_ptr()) };
        let made = CStr::from_bytes_until_nul(&memory).expect("text");
        assert_eq!(
            made.to_str(),
            Ok(
                "export LD_PRELOAD='/x.so:/it'\\''s.so' RPD_SPOOL='/run'; exec /bin/sh -c 'echo '\\''a b'\\'' \"$0\"' sh"
            )
        );
    }
}
