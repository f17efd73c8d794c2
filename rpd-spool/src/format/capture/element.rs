//! Sizes of the elements of arrays.

/// Bytes of an element with this `hipChannelFormatDesc`: bits of up to four components, then their kind.
pub fn bytes_of_channels(channels: [u32; 5]) -> u64 {
    let bits: u64 = channels[..4].iter().map(|bits| u64::from(*bits)).sum();
    bits / 8
}

/// Bytes of a component with this `hipArray_Format`.
pub fn bytes_of_format(format: u32) -> u64 {
    const BYTE: [u32; 2] = [0x01, 0x08];
    const TWO_BYTES: [u32; 3] = [0x02, 0x09, 0x10];
    match format {
        _ if BYTE.contains(&format) => 1,
        _ if TWO_BYTES.contains(&format) => 2,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_have_the_size_of_their_components() {
        assert_eq!(bytes_of_channels([32, 32, 32, 32, 2]), 16);
        assert_eq!(bytes_of_channels([8, 8, 0, 0, 1]), 2);
        // Unsigned and signed integers of 8, 16 and 32 bits, half and float.
        let formats = [0x01, 0x02, 0x03, 0x08, 0x09, 0x0a, 0x10, 0x20];
        assert_eq!(formats.map(bytes_of_format), [1, 2, 4, 1, 2, 4, 2, 4]);
    }
}
