//! Captures of streams as graphs, and what a replay does by itself while they are under way.
//!
//! A replay makes the calls of all threads in one. While a stream captures in that thread, HIP permits what other threads of the
//! program did meanwhile only in the relaxed mode, so that all captures begin in it. In no mode does it permit to wait for a whole
//! device, or to copy synchronously: these end the capture with an error.

use rpd_capture::Call;
use rpd_spool::capture::{HandleKind, Operation, number as n};

use crate::error::ReplayError;
use crate::hip::word_of;
use crate::player::Player;

/// Value `hipStreamCaptureModeRelaxed`.
const RELAXED: u64 = 2;
/// Value `hipStreamNonBlocking`.
const NON_BLOCKING: u64 = 1;
/// Value `hipMemcpyDefault`.
const BY_ADDRESS: u64 = 4;
/// `hipErrorStreamCaptureInvalidated` and `hipErrorStreamCaptureUnjoined`: the capture is over, and there is no graph.
const ENDED_WITHOUT_GRAPH: [i32; 2] = [901, 904];

/// The mode in which a call begins a capture in a replay; `None` for other calls.
pub(crate) fn mode(call: &Call) -> Option<u64> {
    match call.api {
        n::hipStreamBeginCapture
        | n::hipStreamBeginCapture_spt
        | n::hipStreamBeginCaptureToGraph => Some(RELAXED),
        _ => None,
    }
}

impl Player {
    /// Follows which streams of the program are part of a capture, where all work is in one stream. To be called before
    /// the call is made.
    pub(crate) fn follow_serial(&mut self, call: &Call) {
        if self.options.serial && !self.stream_captures.is_empty() {
            self.serial_captures.follow(call);
        }
    }

    /// Begins or ends a capture of a stream.
    pub(crate) fn stream_capture(
        &mut self,
        call: &Call,
        operation: &'static Operation,
    ) -> Result<(), ReplayError> {
        if self.options.serial && mode(call).is_some() {
            let mut made = 0u64;
            self.hip.check(
                "hipStreamCreateWithFlags",
                &[word_of(&mut made), NON_BLOCKING],
            )?;
            self.serial_captures.begin(call, made);
        }
        let stream = self.stream(call, operation);
        if mode(call).is_none() {
            self.generic(call, operation)?;
            self.forget_capture(stream);
            return Ok(());
        }
        self.copy_stream()?;
        self.generic(call, operation)?;
        self.stream_captures.push(stream);
        Ok(())
    }

    /// Notes that a stream does not capture any more.
    pub(crate) fn forget_capture(&mut self, stream: u64) {
        self.stream_captures.retain(|known| *known != stream);
        self.serial_captures.end(stream);
    }

    /// A call failed in the program, and is not made: if it ended a capture nevertheless, that ends here as well.
    pub(crate) fn skip_failed(
        &mut self,
        call: &Call,
        operation: &'static Operation,
    ) -> Result<(), ReplayError> {
        let ends = matches!(
            call.api,
            n::hipStreamEndCapture | n::hipStreamEndCapture_spt
        );
        if !ends || !ENDED_WITHOUT_GRAPH.contains(&call.result) || self.stream_captures.is_empty() {
            return Ok(());
        }
        let stream = self.stream(call, operation);
        if !self.stream_captures.contains(&stream) {
            return Ok(());
        }
        let mut graph = 0u64;
        // Streams that were not joined are an error here too.
        self.hip
            .call("hipStreamEndCapture", &[stream, word_of(&mut graph)])?;
        self.forget_capture(stream);
        match graph {
            0 => Ok(()),
            graph => self.hip.check("hipGraphDestroy", &[graph]),
        }
    }

    /// Waits until all devices are idle.
    pub(crate) fn wait_for_all(&mut self) -> Result<(), ReplayError> {
        if self.stream_captures.is_empty() {
            self.hip.check("hipDeviceSynchronize", &[])?;
            self.host_uses.device_is_idle(self.device);
            return Ok(());
        }
        let handles = self.handles.iter();
        let handles = handles.filter(|((kind, _), _)| *kind == HandleKind::Stream);
        let mut streams: Vec<u64> = handles
            .map(|(_, stream)| *stream)
            .chain(self.thread_streams.values().copied())
            .collect();
        streams.sort_unstable();
        streams.dedup();
        for stream in streams {
            // Captures reach other streams through events.
            let mut status = 0u32;
            self.hip
                .check("hipStreamIsCapturing", &[stream, word_of(&mut status)])?;
            if status == 0 {
                self.hip.check("hipStreamSynchronize", &[stream])?;
            }
        }
        self.hip.check("hipStreamSynchronize", &[0])
    }

    /// Copies between any two places, and waits.
    pub(crate) fn copy(&mut self, to: u64, from: u64, size: u64) -> Result<(), ReplayError> {
        if self.stream_captures.is_empty() {
            return self.hip.check("hipMemcpy", &[to, from, size, BY_ADDRESS]);
        }
        self.copy_in_stream("hipMemcpyAsync", &[to, from, size, BY_ADDRESS])
    }

    /// As [`Player::copy`], with `hipMemcpy3DParms` at an address.
    pub(crate) fn copy_3d(&mut self, parameters: u64) -> Result<(), ReplayError> {
        if self.stream_captures.is_empty() {
            return self.hip.check("hipMemcpy3D", &[parameters]);
        }
        self.copy_in_stream("hipMemcpy3DAsync", &[parameters])
    }

    /// Copies as a synchronous copy does, in a stream that captures do not concern.
    fn copy_in_stream(&mut self, name: &'static str, words: &[u64]) -> Result<(), ReplayError> {
        self.hip.check("hipStreamSynchronize", &[0])?;
        let stream = self.copy_stream()?;
        let words: Vec<u64> = words.iter().copied().chain([stream]).collect();
        self.hip.check(name, &words)?;
        self.hip.check("hipStreamSynchronize", &[stream])
    }

    /// The stream of the current device in which the replay itself copies while other streams capture.
    fn copy_stream(&mut self) -> Result<u64, ReplayError> {
        if let Some(found) = self.copy_streams.get(&self.device) {
            return Ok(*found);
        }
        let mut made = 0u64;
        self.hip.check(
            "hipStreamCreateWithFlags",
            &[word_of(&mut made), NON_BLOCKING],
        )?;
        self.copy_streams.insert(self.device, made);
        Ok(made)
    }
}
