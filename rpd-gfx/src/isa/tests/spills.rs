//! Kernels of `testdata/spills.hip`, which have more live values than registers, compared with the same computation
//! on the host.

use super::*;

static SPILLS: &[u8] = include_bytes!("../../../testdata/spills.co");

fn debayered(raw: &[u8], width: i32, height: i32, gain: f32, shift: u32) -> Vec<u8> {
    let at = |x: i32, y: i32| {
        let (x, y) = (x.clamp(0, width - 1), y.clamp(0, height - 1));
        i32::from(raw[(y * width + x) as usize])
    };
    let mut out = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let c = at(x, y);
            let rows = at(x, y - 1) + at(x, y + 1);
            let columns = at(x - 1, y) + at(x + 1, y);
            let corners = at(x - 1, y - 1) + at(x + 1, y - 1) + at(x - 1, y + 1) + at(x + 1, y + 1);
            let far_rows = at(x, y - 2) + at(x, y + 2);
            let far_columns = at(x - 2, y) + at(x + 2, y);
            let cross = (4 * c + 2 * (rows + columns) - far_rows - far_columns) / 8;
            let diagonal = (12 * c + 4 * corners - 3 * (far_rows + far_columns)) / 16;
            let row = (10 * c + 8 * columns - 2 * (corners + far_columns) + far_rows) / 16;
            let column = (10 * c + 8 * rows - 2 * (corners + far_rows) + far_columns) / 16;
            let colors = match (x & 1, y & 1) {
                (0, 0) => [c, cross, diagonal],
                (1, 1) => [diagonal, cross, c],
                (_, 1) => [column, c, row],
                _ => [row, c, column],
            };
            out.extend(
                colors.map(|color| ((color << shift) as f32 * gain).clamp(0.0, 255.0) as u8),
            );
        }
    }
    out
}

#[test]
fn a_debayer_kernel_built_without_optimisation_runs() {
    let module = Module::load(SPILLS);
    let (width, height, shift, gain) = (70i32, 37i32, 1u32, 0.625f32);
    let mut random = Random(5);
    let mut raw: Vec<u8> = (0..width * height).map(|_| random.next() as u8).collect();
    let mut out = vec![0u8; 3 * raw.len()];
    let args: [&[u8]; 6] = [
        &pointer(&mut out),
        &pointer(&mut raw),
        &width.to_le_bytes(),
        &height.to_le_bytes(),
        &gain.to_le_bytes(),
        &shift.to_le_bytes(),
    ];
    module
        .run("debayer", [80, 40, 1], [16, 8, 1], 0, &args)
        .unwrap();
    assert_eq!(out, debayered(&raw, width, height, gain, shift));
}

fn mix(a: u32, b: u32) -> u32 {
    (a ^ b).wrapping_mul(0x9e37_79b1).wrapping_add(a >> 7)
}

fn pressed(input: &[u32], i: u32) -> u32 {
    let n = input.len() as u32;
    let mut s: [u32; 24] = std::array::from_fn(|k| n.wrapping_mul(k as u32 + 1) ^ (k as u32) << 9);
    let mut v: [u32; 40] =
        std::array::from_fn(|k| input[((i + k as u32) % n) as usize].wrapping_add(k as u32));
    for round in 0..5 {
        for k in 0..40 {
            if v[k] & 1 != 0 {
                v[k] = mix(v[k], s[k % 24]);
            } else if v[k].is_multiple_of(3) {
                v[k] = v[(k + 7) % 40] / (s[k % 24] | 1);
            }
            s[k % 24] = s[k % 24].wrapping_add(mix(round, n + k as u32));
        }
    }
    (0..40).fold(0, |sum, k| mix(sum, v[k] ^ s[k % 24]))
}

#[test]
fn values_spilled_over_calls_and_branches_keep_their_contents() {
    let module = Module::load(SPILLS);
    let mut random = Random(7);
    let mut input: Vec<u32> = (0..300).map(|_| random.next() as u32).collect();
    let mut out = vec![0u32; 256];
    let args: [&[u8]; 3] = [
        &pointer(&mut out),
        &pointer(&mut input),
        &300u32.to_le_bytes(),
    ];
    module
        .run("pressure", [256, 1, 1], [128, 1, 1], 0, &args)
        .unwrap();
    for (i, value) in out.iter().enumerate() {
        assert_eq!(*value, pressed(&input, i as u32), "work-item {i}");
    }
}

/// An offset below the wave's scratch wraps to the address below, whose access is checked, and does not overflow.
#[test]
fn scratch_offsets_may_be_negative() {
    let swizzle = crate::isa::memory::swizzle;
    let base = 1u64 << 40;
    assert_eq!(base.wrapping_add(swizzle(6, 3)), base + 4 * 64 + 3 * 4 + 2);
    let below = 4u64.wrapping_neg();
    assert_eq!(base.wrapping_add(swizzle(below, 3)), base - 4 * 64 + 3 * 4);
}
