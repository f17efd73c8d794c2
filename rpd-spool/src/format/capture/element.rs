//! Sizes of the elements of arrays.

/// Size in bytes of an array element with this `hipChannelFormatDesc`: the bits of up to four channels, then their
/// kind.
pub fn bytes_of_channels(channels: [u32; 5]) -> u64 {
    let bits: u64 = channels[..4].iter().map(|bits| u64::from(*bits)).sum();
    bits / 8
}

/// The `hipArray_Format` and the number of channels of an array element with this `hipChannelFormatDesc`.
pub fn format_of_channels(channels: [u32; 5]) -> (u32, u32) {
    const UNSIGNED: u32 = 1;
    const FLOAT: u32 = 2;
    let [bits, .., kind] = channels;
    let format = match (kind, bits) {
        (FLOAT, 16) => 0x10,
        (FLOAT, _) => 0x20,
        (UNSIGNED, 8) => 0x01,
        (UNSIGNED, 16) => 0x02,
        (UNSIGNED, _) => 0x03,
        (_, 8) => 0x08,
        (_, 16) => 0x09,
        _ => 0x0a,
    };
    let count = channels[..4].iter().filter(|bits| **bits > 0).count();
    (format, count as u32)
}

/// Size in bytes of one channel with this `hipArray_Format`.
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
    fn array_elements_have_the_size_of_their_channels() {
        assert_eq!(bytes_of_channels([32, 32, 32, 32, 2]), 16);
        assert_eq!(bytes_of_channels([8, 8, 0, 0, 1]), 2);
        assert_eq!(format_of_channels([32, 32, 32, 32, 2]), (0x20, 4));
        assert_eq!(format_of_channels([8, 8, 0, 0, 1]), (0x01, 2));
        assert_eq!(format_of_channels([16, 0, 0, 0, 0]), (0x09, 1));
        // Unsigned and signed integers of 8, 16 and 32 bits, half and float.
        let formats = [0x01, 0x02, 0x03, 0x08, 0x09, 0x0a, 0x10, 0x20];
        assert_eq!(formats.map(bytes_of_format), [1, 2, 4, 1, 2, 4, 2, 4]);
    }
}
