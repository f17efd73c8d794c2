//! Calls that the listener of a process makes.
//!
//! The listener is stopped, gets other registers, and goes on at some code that is written over the first instructions of
//! the program, which have run when it began and never run again. That code makes a system call, or calls a function, and
//! then takes the frame of the module `frame` from the stack: the thread is back where it was, whether its tracer still
//! exists or not. It holds no breakpoint, which would end the process once nobody traces it.
//!
//! A system call is seen by its stops. A function may take minutes and make thousands of system calls, so its result is
//! looked at in memory that the process was made to map for this.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use crate::frame::{Frame, sleeps};
use crate::process::Process;
use crate::status::{Error, Status};
use crate::trace::{self, Event, Registers};

/// Makes a system call, and returns by another: `syscall; mov eax, ebx; syscall`.
const SYSTEM_CALL: &[u8] = &[0x0f, 0x05, 0x89, 0xd8, 0x0f, 0x05];
/// Calls a function, stores its result and returns: `call rax; mov [r12], eax; mov eax, ebx; mov rsp, rbp; syscall`. The
/// function keeps the registers behind the first instruction.
const CALL: &[u8] = &[
    0xff, 0xd0, 0x41, 0x89, 0x04, 0x24, 0x89, 0xd8, 0x48, 0x89, 0xec, 0x0f, 0x05,
];
/// What the place of a result holds before there is one. No function that is called returns it.
const NO_RESULT: i32 = i32::MIN;
/// Code segment of programs of 64 bits.
const SEGMENT_64: u64 = 0x33;
/// Flags that a function expects to be clear: trap, direction, alignment check.
const FLAGS_OFF: u64 = 1 << 8 | 1 << 10 | 1 << 18;
/// Times that a thread which does not sleep yet is let go on, and how long each time.
const ATTEMPTS: u32 = 200;
const ATTEMPT: Duration = Duration::from_millis(5);
/// Time between two looks at the place of a result: at first, and at most.
const FIRST_LOOK: Duration = Duration::from_micros(200);
const LONGEST_LOOK: Duration = Duration::from_millis(10);

/// What the thread that traces receives.
#[derive(Debug)]
pub(crate) enum Message<R> {
    /// Something happened to the listener.
    Event(Event),
    /// A request of the session.
    Request(R),
}

/// How a stopped listener goes on.
#[derive(Debug, Clone, Copy)]
enum Way {
    On,
    ToSystemCall,
}

/// The listener of a process, traced by the thread that made this value.
#[derive(Debug)]
pub(crate) struct Listener<R> {
    process: Process,
    thread: i32,
    memory: File,
    entry: u64,
    /// Has another thread wait for an event, while this one waits for requests.
    wait: Sender<()>,
    messages: Receiver<Message<R>>,
    /// Requests that came before an event.
    later: VecDeque<R>,
    /// Whether the other thread waits for the next event.
    watched: bool,
    ended: bool,
}

impl<R: Send + 'static> Listener<R> {
    /// Seizes the listener. `sender` belongs to `messages`.
    pub(crate) fn seize(
        process: Process,
        thread: i32,
        sender: Sender<Message<R>>,
        messages: Receiver<Message<R>>,
    ) -> Result<Listener<R>, Error> {
        let pid = process.pid;
        let entry = process.entry()?;
        trace::seize(thread).map_err(|error| match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Error::new(
                Status::NotPermitted,
                format!(
                    "process {pid} may not be traced: {}",
                    why_not(process, thread)
                ),
            ),
            Some(libc::ESRCH) => {
                Error::new(Status::ProcessNotFound, format!("process {pid} has ended"))
            }
            _ => failure(pid, "cannot be traced", &error),
        })?;
        let memory = File::options()
            .read(true)
            .write(true)
            .open(format!("/proc/{pid}/mem"))
            .map_err(|error| failure(pid, "its memory cannot be opened", &error))?;
        let (wait, waits) = channel();
        let waiter = std::thread::Builder::new().name("rpd-attach-wait".to_owned());
        let work = move || {
            // Ends with the session, and with the listener.
            while waits.recv().is_ok() {
                let event = trace::wait(thread);
                if sender.send(Message::Event(event)).is_err() || event == Event::Ended {
                    break;
                }
            }
        };
        waiter
            .spawn(work)
            .map_err(|error| failure(pid, "no thread that waits for it", &error))?;
        Ok(Listener {
            process,
            thread,
            memory,
            entry,
            wait,
            messages,
            later: VecDeque::new(),
            watched: false,
            ended: false,
        })
    }

    fn failed(&self, what: &str, error: &io::Error) -> Error {
        // The memory of a process that has ended reads as an empty file.
        let is_gone = error.raw_os_error() == Some(libc::ESRCH)
            || matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::WriteZero
            );
        if is_gone {
            self.gone()
        } else {
            failure(self.process.pid, what, error)
        }
    }

    fn gone(&self) -> Error {
        Error::new(
            Status::PtraceError,
            format!("process {} has ended meanwhile", self.process.pid),
        )
    }

    /// Lets the stopped listener go on, with a signal if that is not 0.
    fn go_on(&self, way: Way, signal: i32) -> Result<(), Error> {
        let done = match way {
            Way::On => trace::go_on(self.thread, signal),
            Way::ToSystemCall => trace::to_system_call(self.thread, signal),
        };
        done.map_err(|error| self.failed("its thread cannot go on", &error))?;
        Ok(())
    }

    /// Deals with an event that is none of ours: signals are passed on, and a process that was stopped stays so until
    /// somebody lets it go on.
    fn pass_on(&mut self, event: Event, way: Way) -> Result<(), Error> {
        match event {
            Event::Signal(signal) => self.go_on(way, signal),
            Event::GroupStop => {
                trace::stay_stopped(self.thread)
                    .map_err(|error| self.failed("its thread cannot stay stopped", &error))?;
                Ok(())
            }
            Event::SystemCall | Event::Interrupted | Event::Other => self.go_on(way, 0),
            Event::Ended => {
                self.ended = true;
                Err(self.gone())
            }
        }
    }

    /// The next event; `None` when none has come within a time.
    fn next(&mut self, limit: Option<Duration>) -> Result<Option<Event>, Error> {
        if self.ended {
            return Err(self.gone());
        }
        // The other thread sees what happens first after a request; all that follows is seen here.
        let event = if self.watched {
            Some(self.watched_event()?)
        } else if let Some(limit) = limit {
            let event = trace::poll(self.thread);
            if event.is_none() {
                std::thread::sleep(limit);
            }
            event
        } else {
            Some(trace::wait(self.thread))
        };
        if event == Some(Event::Ended) {
            self.ended = true;
            return Err(self.gone());
        }
        Ok(event)
    }

    /// The event that the other thread waits for.
    fn watched_event(&mut self) -> Result<Event, Error> {
        loop {
            match self.messages.recv().map_err(|_| self.gone())? {
                Message::Event(event) => {
                    self.watched = false;
                    return Ok(event);
                }
                Message::Request(request) => self.later.push_back(request),
            }
        }
    }

    /// Waits for an event, and passes others on meanwhile.
    fn until(&mut self, wanted: Event, way: Way) -> Result<(), Error> {
        loop {
            match self.next(None)? {
                Some(event) if event == wanted => return Ok(()),
                Some(event) => self.pass_on(event, way)?,
                None => {}
            }
        }
    }

    /// The next request. The listener runs meanwhile; signals that it gets are passed on.
    pub(crate) fn request(&mut self) -> Result<R, Error> {
        loop {
            if let Some(request) = self.later.pop_front() {
                return Ok(request);
            }
            if !self.watched {
                // That thread lives until this value is dropped; without it there are no events, which is said below.
                let _ = self.wait.send(());
                self.watched = true;
            }
            match self.messages.recv().map_err(|_| self.gone())? {
                Message::Request(request) => return Ok(request),
                Message::Event(event) => {
                    self.watched = false;
                    self.pass_on(event, Way::On)?;
                }
            }
        }
    }

    /// Stops the listener.
    fn stop(&mut self) -> Result<(), Error> {
        trace::interrupt(self.thread)
            .map_err(|error| self.failed("its thread cannot be stopped", &error))?;
        self.until(Event::Interrupted, Way::On)
    }

    /// Stops the listener while it sleeps.
    fn stop_asleep(&mut self) -> Result<Registers, Error> {
        for _ in 0..ATTEMPTS {
            self.stop()?;
            let registers = self.registers()?;
            if registers.cs & 0xffff != SEGMENT_64 {
                self.go_on(Way::On, 0)?;
                let text = format!("process {}: it is no program of 64 bits", self.process.pid);
                return Err(Error::new(Status::NotSupported, text));
            }
            if sleeps(&registers) {
                return Ok(registers);
            }
            // It has just begun, or was woken.
            self.go_on(Way::On, 0)?;
            std::thread::sleep(ATTEMPT);
        }
        let text = format!(
            "process {}: its thread {} does not sleep; is another attacher at work?",
            self.process.pid,
            crate::LISTENER
        );
        Err(Error::new(Status::PtraceError, text))
    }

    fn registers(&self) -> Result<Registers, Error> {
        trace::registers(self.thread)
            .map_err(|error| self.failed("its registers cannot be read", &error))
    }

    /// Writes to the memory of the process.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.memory
            .write_all_at(bytes, address)
            .map_err(|error| self.failed("its memory cannot be written", &error))
    }

    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.memory
            .read_exact_at(bytes, address)
            .map_err(|error| self.failed("its memory cannot be read", &error))
    }

    /// Prepares the sleeping listener to run `code`, and to return from it. What the code expects in further registers is
    /// set by `set`, which gets the frame. Returns what the code replaces.
    fn prepare(
        &mut self,
        code: &[u8],
        set: impl FnOnce(&Frame, &mut Registers),
    ) -> Result<Vec<u8>, Error> {
        let registers = self.stop_asleep()?;
        let unreadable = |error| self.failed("its registers cannot be read", &error);
        let vectors = trace::vector_registers(self.thread).map_err(unreadable)?;
        let blocked = trace::blocked_signals(self.thread).map_err(unreadable)?;
        let frame = Frame::new(&registers, &vectors, blocked);
        self.write(frame.address, &frame.bytes)?;
        let mut replaced = vec![0; code.len()];
        self.read(self.entry, &mut replaced)?;
        self.write(self.entry, code)?;
        let mut changed = registers;
        changed.rip = self.entry;
        // The kernel does not make the interrupted system call again: the frame does.
        changed.orig_rax = u64::MAX;
        changed.eflags &= !FLAGS_OFF;
        changed.rbx = libc::SYS_rt_sigreturn.cast_unsigned();
        changed.rsp = frame.context();
        set(&frame, &mut changed);
        trace::set_registers(self.thread, &changed)
            .map_err(|error| self.failed("its registers cannot be set", &error))?;
        Ok(replaced)
    }

    /// Has the listener make a system call; its result, negative for an error of the kernel.
    fn system_call(&mut self, number: libc::c_long, arguments: [u64; 6]) -> Result<i64, Error> {
        let replaced = self.prepare(SYSTEM_CALL, |_, registers| {
            registers.rax = number.cast_unsigned();
            let [first, second, third, fourth, fifth, sixth] = arguments;
            registers.rdi = first;
            registers.rsi = second;
            registers.rdx = third;
            registers.r10 = fourth;
            registers.r8 = fifth;
            registers.r9 = sixth;
        })?;
        let mut result = 0;
        // Before and after the call, then before and after the return.
        for stop in 0..4 {
            self.go_on(Way::ToSystemCall, 0)?;
            self.until(Event::SystemCall, Way::ToSystemCall)?;
            if stop == 1 {
                result = self.registers()?.rax.cast_signed();
            }
        }
        self.write(self.entry, &replaced)?;
        self.go_on(Way::On, 0)?;
        Ok(result)
    }

    /// Has the process map memory; its address.
    pub(crate) fn map(&mut self, len: usize) -> Result<u64, Error> {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let numbers = [0, len as u64, rights as u64, kind as u64, u64::MAX, 0];
        let result = self.system_call(libc::SYS_mmap, numbers)?;
        u64::try_from(result).map_err(|_| {
            let error = io::Error::from_raw_os_error((-result) as i32);
            failure(
                self.process.pid,
                "it has no memory for the tool's options",
                &error,
            )
        })
    }

    /// Has the process give memory back that [`Listener::map`] returned.
    pub(crate) fn unmap(&mut self, address: u64, len: usize) -> Result<(), Error> {
        let numbers = [address, len as u64, 0, 0, 0, 0];
        self.system_call(libc::SYS_munmap, numbers).map(drop)
    }

    /// Has the listener call a function; its result. `place` is where four bytes of memory are for the result.
    pub(crate) fn call(
        &mut self,
        function: u64,
        arguments: [u64; 2],
        place: u64,
    ) -> Result<i32, Error> {
        self.write(place, &NO_RESULT.to_le_bytes())?;
        let replaced = self.prepare(CALL, |frame, registers| {
            registers.rax = function;
            [registers.rdi, registers.rsi] = arguments;
            registers.r12 = place;
            registers.rbp = frame.context();
            registers.rsp = frame.address;
        })?;
        self.go_on(Way::On, 0)?;
        let mut pause = FIRST_LOOK;
        let result = loop {
            if let Some(event) = self.next(Some(pause))? {
                self.pass_on(event, Way::On)?;
            }
            let mut bytes = [0; 4];
            self.read(place, &mut bytes)?;
            let result = i32::from_le_bytes(bytes);
            if result != NO_RESULT {
                break result;
            }
            pause = (pause * 2).min(LONGEST_LOOK);
        };
        // The code stays until the listener has left it.
        let code = self.entry..self.entry + CALL.len() as u64;
        loop {
            self.stop()?;
            if !code.contains(&self.registers()?.rip) {
                break;
            }
            self.go_on(Way::On, 0)?;
        }
        self.write(self.entry, &replaced)?;
        self.go_on(Way::On, 0)?;
        Ok(result)
    }

    /// Lets the listener go, for good.
    pub(crate) fn let_go(mut self) -> Result<(), Error> {
        self.stop()?;
        trace::detach(self.thread)
            .map_err(|error| self.failed("its thread cannot be let go", &error))
    }
}

fn failure(pid: i32, what: &str, error: &io::Error) -> Error {
    Error::new(
        Status::PtraceError,
        format!("process {pid}: {what}: {error}"),
    )
}

/// Why the kernel forbids to trace a thread.
fn why_not(process: Process, thread: i32) -> String {
    let tracer = process.state(Some(thread)).map_or(0, |state| state.tracer);
    if tracer != 0 {
        return crate::inspect::traced_by(tracer);
    }
    crate::inspect::forbidden(process)
}
