//! Attaching a tool to a process, and detaching it.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use crate::environment::Environment;
use crate::inspect::{Ready, inspect};
use crate::process::{Process, descendants};
use crate::remote::{Listener, Message};
use crate::status::{Error, Status, registration_code};

/// Bytes of the memory for a call that come before the variables: the place of its result.
const RESULT: usize = 16;

/// Processes that this one is attached to.
static ATTACHED: Mutex<Option<HashSet<i32>>> = Mutex::new(None);

/// A process that a tool is attached to. The listener stays traced until then, so that nobody else attaches meanwhile.
///
/// Dropping a session lets the listener go and leaves the tool as it is.
#[derive(Debug)]
pub struct Session {
    pid: i32,
    requests: Sender<Message<Request>>,
    /// Disconnected when nothing of the process is traced any more.
    end: Receiver<()>,
}

/// What the tracing thread is asked for.
#[derive(Debug)]
enum Request {
    /// Detach the tool, and answer.
    Detach(SyncSender<Result<(), Error>>),
    /// Let the listener go.
    LetGo,
}

/// Marks a process as attached while it exists.
#[derive(Debug)]
struct Claim(i32);

impl Claim {
    fn new(pid: i32) -> Result<Claim, Error> {
        let mut attached = ATTACHED.lock().unwrap_or_else(|it| it.into_inner());
        if attached.get_or_insert_default().insert(pid) {
            return Ok(Claim(pid));
        }
        let text = format!("process {pid} is attached already");
        Err(Error::new(Status::InvalidArgument, text))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut attached = ATTACHED.lock().unwrap_or_else(|it| it.into_inner());
        attached.get_or_insert_default().remove(&self.0);
    }
}

impl Session {
    /// Attaches the tool in the library `tool`, named as the target sees it, to a process. Returns when the tool records.
    ///
    /// The process is inspected first and left alone where anything is missing.
    ///
    /// # Errors
    /// One line that names the process and what to do.
    pub fn attach(pid: i32, tool: &Path, environment: &Environment) -> Result<Session, Error> {
        let claim = Claim::new(pid)?;
        let found = inspect(pid)?;
        let ready = found.ready(tool)?;
        if let Some(run) = environment.get(rpd_spool::ATTACHED_SPOOL_VARIABLE) {
            found.records_in(Path::new(run))?;
        }
        let mut environment = environment.clone();
        if let Some(sdk) = &ready.sdk_to_name {
            environment = environment.with("ROCPROFILER_REGISTER_LIBRARY", sdk);
        }
        let block = environment.block();
        let tool = [tool.as_os_str().as_bytes(), b"\0"].concat();
        let (requests, messages) = channel();
        let (answer, attached) = sync_channel(1);
        let (alive, end) = channel::<()>();
        let sender = requests.clone();
        let work = move || {
            // Dropped with the thread, after the claim: who waits for that may attach again.
            let _alive = alive;
            let claim = claim;
            let refuse = |claim: Claim, error: Error| {
                drop(claim);
                let _ = answer.send(Err(error));
            };
            let seized = Listener::seize(Process::new(pid), ready.listener, sender, messages);
            let mut listener = match seized {
                Ok(listener) => listener,
                Err(error) => return refuse(claim, error),
            };
            match attach(&mut listener, pid, &ready, &block, &tool) {
                Ok(memory) => {
                    let _ = answer.send(Ok(()));
                    serve(listener, pid, &ready, memory);
                }
                Err(error) => {
                    // The process may have ended.
                    let _ = listener.let_go();
                    refuse(claim, error);
                }
            }
        };
        std::thread::Builder::new()
            .name("rpd-attach".to_owned())
            .spawn(work)
            .map_err(|error| {
                Error::new(
                    Status::Error,
                    format!("process {pid}: no thread that traces it: {error}"),
                )
            })?;
        attached.recv().map_err(|_| {
            Error::new(
                Status::PtraceError,
                format!("process {pid}: the thread that traces it ended"),
            )
        })??;
        Ok(Session { pid, requests, end })
    }

    /// The process.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Waits until the process ends, at most for this time; whether it has ended, or is about to.
    pub fn wait_for_end(&self, limit: Duration) -> bool {
        self.end.recv_timeout(limit) == Err(RecvTimeoutError::Disconnected)
    }

    /// Detaches the tool: it writes what it has and records no more. Returns when it has done so.
    ///
    /// # Errors
    /// One line that names the process: it has ended, or refused.
    pub fn detach(self) -> Result<(), Error> {
        let gone = || {
            let text = format!("process {} has ended", self.pid);
            Error::new(Status::ProcessNotFound, text)
        };
        let (answer, detached) = sync_channel(1);
        let request = Message::Request(Request::Detach(answer));
        self.requests.send(request).map_err(|_| gone())?;
        let result = detached.recv().map_err(|_| gone())?;
        // Until the claim is given back.
        let _ = self.end.recv();
        result
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The thread may have ended.
        let _ = self.requests.send(Message::Request(Request::LetGo));
    }
}

/// Has the listener call the registration library's function with the variables and the tool.
fn attach(
    listener: &mut Listener<Request>,
    pid: i32,
    ready: &Ready,
    block: &[u8],
    tool: &[u8],
) -> Result<Memory, Error> {
    let len = RESULT + block.len() + tool.len();
    let memory = Memory {
        place: listener.map(len)?,
        len,
    };
    let variables = memory.place + RESULT as u64;
    let name = variables + block.len() as u64;
    listener.write(variables, block)?;
    listener.write(name, tool)?;
    let code = listener.call(ready.attach, [variables, name], memory.place)?;
    let attached = succeeded(pid, "attach", code);
    if attached.is_err() {
        listener.unmap(memory.place, len)?;
    }
    attached.map(|()| memory)
}

/// Memory in the process that a session needs: the place of results, then variables and the tool's name.
#[derive(Debug, Clone, Copy)]
struct Memory {
    place: u64,
    len: usize,
}

fn detach(
    listener: &mut Listener<Request>,
    pid: i32,
    ready: &Ready,
    memory: Memory,
) -> Result<(), Error> {
    let code = listener.call(ready.detach, [0, 0], memory.place)?;
    listener.unmap(memory.place, memory.len)?;
    succeeded(pid, "detach", code)
}

fn succeeded(pid: i32, what: &str, code: i32) -> Result<(), Error> {
    match code {
        0 => Ok(()),
        code => Err(Error::new(
            Status::Error,
            format!(
                "process {pid}: its registration library refused to {what}: {} (code {code})",
                registration_code(code)
            ),
        )),
    }
}

/// Carries out requests until the session or the process ends.
fn serve(mut listener: Listener<Request>, pid: i32, ready: &Ready, memory: Memory) {
    match listener.request() {
        Ok(Request::Detach(answer)) => {
            let result = detach(&mut listener, pid, ready, memory);
            // A process that has ended needs nothing more.
            let _ = listener.let_go();
            let _ = answer.send(result);
        }
        Ok(Request::LetGo) => {
            // The memory goes back as well, unless the process has ended.
            let _ = listener.unmap(memory.place, memory.len);
            let _ = listener.let_go();
        }
        // The process has ended.
        Err(_) => {}
    }
}

/// A tree of processes that a tool is attached to.
#[derive(Debug)]
pub struct Tree {
    /// The processes that were attached, the root first if it was.
    pub sessions: Vec<Session>,
    /// Processes that could not be attached, and why.
    pub skipped: Vec<(i32, Error)>,
}

impl Tree {
    /// Attaches the tool to a process and all that descend from it now, as [`Session::attach`] does. Those that are not
    /// prepared are skipped; processes that begin later are not attached.
    ///
    /// # Errors
    /// The failure for the root when no process could be attached.
    pub fn attach(pid: i32, tool: &Path, environment: &Environment) -> Result<Tree, Error> {
        let mut tree = Tree {
            sessions: Vec::new(),
            skipped: Vec::new(),
        };
        for pid in [pid].into_iter().chain(descendants(pid)) {
            match Session::attach(pid, tool, environment) {
                Ok(session) => tree.sessions.push(session),
                Err(error) => tree.skipped.push((pid, error)),
            }
        }
        if tree.sessions.is_empty() {
            return Err(tree.skipped.swap_remove(0).1);
        }
        Ok(tree)
    }

    /// Detaches the tool from all processes; what failed, for each process.
    pub fn detach(self) -> Vec<(i32, Error)> {
        let detach = |session: Session| {
            let pid = session.pid();
            session.detach().err().map(|error| (pid, error))
        };
        self.sessions.into_iter().filter_map(detach).collect()
    }
}
