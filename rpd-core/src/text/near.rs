//! "Did you mean": the word of a list that looks most like another.

/// Bytes of the longest word that is compared. Names of options, counters and sub-commands are shorter; the comparison
/// takes time in proportion to the product of two lengths.
const LONGEST: usize = 64;

/// The candidate nearest to `word`, if one is near enough to be worth mentioning. Case and the difference
/// between dashes and underscores do not count; a beginning of a candidate is near. Words of more than 64 bytes are near
/// nothing.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let word = normal(word);
    if word.is_empty() {
        return None;
    }
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST)
        .filter_map(|candidate| {
            let other = normal(candidate);
            let distance = distance(&word, &other);
            let abbreviated = word.len() >= 3 && other.starts_with(&word);
            let limit = (word.len().max(other.len()) / 3).max(1);
            (abbreviated || distance <= limit).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn normal(word: &str) -> Vec<u8> {
    word.trim_start_matches('-')
        .bytes()
        .map(|byte| {
            if byte == b'_' {
                b'-'
            } else {
                byte.to_ascii_lowercase()
            }
        })
        .collect()
}

/// Levenshtein distance in bytes.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_finds_similar_words_and_refuses_distant_ones() {
        let flags = ["--hip-trace", "--hsa-trace", "--kernel-trace", "--summary"];
        let near = |word| nearest(word, flags);
        assert_eq!(near("--hip-tra"), Some("--hip-trace"));
        assert_eq!(near("--HIP_TRACE"), Some("--hip-trace"));
        assert_eq!(near("--kernal-trace"), Some("--kernel-trace"));
        assert_eq!(near("--foo"), None);
        assert_eq!(near(""), None);
        assert_eq!(near(&"-".repeat(1 << 20)), None);
        let long = "x".repeat(1 << 20);
        assert_eq!(nearest("xx", [long.as_str()]), None);
    }
}
