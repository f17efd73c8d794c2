//! In the place of the module `remote` on other machines: no listener can be seized there.

use std::sync::mpsc::{Receiver, Sender};

use crate::process::Process;
use crate::status::{Error, Status};

/// What the thread that traces receives.
#[derive(Debug)]
pub(crate) enum Message<R> {
    /// A request of the session.
    Request(R),
}

/// No value of this type exists.
#[derive(Debug)]
pub(crate) struct Listener<R> {
    never: std::convert::Infallible,
    requests: std::marker::PhantomData<R>,
}

impl<R> Listener<R> {
    pub(crate) fn seize(
        _process: Process,
        _thread: i32,
        _sender: Sender<Message<R>>,
        _messages: Receiver<Message<R>>,
    ) -> Result<Listener<R>, Error> {
        let text = "programs can be attached to on Linux on x86-64 only";
        Err(Error::new(Status::NotSupported, text))
    }

    pub(crate) fn request(&mut self) -> Result<R, Error> {
        match self.never {}
    }

    pub(crate) fn map(&mut self, _len: usize) -> Result<u64, Error> {
        match self.never {}
    }

    pub(crate) fn unmap(&mut self, _address: u64, _len: usize) -> Result<(), Error> {
        match self.never {}
    }

    pub(crate) fn write(&self, _address: u64, _bytes: &[u8]) -> Result<(), Error> {
        match self.never {}
    }

    pub(crate) fn call(
        &mut self,
        _function: u64,
        _arguments: [u64; 2],
        _place: u64,
    ) -> Result<i32, Error> {
        match self.never {}
    }

    pub(crate) fn let_go(self) -> Result<(), Error> {
        match self.never {}
    }
}
