//! The runtime's own kernels: fills, copies within a device, and numbers that streams write and wait for.

use std::sync::Arc;

use crate::hip::copy::CopyOp;
use crate::hip::copy::fill::FillOp;
use crate::hip::device::Device;
use crate::hip::error::{HipResult, code};
use crate::hip::hsa;
use crate::hip::launch::{self, Geometry, GridPlace};
use crate::hip::module::function::{Function, Module};
use crate::hip::stream::Step;
use crate::hip::types::Dim3;

/// Compiled from `blit/blit.cl` by `blit/build.sh`, for each device.
static CODE_OBJECTS: [(&str, &[u8]); 2] = [
    ("gfx90a", include_bytes!("blit/blit-gfx90a.co")),
    ("gfx942", include_bytes!("blit/blit-gfx942.co")),
];

/// Work-items of a workgroup.
const GROUP: usize = 256;
/// Workgroups of a launch; larger ranges are walked in strides.
const MAX_GROUPS: usize = 4096;

/// The kernels as loaded for one device.
#[derive(Debug)]
pub(crate) struct Blit {
    fill: Arc<Function>,
    fill_2d: Arc<Function>,
    copy: Arc<Function>,
    copy_aligned: Arc<Function>,
    copy_rect: Arc<Function>,
    copy_rect_aligned: Arc<Function>,
    write: Arc<Function>,
    wait: Arc<Function>,
    wave_sync: Arc<Function>,
    // Kept last: the kernels live as long as it.
    _module: Arc<Module>,
}

/// Arguments in the order of the kernel's parameters, each at its own alignment.
#[derive(Default)]
struct Args(Vec<u8>);

impl Args {
    fn u64(mut self, value: usize) -> Self {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        self.0.extend_from_slice(&(value as u64).to_le_bytes());
        self
    }

    fn u32(mut self, value: u32) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }
}

fn groups(items: usize, rows: usize, slices: usize) -> HipResult<Geometry> {
    let wide = items.div_ceil(GROUP).clamp(1, MAX_GROUPS);
    let number = |n: usize| u32::try_from(n).map_err(|_| code::INVALID_VALUE);
    Ok(Geometry {
        grid: Dim3::new(number(wide)?, number(rows)?, number(slices)?),
        block: Dim3::new(GROUP as u32, 1, 1),
        shared: 0,
        cooperative: false,
    })
}

fn launch(
    step: &mut Step<'_>,
    function: &Arc<Function>,
    geometry: Geometry,
    args: Args,
) -> HipResult {
    launch::enqueue(step, function, &geometry, &args.0, GridPlace::default())
}

impl Blit {
    pub(crate) fn load(device: &'static Device) -> HipResult<Self> {
        // A copy on the heap: the loader then reports an object in memory, not a part of this library.
        const NAME: u32 = 0;
        let processor = hsa::agent_text(device.agent, NAME)?;
        let found = CODE_OBJECTS.iter().find(|(name, _)| *name == processor);
        let (_, bytes) = found.ok_or(code::NO_BINARY_FOR_GPU)?;
        let image: &'static [u8] = Box::leak(bytes.to_vec().into_boxed_slice());
        // SAFETY: the image is never freed.
        let module = Arc::new(unsafe { Module::load(device, image)? });
        let kernel = |name: &str| module.function(name);
        Ok(Self {
            fill: kernel("__amd_rocclr_fillBufferAligned")?,
            fill_2d: kernel("__amd_rocclr_fillBufferAligned2D")?,
            copy: kernel("__amd_rocclr_copyBuffer")?,
            copy_aligned: kernel("__amd_rocclr_copyBufferAligned")?,
            copy_rect: kernel("__amd_rocclr_copyBufferRect")?,
            copy_rect_aligned: kernel("__amd_rocclr_copyBufferRectAligned")?,
            write: kernel("__amd_rocclr_streamOpsWrite")?,
            wait: kernel("__amd_rocclr_streamOpsWait")?,
            wave_sync: kernel("__amd_rocclr_gwsInit")?,
            _module: module,
        })
    }

    pub(crate) fn fill(&self, step: &mut Step<'_>, op: &FillOp) -> HipResult {
        let items = op.width.div_ceil(16) + 1;
        if op.rows == 1 {
            let args = Args::default()
                .u64(op.dst)
                .u64(op.width)
                .u32(op.word(op.dst));
            return launch(step, &self.fill, groups(items, 1, 1)?, args);
        }
        // With a pitch that is not a multiple of four each row has the pattern turned differently, which
        // matters only for elements of more than a byte: those go row by row.
        if !op.pitch.is_multiple_of(4) && op.element != 1 {
            return (0..op.rows).try_for_each(|row| {
                let dst = op.dst + row * op.pitch;
                self.fill(
                    step,
                    &FillOp {
                        dst,
                        rows: 1,
                        ..*op
                    },
                )
            });
        }
        let args = Args::default()
            .u64(op.dst)
            .u64(op.pitch)
            .u64(op.width)
            .u64(op.rows)
            .u32(op.word(op.dst));
        launch(step, &self.fill_2d, groups(items, op.rows, 1)?, args)
    }

    pub(crate) fn copy(&self, step: &mut Step<'_>, op: &CopyOp) -> HipResult {
        let (dst, src) = (op.dst, op.src);
        let sixteen = |numbers: &[usize]| numbers.iter().all(|n| n % 16 == 0);
        if op.height == 1 && op.depth == 1 {
            let args = Args::default()
                .u64(dst.address)
                .u64(src.address)
                .u64(op.width);
            let (kernel, unit) = if sixteen(&[dst.address, src.address, op.width]) {
                (&self.copy_aligned, 16)
            } else {
                (&self.copy, 4)
            };
            return launch(step, kernel, groups(op.width.div_ceil(unit), 1, 1)?, args);
        }
        let args = Args::default()
            .u64(dst.address)
            .u64(dst.pitch)
            .u64(dst.slice)
            .u64(src.address)
            .u64(src.pitch)
            .u64(src.slice)
            .u64(op.width);
        let sides = [dst, src];
        let aligned = sixteen(&[op.width])
            && sides
                .iter()
                .all(|side| sixteen(&[side.address, side.pitch, side.slice]));
        let (kernel, unit) = if aligned {
            (&self.copy_rect_aligned, 16)
        } else {
            (&self.copy_rect, 4)
        };
        launch(
            step,
            kernel,
            groups(op.width.div_ceil(unit), op.height, op.depth)?,
            args,
        )
    }

    /// Sets the counter on which the workgroups of a cooperative launch, the next one in the stream, wait for each
    /// other.
    pub(crate) fn init_wave_sync(&self, step: &mut Step<'_>, value: u32) -> HipResult {
        launch(step, &self.wave_sync, ONE, Args::default().u32(value))
    }

    /// Writes a number of `size` bytes when the stream gets to this step.
    pub(crate) fn write(
        &self,
        step: &mut Step<'_>,
        address: usize,
        value: u64,
        size: u32,
    ) -> HipResult {
        let args = Args::default().u64(address).u64(value as usize).u32(size);
        launch(step, &self.write, ONE, args)
    }

    /// Holds the stream until a number in memory meets a condition of `hipStreamWaitValue`.
    pub(crate) fn wait(
        &self,
        step: &mut Step<'_>,
        address: usize,
        (value, mask): (u64, u64),
        condition: u32,
        size: u32,
    ) -> HipResult {
        let args = Args::default()
            .u64(address)
            .u64(value as usize)
            .u64(mask as usize)
            .u32(condition)
            .u32(size);
        launch(step, &self.wait, ONE, args)
    }
}

/// Geometry of one work-item.
const ONE: Geometry = Geometry {
    grid: Dim3 { x: 1, y: 1, z: 1 },
    block: Dim3 { x: 1, y: 1, z: 1 },
    shared: 0,
    cooperative: false,
};

#[cfg(test)]
mod tests {
    use super::*;
    use rpd_gfx::codeobj::CodeObject;
    use rpd_gfx::device::Device;

    #[test]
    fn every_device_has_blit_kernels() {
        for name in Device::simulated_names() {
            let found = CODE_OBJECTS.iter().find(|(known, _)| *known == name);
            let (_, bytes) = found.unwrap_or_else(|| panic!("{name}: no code object"));
            let object = CodeObject::parse(bytes).expect("a code object");
            assert_eq!(object.target().processor, name);
        }
    }
}
