//! What rpd does while a program runs for long: outputs of pieces, and a look at the disk.

mod disk;
mod rotation;

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use rpd_core::options::Options;

use crate::run_directory::RunDirectory;
use disk::DiskWatch;
pub(crate) use disk::size;
pub(crate) use rotation::Pieces;

/// Interval at which the disk and the size of the recording are looked at. A recording grows by 20 MB meanwhile at most.
const STEP: Duration = Duration::from_millis(100);

/// The threads that work while the program runs.
pub(crate) struct Keeper<'scope> {
    /// Dropped to end the threads.
    stop: Vec<Sender<()>>,
    disk: Option<ScopedJoinHandle<'scope, ()>>,
    pieces: Option<ScopedJoinHandle<'scope, Pieces>>,
}

impl<'scope> Keeper<'scope> {
    /// Starts the threads. Where the system has no more of them, a line says what is not done.
    pub(crate) fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        run: &'env RunDirectory,
        options: &'env Options,
    ) -> Keeper<'scope> {
        let mut stop = Vec::new();
        let mut stopped = || {
            let (sender, receiver) = mpsc::channel();
            stop.push(sender);
            receiver
        };
        let watched = stopped();
        let watch = move || {
            let mut disk = DiskWatch::new(run.path());
            while watched.recv_timeout(STEP) == Err(RecvTimeoutError::Timeout) {
                disk.look();
            }
        };
        let disk = Builder::new().spawn_scoped(scope, watch).ok();
        let pieces = options.rotate.and_then(|every| {
            let stopped = stopped();
            let work = move || {
                let mut pieces = Pieces::new(every);
                while stopped.recv_timeout(STEP) == Err(RecvTimeoutError::Timeout) {
                    pieces.make_if_due(run, options);
                }
                pieces
            };
            let started = Builder::new().spawn_scoped(scope, work);
            if let Err(error) = &started {
                eprintln!("rpd: --rotate: one piece is made, at the end: no thread can be started: {error}");
            }
            started.ok()
        });
        Keeper { stop, disk, pieces }
    }

    /// Ends the threads when what they are doing is done. Returns the pieces so far, where some were requested.
    pub(crate) fn stop(self, options: &Options) -> Option<Pieces> {
        drop(self.stop);
        if let Some(disk) = self.disk {
            // It only prints a line, so that its panic has no consequence.
            let _ = disk.join();
        }
        let every = options.rotate?;
        let made = self.pieces.and_then(|thread| thread.join().ok());
        Some(made.unwrap_or_else(|| Pieces::new(every)))
    }
}
