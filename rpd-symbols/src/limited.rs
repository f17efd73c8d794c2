//! Looking addresses up within a limited time, on its own thread.

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::look_up::Symbols;
use crate::native::Symbolizer;
use crate::search::Search;
use crate::{Frame, Module, NoFile};

/// Addresses that are sent to the thread together. The answers that arrive in time are used.
const PORTION: usize = 256;

/// Looks up addresses as a [`Symbolizer`] does, within a limit of time. Addresses after that get no answer, and the
/// thread that is still looking one up ends with the process.
#[derive(Debug)]
pub struct Limited {
    left: Duration,
    worker: Option<Worker>,
    prepare: fn(),
    problems: HashMap<Module, NoFile>,
}

#[derive(Debug)]
struct Worker {
    questions: Sender<(Module, Vec<u64>)>,
    answers: Receiver<(Vec<Vec<Frame>>, Option<NoFile>)>,
    thread: JoinHandle<()>,
}

impl Limited {
    /// Looks up for at most `time` in all. `prepare` is called first on the thread that does.
    pub fn new(time: Duration, prepare: fn()) -> Limited {
        Limited {
            left: time,
            worker: None,
            prepare,
            problems: HashMap::new(),
        }
    }

    fn start(&self) -> Option<Worker> {
        let (questions, asked) = channel::<(Module, Vec<u64>)>();
        let (answer, answers) = channel();
        let prepare = self.prepare;
        let work = move || {
            prepare();
            let mut symbolizer = Symbolizer::new(Search::default());
            for (module, addresses) in asked {
                let frames = symbolizer.frames(&module, &addresses);
                if answer.send((frames, symbolizer.problem(&module))).is_err() {
                    break;
                }
            }
        };
        let thread = std::thread::Builder::new().name("symbols".to_owned());
        Some(Worker {
            questions,
            answers,
            thread: thread.spawn(work).ok()?,
        })
    }

    /// Looks up a part of the addresses of a module; `None` when the time is used up.
    fn request(&mut self, module: &Module, addresses: &[u64]) -> Option<Vec<Vec<Frame>>> {
        // Once the time is used up no request starts, so that the rest of the modules is left out at once.
        if self.left.is_zero() {
            return None;
        }
        let began = Instant::now();
        if self.worker.is_none() {
            self.worker = self.start();
        }
        let worker = self.worker.as_ref()?;
        let asked = worker.questions.send((module.clone(), addresses.to_vec()));
        let answer = match asked {
            Ok(()) => worker.answers.recv_timeout(self.left),
            Err(_) => Err(RecvTimeoutError::Disconnected),
        };
        match answer {
            Ok((frames, problem)) => {
                self.left = self.left.saturating_sub(began.elapsed());
                if let Some(problem) = problem {
                    self.problems.insert(module.clone(), problem);
                }
                Some(frames)
            }
            Err(RecvTimeoutError::Timeout) => {
                self.left = Duration::ZERO;
                None
            }
            // The thread does not end by itself while requests may come.
            Err(RecvTimeoutError::Disconnected) => {
                self.left = Duration::ZERO;
                let ended = self.worker.take()?.thread.join();
                match ended {
                    Ok(()) => None,
                    Err(panic) => resume_unwind(panic),
                }
            }
        }
    }
}

impl Symbols for Limited {
    fn frames(&mut self, module: &Module, addresses: &[u64]) -> Vec<Option<Vec<Frame>>> {
        let mut found = Vec::with_capacity(addresses.len());
        for portion in addresses.chunks(PORTION) {
            match self.request(module, portion) {
                Some(frames) => found.extend(frames.into_iter().map(Some)),
                None => found.extend(portion.iter().map(|_| None)),
            }
        }
        found
    }

    fn problem(&self, module: &Module) -> Option<NoFile> {
        self.problems.get(module).copied()
    }
}
