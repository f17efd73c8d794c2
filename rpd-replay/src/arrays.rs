//! The content of arrays: taken, put back and compared. Kernels change it through surfaces.

use rpd_capture::Call;
use rpd_spool::capture::element::{bytes_of_channels, bytes_of_format};
use rpd_spool::capture::{HandleKind, Operation, number as n};

use crate::arguments::{input, out_word, word};
use crate::error::ReplayError;
use crate::hip::word_of;
use crate::player::Player;

/// An array of the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Array {
    /// Elements of a row, rows and slices, each at least 1.
    extent: [u64; 3],
    /// Bytes of an element.
    element: u64,
    /// Device of the array in the capture.
    device: i32,
}

impl Array {
    fn bytes(&self) -> u64 {
        let elements = self
            .extent
            .iter()
            .fold(1, |sum: u64, one| sum.saturating_mul(*one));
        elements.saturating_mul(self.element)
    }

    /// The array that a successful call has made, if it makes one.
    fn made(call: &Call, operation: &Operation) -> Option<Array> {
        // The sizes in structs follow one another as words, and so do those of an extent among the arguments.
        let described = |count: usize| {
            let bytes = input(call)?;
            let extent = [0, 1, 2].map(|index| if index < count { word(bytes, index) } else { 1 });
            let format = word(bytes, count);
            Some((extent, bytes_of_format(format as u32) * (format >> 32)))
        };
        let channels = || {
            let parts = input(call)?.as_chunks::<4>().0.iter();
            let parts: Vec<u32> = parts.map(|part| u32::from_le_bytes(*part)).collect();
            Some(bytes_of_channels(parts.try_into().ok()?))
        };
        let (extent, element) = match call.api {
            n::hipMallocArray => (
                [call.argument("width"), call.argument("height"), 1],
                channels()?,
            ),
            n::hipMalloc3DArray => {
                let at = usize::from(operation.argument("extent")?.offset);
                let bytes = call.arguments.get(at..)?;
                ([0, 1, 2].map(|index| word(bytes, index)), channels()?)
            }
            n::hipArrayCreate => described(2)?,
            n::hipArray3DCreate => described(3)?,
            _ => return None,
        };
        Some(Array {
            extent: extent.map(|one| one.max(1)),
            element,
            device: call.device,
        })
    }
}

/// A copy of an array.
pub(crate) struct SavedArray {
    /// Handle of the array in the capture.
    pub(crate) handle: u64,
    pub(crate) array: Array,
    content: Vec<u8>,
    /// Whether a call has written to the array since its content was saved.
    pub(crate) written: bool,
}

impl SavedArray {
    /// Size of the array's content in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.content.len() as u64
    }
}

impl Player {
    /// Notes the array that a call has made or freed.
    pub(crate) fn note_array(&mut self, call: &Call, operation: &Operation) {
        match call.api {
            n::hipFreeArray | n::hipArrayDestroy => {
                self.arrays.remove(&call.argument("array"));
            }
            _ => {
                if let (Some(handle), Some(array)) =
                    (out_word(call, 0), Array::made(call, operation))
                {
                    self.arrays.insert(handle, array);
                }
            }
        }
    }

    /// The content of an array, by its handle in the capture: rows without gaps. All work is complete.
    pub(crate) fn array_content(&mut self, handle: u64) -> Result<Vec<u8>, ReplayError> {
        let array = self.array(handle)?;
        let mut content = vec![0u8; array.bytes() as usize];
        self.copy_array(handle, array, content.as_mut_ptr() as u64, false)?;
        Ok(content)
    }

    /// Sets the content of an array. All work is complete.
    pub(crate) fn set_array(&mut self, handle: u64, content: &[u8]) -> Result<(), ReplayError> {
        let array = self.array(handle)?;
        if content.len() as u64 != array.bytes() {
            return Err(ReplayError::damaged(format!(
                "the array {handle:#x} has {} bytes, and its content {}",
                array.bytes(),
                content.len()
            )));
        }
        self.copy_array(handle, array, content.as_ptr() as u64, true)
    }

    fn array(&self, handle: u64) -> Result<Array, ReplayError> {
        self.arrays
            .get(&handle)
            .copied()
            .ok_or_else(|| ReplayError::damaged(format!("the capture has no array {handle:#x}")))
    }

    /// Copies an array from or to host memory.
    fn copy_array(
        &mut self,
        handle: u64,
        array: Array,
        host: u64,
        to_array: bool,
    ) -> Result<(), ReplayError> {
        const TO_DEVICE: u64 = 1;
        const TO_HOST: u64 = 2;
        let now = self.handle(HandleKind::Array, handle)?;
        let [width, height, depth] = array.extent;
        // `hipMemcpy3DParms`: on each side an array, a position and pitched memory; then the extent and the kind.
        let mut parameters = [0u64; 20];
        let (memory, other) = if to_array { (4, 8) } else { (12, 0) };
        parameters[memory..memory + 4].copy_from_slice(&[
            host,
            width * array.element,
            width,
            height,
        ]);
        parameters[other] = now;
        parameters[16..19].copy_from_slice(&[width, height, depth]);
        parameters[19] = if to_array { TO_DEVICE } else { TO_HOST };
        let device = self.device;
        if device != array.device {
            self.set_device(array.device)?;
        }
        self.copy_3d(word_of(&mut parameters))?;
        if device == array.device {
            Ok(())
        } else {
            self.set_device(device)
        }
    }

    /// Copies the content of all arrays.
    pub(crate) fn save_arrays(&mut self) -> Result<Vec<SavedArray>, ReplayError> {
        let handles: Vec<u64> = self.arrays.keys().copied().collect();
        let mut saved = Vec::new();
        for handle in handles {
            saved.push(SavedArray {
                handle,
                array: self.array(handle)?,
                content: self.array_content(handle)?,
                written: false,
            });
        }
        Ok(saved)
    }

    /// Finds which arrays differ from their copies.
    pub(crate) fn find_written_arrays(
        &mut self,
        saved: &mut [SavedArray],
    ) -> Result<(), ReplayError> {
        for one in saved {
            one.written = self.array_content(one.handle)? != one.content;
        }
        Ok(())
    }

    /// Restores the content of arrays that were written, or of all.
    pub(crate) fn restore_arrays(
        &mut self,
        saved: &[SavedArray],
        all: bool,
    ) -> Result<(), ReplayError> {
        for one in saved.iter().filter(|one| all || one.written) {
            self.set_array(one.handle, &one.content)?;
        }
        Ok(())
    }
}
