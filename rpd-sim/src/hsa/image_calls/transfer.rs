//! Copies between images and memory, and filling of images. All of them are complete when the call returns.

use rpd_gfx::isa::image::{BufferView, Texel};

use crate::gpu::agents::Agent;
use crate::gpu::check;
use crate::gpu::copy::{Plane, Shape, transfer};
use crate::gpu::machine::machine;
use crate::hsa::image::ImageFormat;
use crate::hsa::image::format::order;
use crate::hsa::image_objects::ImageObject;
use crate::hsa::support::{Outcome, ensure};
use crate::hsa::types::{Dim3, status};

/// Checks that an agent may access all bytes of a shape on one side of a copy.
fn check_access(agent: &Agent, shape: &Shape, plane: &Plane) -> Outcome {
    let span = shape.span(plane).ok_or(status::ERROR_INVALID_ARGUMENT)?;
    let known = machine().memory.check(plane.first, span, agent.bit());
    known.map(drop).map_err(|_| status::ERROR_MEMORY_FAULT)
}

/// Texels in linear memory of the program, outside of images.
pub(super) struct LinearTexels {
    pub(super) address: usize,
    /// Bytes from one row to the next, and from one slice to the next; no less than a row and a slice of the region
    /// have.
    pub(super) pitches: [usize; 2],
}

/// Direction of a copy between an image and linear memory.
#[derive(Clone, Copy)]
pub(super) enum Direction {
    Import,
    Export,
}

impl LinearTexels {
    fn plane(&self, image: &ImageObject, range: Dim3) -> Plane {
        let texel = image.texel_bytes();
        let whole = |bytes: usize| bytes / texel * texel;
        let pitch = whole(self.pitches[0]).max(range.x as usize * texel);
        let slice = if image.has_layers_in_y() {
            pitch
        } else {
            whole(self.pitches[1]).max(pitch * range.y as usize)
        };
        Plane {
            first: self.address,
            pitch,
            slice,
        }
    }
}

fn shape(texel: usize, range: Dim3, dst: Plane, src: Plane) -> Shape {
    Shape {
        dst,
        src,
        width: range.x as usize * texel,
        rows: range.y as usize,
        slices: range.z as usize,
    }
}

fn run(agent: &Agent, shape: &Shape) -> Outcome {
    check_access(agent, shape, &shape.src)?;
    check_access(agent, shape, &shape.dst)?;
    // SAFETY: both sides were just found to be allocated over their whole span.
    unsafe { transfer(shape) };
    Ok(())
}

/// Copies between a region of an image and linear memory.
pub(super) fn exchange(
    direction: Direction,
    image: &ImageObject,
    memory: &LinearTexels,
    at: Dim3,
    range: Dim3,
) -> Outcome {
    let region = image.part(at, range)?;
    let linear = memory.plane(image, range);
    let (dst, src) = match direction {
        Direction::Import => (region, linear),
        Direction::Export => (linear, region),
    };
    run(image.agent, &shape(image.texel_bytes(), range, dst, src))
}

/// Copies a region of an image into another of the same format, or between sRGB and linear RGB.
pub(super) fn copy(
    src: &ImageObject,
    src_at: Dim3,
    dst: &ImageObject,
    dst_at: Dim3,
    range: Dim3,
) -> Outcome {
    ensure(
        src.agent.index == dst.agent.index,
        status::ERROR_INVALID_ARGUMENT,
    )?;
    let planes = (dst.part(dst_at, range)?, src.part(src_at, range)?);
    let shape = shape(src.texel_bytes(), range, planes.0, planes.1);
    if src.format == dst.format {
        return run(src.agent, &shape);
    }
    let between = [src, dst].map(|image| image.format.channel_order);
    let same_type = src.format.channel_type == dst.format.channel_type;
    let rgb = matches!(
        between,
        [order::SRGBA, order::RGBA] | [order::RGBA, order::SRGBA]
    );
    ensure(same_type && rgb, status::ERROR_INVALID_ARGUMENT)?;
    check_access(src.agent, &shape, &shape.src)?;
    check_access(src.agent, &shape, &shape.dst)?;
    each_texel(&shape, src.texel_bytes(), |from, to| {
        // SAFETY: both sides were just found to be allocated over their whole span; texels of these formats have 4 bytes.
        unsafe {
            let texel = (from as *const u32).read();
            let texel = src.texels.format.unpack([texel, 0, 0, 0]);
            let [texel, ..] = dst.texels.format.pack(stored(dst.format, texel));
            (to as *mut u32).write(texel);
        }
    });
    Ok(())
}

/// Fills a region of an image with the texel that registers of a kernel would hold.
pub(super) fn clear(image: &ImageObject, registers: Texel, at: Dim3, range: Dim3) -> Outcome {
    let plane = image.part(at, range)?;
    let texel = image.texel_bytes();
    let shape = shape(texel, range, plane, plane);
    check_access(image.agent, &shape, &shape.dst)?;
    let format = image.texels.format;
    let view = BufferView::new(format).with_selections(image.texels.selections);
    let raw = format.pack(stored(image.format, view.deselect(registers)));
    each_texel(&shape, texel, |_, to| {
        // SAFETY: the region was just found to be allocated over its whole span; a texel has at most 16 bytes.
        unsafe { (to as *mut u8).copy_from(raw.as_ptr().cast(), texel) };
    });
    Ok(())
}

/// Calls `write` with the source and destination of every texel.
fn each_texel(shape: &Shape, texel: usize, mut write: impl FnMut(usize, usize)) {
    for z in 0..shape.slices {
        for y in 0..shape.rows {
            let (src, dst) = (shape.src.row(y, z), shape.dst.row(y, z));
            for x in (0..shape.width).step_by(texel) {
                write(src + x, dst + x);
            }
            if let Some(session) = check::session() {
                session.wrote_range(dst as u64, shape.width as u64);
            }
        }
    }
}

/// The channels of a texel as they are stored: in sRGB formats three of them are encoded.
fn stored(format: ImageFormat, texel: Texel) -> Texel {
    if format.channel_order != order::SRGBA {
        return texel;
    }
    let [r, g, b, a] = texel;
    let [r, g, b] = [r, g, b].map(|channel| srgb(f32::from_bits(channel)).to_bits());
    [r, g, b, a]
}

/// The sRGB value of an intensity.
fn srgb(intensity: f32) -> f32 {
    if intensity <= 0.003_130_8 {
        intensity * 12.92
    } else {
        1.055 * intensity.powf(1.0 / 2.4) - 0.055
    }
}
