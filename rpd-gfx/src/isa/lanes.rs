//! Values and masks of lanes.

/// A vector register: one value for each lane.
pub(super) type Lanes = [u32; 64];
/// Two vector registers as 64-bit values.
pub(super) type Lanes64 = [u64; 64];

/// The numbers of the lanes in a mask, ascending.
pub fn lanes(mask: u64) -> impl Iterator<Item = usize> + Clone {
    (0..64).filter(move |lane| mask >> lane & 1 != 0)
}

/// Calls `f` for each lane in a mask, in ascending order.
#[inline(always)]
pub(super) fn each_lane(mask: u64, mut f: impl FnMut(usize)) {
    if mask == u64::MAX {
        return (0..64).for_each(f);
    }
    let mut rest = mask;
    while rest != 0 {
        f(rest.trailing_zeros() as usize);
        rest &= rest - 1;
    }
}

/// The numbers of the lanes in a mask as text, such as `0-3, 7`.
pub fn lane_numbers(mask: u64) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut lane = 0;
    while lane < 64 {
        if mask >> lane & 1 == 0 {
            lane += 1;
            continue;
        }
        let first = lane;
        while lane < 64 && mask >> lane & 1 != 0 {
            lane += 1;
        }
        parts.push(match lane - first {
            1 => first.to_string(),
            _ => format!("{first}-{}", lane - 1),
        });
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lane_numbers_are_written_as_ranges() {
        assert_eq!(lane_numbers(0b1000_1111), "0-3, 7");
        assert_eq!(lane_numbers(u64::MAX), "0-63");
        assert_eq!(lane_numbers(1 << 63), "63");
    }
}
