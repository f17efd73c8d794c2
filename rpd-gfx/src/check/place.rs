//! Describes addresses of global memory for reports.

/// Location of an address of global memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The address is in an allocation.
    Inside {
        /// First address of the allocation.
        base: u64,
        /// Size of the allocation in bytes.
        size: u64,
        /// Whether it is known which bytes of the allocation have been written.
        tracked: bool,
    },
    /// The address is in no allocation.
    Outside {
        /// Address and size of the nearest allocation; `None` if none is near.
        nearest: Option<(u64, u64)>,
    },
    /// The address is in memory that was freed.
    Freed {
        /// First address of the allocation that was freed.
        base: u64,
        /// Size of the freed allocation in bytes.
        size: u64,
    },
}

/// Addresses below this are taken for offsets from a null pointer.
const NULL_PAGE: u64 = 4096;

impl Place {
    /// Describes `address`, whose place is `self`.
    pub fn describe(self, address: u64) -> String {
        let whole = |base: u64, size: u64| format!("the allocation of {size} bytes at {base:#x}");
        match self {
            Self::Inside { base, size, .. } => {
                let offset = address.saturating_sub(base);
                format!("byte {offset} of {}", whole(base, size))
            }
            Self::Freed { base, size } => {
                let offset = address.saturating_sub(base);
                format!("byte {offset} of {}, which was freed", whole(base, size))
            }
            Self::Outside {
                nearest: Some((base, size)),
            } => match address.checked_sub(base) {
                None => format!("{} bytes before {}", base - address, whole(base, size)),
                Some(offset) if offset < size => {
                    format!("crosses the end of {}", whole(base, size))
                }
                Some(offset) => format!("{} bytes behind {}", offset - size, whole(base, size)),
            },
            Self::Outside { nearest: None } if address < NULL_PAGE => {
                format!("a null pointer with an offset of {address} bytes")
            }
            Self::Outside { nearest: None } => "far from all allocations".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_described_by_the_nearest_allocation() {
        let outside = Place::Outside {
            nearest: Some((0x1000, 256)),
        };
        assert_eq!(
            outside.describe(0x1110),
            "16 bytes behind the allocation of 256 bytes at 0x1000"
        );
        assert_eq!(
            outside.describe(0xff8),
            "8 bytes before the allocation of 256 bytes at 0x1000"
        );
        assert_eq!(
            outside.describe(0x10fe),
            "crosses the end of the allocation of 256 bytes at 0x1000"
        );
        let freed = Place::Freed {
            base: 0x1000,
            size: 256,
        };
        assert_eq!(
            freed.describe(0x1004),
            "byte 4 of the allocation of 256 bytes at 0x1000, which was freed"
        );
        let nowhere = Place::Outside { nearest: None };
        assert_eq!(
            nowhere.describe(0x10),
            "a null pointer with an offset of 16 bytes"
        );
        assert_eq!(nowhere.describe(0x7000_0000), "far from all allocations");
    }
}
