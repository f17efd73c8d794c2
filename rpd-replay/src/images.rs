//! Arrays, textures and surfaces.

use std::collections::HashMap;

use rpd_capture::Call;
use rpd_spool::capture::{HandleKind, Operation, Role, number as n};

use crate::arguments::{input, out_word, set_word, word};
use crate::error::{ReplayError, Status};
use crate::hip::{Extent, SUCCESS};
use crate::player::Player;

/// A texture or surface that kernels get as an argument.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Image {
    pub(crate) kind: HandleKind,
    /// Value of the texture or surface in the replay.
    pub(crate) now: u64,
    /// Address in the capture of the memory that it reads; 0 where that is an array.
    pub(crate) memory: u64,
    /// Handle in the capture of the array that it reads; 0 where that is memory.
    pub(crate) array: u64,
}

/// `hipResourceType`, the first word of a resource's description. Array or address follow it.
mod resource {
    pub(super) const ARRAY: u32 = 0;
    pub(super) const LINEAR: u32 = 2;
    pub(super) const PITCH_2D: u32 = 3;
}

impl Player {
    /// Makes a call about an array, texture or surface.
    pub(crate) fn image(
        &mut self,
        call: &Call,
        operation: &'static Operation,
    ) -> Result<(), ReplayError> {
        if operation.with_role(Role::TextureReference).is_some() {
            return self.reference(call, operation);
        }
        // Removed before the call: the program may get the same value for the next object.
        match call.api {
            n::hipMalloc3DArray => return self.array_3d(call, operation),
            n::hipDestroyTextureObject => {
                self.images.remove(&call.argument("textureObject"));
            }
            n::hipTexObjectDestroy => {
                self.images.remove(&call.argument("texObject"));
            }
            n::hipDestroySurfaceObject => {
                self.images.remove(&call.argument("surfaceObject"));
            }
            _ => {}
        }
        self.generic(call, operation)?;
        self.note_array(call, operation);
        let kind = match call.api {
            n::hipCreateTextureObject | n::hipTexObjectCreate => HandleKind::Texture,
            n::hipCreateSurfaceObject => HandleKind::Surface,
            _ => return Ok(()),
        };
        // Kernels get textures by value, so that the memory behind them is found by it.
        if let Some(old) = out_word(call, 0) {
            let resource = input(call).unwrap_or_default();
            let place = word(resource, 1);
            let (memory, array) = match word(resource, 0) as u32 {
                resource::ARRAY => (0, place),
                resource::LINEAR | resource::PITCH_2D => (place, 0),
                _ => (0, 0),
            };
            let now = self.handle(kind, old)?;
            let image = Image {
                kind,
                now,
                memory,
                array,
            };
            self.images.insert(old, image);
        }
        Ok(())
    }

    /// Replaces the words of `bytes` that are textures or surfaces by those of the replay.
    pub(crate) fn translate_images(&mut self, bytes: &mut [u8]) {
        if self.images.is_empty() {
            return;
        }
        for word in bytes.as_chunks_mut::<8>().0 {
            if let Some(image) = self.images.get(&u64::from_le_bytes(*word)) {
                *word = image.now.to_le_bytes();
                self.translation.probable += 1;
            }
        }
    }

    /// Replaces the words of `bytes` that are textures or surfaces of the replay by those of the capture.
    pub(crate) fn restore_images(&self, bytes: &mut [u8]) {
        if self.images.is_empty() || !self.options.guess {
            return;
        }
        let captured: HashMap<u64, u64> = self
            .images
            .iter()
            .map(|(old, image)| (image.now, *old))
            .collect();
        for word in bytes.as_chunks_mut::<8>().0 {
            if let Some(old) = captured.get(&u64::from_le_bytes(*word)) {
                *word = old.to_le_bytes();
            }
        }
    }

    fn array_3d(&mut self, call: &Call, operation: &Operation) -> Result<(), ReplayError> {
        let extent = operation
            .argument("extent")
            .map_or(0, |argument| usize::from(argument.offset));
        let bytes = call.arguments.get(extent..).unwrap_or_default();
        let extent = Extent([0, 1, 2].map(|index| word(bytes, index)));
        let channels = input(call).and_then(|channels| <[u8; 20]>::try_from(channels).ok());
        let Some(channels) = channels else {
            return Err(ReplayError::damaged("desc is not in the capture"));
        };
        let flags = call.argument("flags") as u32;
        let (error, made) = self.hip.malloc_3d_array(&channels, extent, flags)?;
        if error != SUCCESS {
            let text = self.hip.error_name(error);
            return Err(ReplayError::new(Status::Api, format!("returned {text}")));
        }
        if let Some(old) = out_word(call, 0) {
            self.handles.insert((HandleKind::Array, old), made);
        }
        self.note_array(call, operation);
        Ok(())
    }

    /// Puts the array or address of the replay into the description of a resource.
    pub(crate) fn translate_resource(&self, bytes: &mut [u8]) -> Result<(), ReplayError> {
        let old = word(bytes, 1);
        let now = match word(bytes, 0) as u32 {
            resource::ARRAY => self.handle(HandleKind::Array, old)?,
            resource::LINEAR | resource::PITCH_2D => {
                self.translation.find(old).ok_or_else(|| {
                    ReplayError::damaged(format!(
                        "the capture has no memory at {old:#x}, which a texture reads"
                    ))
                })?
            }
            kind => {
                return Err(ReplayError::new(
                    Status::Unsupported,
                    format!("resources of type {kind} cannot be replayed"),
                ));
            }
        };
        set_word(bytes, 1, now);
        Ok(())
    }
}
