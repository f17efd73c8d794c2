//! Lists of devices that a program may use, as the environment gives them.

/// Places of the devices that a list names, in its order: numbers or ids such as `GPU-0123456789abcdef`, separated by commas. The list ends at the
/// first entry that names no device or one that has been named.
pub(crate) fn chosen(list: &str, ids: &[String]) -> Vec<usize> {
    let mut places = Vec::new();
    for entry in list.split(',').map(str::trim) {
        let place = match entry.parse::<usize>() {
            Ok(number) => Some(number).filter(|&number| number < ids.len()),
            Err(_) => ids.iter().position(|id| !entry.is_empty() && id == entry),
        };
        match place {
            Some(place) if !places.contains(&place) => places.push(place),
            _ => break,
        }
    }
    places
}

/// Devices that the first of these environment variables chooses which is set. A value that is not UTF-8 names no
/// device.
pub(crate) fn from_environment(names: &[&str], ids: &[String]) -> Option<Vec<usize>> {
    let list = names.iter().find_map(std::env::var_os)?;
    Some(chosen(&list.to_string_lossy(), ids))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_visible_devices_ends_at_the_first_invalid_entry() {
        let ids = ["GPU-a", "GPU-b", "GPU-c"].map(str::to_owned);
        assert_eq!(chosen("2,0", &ids), [2, 0]);
        assert_eq!(chosen("GPU-b, 0", &ids), [1, 0]);
        assert_eq!(chosen("1,7,0", &ids), [1]);
        assert_eq!(chosen("1,1,0", &ids), [1]);
        assert_eq!(chosen("", &ids), []);
        assert_eq!(chosen("-1", &ids), []);
    }
}
