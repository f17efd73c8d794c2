//! Recording of events into the spool: the layer below every provider. It depends on no provider's ABI.
//!
//! A provider describes what happens in the words of [`call`], [`markers`], [`device_work`] and [`meta`]; they write it
//! into the spool streams of the process and its threads.
//!
//! | module | subject |
//! |---|---|
//! | `call` | start and end of a recorded call |
//! | `frames` | the calls that a thread is in, and ids for them |
//! | `markers` | ROCTx marks, ranges and names of resources |
//! | `device_work` | dispatches, copies, allocations, scratch memory |
//! | `bounded` | sums of dispatches and copies, and the latest of them, for light recordings |
//! | `removed` | sums of the records that go to keep the bound of a recording |
//! | `stacks` | call stacks: which calls have one, and what stacks refer to |
//! | `samples`, `thread_traces`, `code` | PC samples; streams of shader engines; the bytes of code objects |
//! | `meta` | records of the meta stream; notes for the user |
//! | `thread` | the stream of a thread, and the HIP streams and regions that it is in |
//! | `thread_local` | variables of the calling thread, for what each call needs |
//! | `streams` | numbers of HIP streams |
//! | `graphs` | numbers of executable graphs; launches that a thread is in |
//! | `regions` | numbers of the messages that rename kernels |
//! | `switch` | when recording is on: pause and resume, selected regions, collection periods |
//! | `kernel_selection` | which dispatches are counted |
//! | `capture` | captures of GPU calls with their data |
//! | `kinds` | names and numbers of kinds and operations |
//! | `arguments` | the arguments of a call |
//! | `process`, `process_record`, `totals` | the process: directory, meta stream, first record, sums |
//! | `fork` | what modules do around a fork |
//! | `background`, `futex` | threads of the collector; what they sleep on |
//! | `spares` | the thread that makes segments before streams need them |
//! | `setting` | values that are set for each recording |
//! | `guard` | panics do not unwind into foreign code |
//! | `text` | texts of the target |

pub(crate) mod arguments;
pub(crate) mod background;
mod bounded;
pub(crate) mod call;
pub(crate) mod capture;
mod child_note;
pub(crate) mod code;
mod control;
pub(crate) mod device_work;
pub(crate) mod fork;
pub(crate) mod frames;
pub(crate) mod futex;
pub(crate) mod graphs;
pub(crate) mod guard;
pub(crate) mod kernel_selection;
pub(crate) mod kinds;
pub(crate) mod markers;
pub(crate) mod meta;
pub(crate) mod process;
mod process_record;
pub(crate) mod python_files;
pub(crate) mod regions;
mod removed;
pub(crate) mod replays;
pub(crate) mod samples;
pub(crate) mod setting;
mod spares;
pub(crate) mod stacks;
pub(crate) mod streams;
pub(crate) mod switch;
pub(crate) mod text;
pub(crate) mod thread;
pub(crate) mod thread_local;
pub(crate) mod thread_traces;
mod totals;
