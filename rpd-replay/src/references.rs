//! Texture references: variables of the program's code, to which it binds memory and arrays.
//!
//! What the program has set of a reference is in its struct, which the capture has of each call that binds something. A replay has
//! the code as modules, and binds to their references.

use std::ffi::CString;

use rpd_capture::Call;
use rpd_spool::capture::element::format_of_channels;
use rpd_spool::capture::structs::texture_reference::{CHANNELS, OBJECT};
use rpd_spool::capture::{HandleKind, Operation, Role, item, number as n};

use crate::arguments::{set_word, word};
use crate::error::ReplayError;
use crate::hip::word_of;
use crate::images::Image;
use crate::player::Player;

/// Size of `textureReference` in bytes.
const REFERENCE: usize = 88;

impl Player {
    /// Binds memory or an array to a texture reference, or takes it away.
    pub(crate) fn reference(
        &mut self,
        call: &Call,
        operation: &'static Operation,
    ) -> Result<(), ReplayError> {
        let position = position_of(operation, |role| role == Role::TextureReference);
        let found = |kind: u16, position: Option<usize>| {
            let mut items = call.items();
            let item = items
                .find(|item| item.kind == kind && Some(usize::from(item.argument)) == position)?;
            Some(item.payload)
        };
        let missing = |what: &str| ReplayError::damaged(format!("{what} is not in the capture"));
        let given = found(item::IN, position).and_then(|bytes| bytes.first_chunk());
        let mut given: [u8; REFERENCE] = *given.ok_or_else(|| missing("the texture reference"))?;
        // The reference is bound anew: the object before it is gone, whatever comes of the call.
        self.images.remove(&word(&given, OBJECT / 8));
        let at = self.place_of_reference(call)?;
        if call.api == n::hipUnbindTexture {
            return self.hip.check("hipUnbindTexture", &[at]);
        }
        // Functions with a description set the reference's format by it.
        let description = found(
            item::IN,
            position_of(operation, |role| matches!(role, Role::Struct(_))),
        );
        if let (Some(channels), n::hipBindTexture | n::hipBindTexture2D) = (description, call.api) {
            let parts = channels.as_chunks::<4>().0.iter();
            let parts: Vec<u32> = parts.map(|part| u32::from_le_bytes(*part)).collect();
            let parts = parts.try_into().map_err(|_| missing("desc"))?;
            let (format, count) = format_of_channels(parts);
            set_word(
                &mut given,
                CHANNELS / 8,
                u64::from(count) | u64::from(format) << 32,
            );
        }
        // SAFETY: the runtime's struct of this size; the object in it is the runtime's.
        unsafe {
            let to = at as *mut u8;
            std::ptr::copy_nonoverlapping(given.as_ptr(), to, OBJECT);
            let rest = OBJECT + 8;
            std::ptr::copy_nonoverlapping(given[rest..].as_ptr(), to.add(rest), REFERENCE - rest);
        }
        let (memory, array) = self.bind(call, operation, at, &given, description)?;
        // SAFETY: as above.
        let now = unsafe { (at as *const u8).add(OBJECT).cast::<u64>().read_unaligned() };
        // The runtime makes a texture object of the binding, whose value kernels get.
        let old = found(item::OUT, position).map_or(0, |object| word(object, 0));
        let image = Image {
            kind: HandleKind::Texture,
            now,
            memory,
            array,
        };
        self.images.insert(old, image);
        Ok(())
    }

    /// Binds with the functions for references of modules. Address of the memory, or handle of the array, in the capture.
    fn bind(
        &mut self,
        call: &Call,
        operation: &Operation,
        at: u64,
        given: &[u8],
        description: Option<&[u8]>,
    ) -> Result<(u64, u64), ReplayError> {
        let mut offset = 0u64;
        if matches!(call.api, n::hipBindTextureToArray | n::hipTexRefSetArray) {
            const OVERRIDE_FORMAT: u64 = 1;
            let raw = call.argument("array");
            let array = self.handle(HandleKind::Array, raw)?;
            let words = [at, array, OVERRIDE_FORMAT];
            return self
                .hip
                .check("hipTexRefSetArray", &words)
                .map(|()| (0, raw));
        }
        let memory = operation
            .with_role(Role::Address)
            .map_or(0, |argument| argument.value(&call.arguments));
        let now = self.address(call, memory)?;
        match call.api {
            n::hipBindTexture | n::hipTexRefSetAddress => {
                let size = call.argument("size") | call.argument("bytes");
                let words = [word_of(&mut offset), at, now, size];
                self.hip.check("hipTexRefSetAddress", &words)?;
            }
            n::hipBindTexture2D => {
                // `HIP_ARRAY_DESCRIPTOR`: width, height, format, number of channels.
                let format = word(given, CHANNELS / 8).rotate_left(32);
                let descriptor = [call.argument("width"), call.argument("height"), format];
                let words = [at, descriptor.as_ptr() as u64, now, call.argument("pitch")];
                self.hip.check("hipTexRefSetAddress2D", &words)?;
            }
            _ => {
                let descriptor = description
                    .ok_or_else(|| ReplayError::damaged("desc is not in the capture"))?
                    .to_vec();
                let words = [at, descriptor.as_ptr() as u64, now, call.argument("Pitch")];
                self.hip.check("hipTexRefSetAddress2D", &words)?;
            }
        }
        Ok((memory, 0))
    }

    /// Address of the reference of a call, in the module that has it here.
    fn place_of_reference(&mut self, call: &Call) -> Result<u64, ReplayError> {
        let name = call.items().find(|item| item.kind == item::SYMBOL);
        let name = name.and_then(|item| CString::new(item.payload).ok());
        let Some(name) = name else {
            return Err(ReplayError::damaged(
                "the name of the texture reference is not in the capture",
            ));
        };
        let module = self.module_of_symbol(call, &name)?;
        let mut at = 0u64;
        let words = [word_of(&mut at), module, name.as_ptr() as u64];
        self.hip.check("hipModuleGetTexRef", &words)?;
        Ok(at)
    }
}

fn position_of(operation: &Operation, wanted: impl Fn(Role) -> bool) -> Option<usize> {
    let mut arguments = operation.arguments().iter();
    arguments.position(|argument| wanted(argument.role))
}
