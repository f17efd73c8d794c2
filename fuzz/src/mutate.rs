//! Mutations of inputs that are the same in every run.

/// Byte sequences that have a meaning in one of the formats.
const TOKENS: &[&[u8]] = &[
    b"\0",
    b"\xff\xff\xff\xff",
    b"\x7fELF",
    b"-1",
    b"18446744073709551616",
    b"9223372036854775807",
    b"1e999",
    b"NaN",
    b"{",
    b"}",
    b"[",
    b"]",
    b"(",
    b")",
    b"\"",
    b"\\",
    b":",
    b",",
    b"\n",
    b"\t",
    b"&a ",
    b"*a",
    b"<<",
    b"%pid%",
    b"\xc3\xb6",
];

/// Makes inputs from seeds. The sequence of random numbers is the same in each run.
#[derive(Debug)]
pub struct Mutator<'a> {
    seeds: &'a [Vec<u8>],
    longest: usize,
    state: u64,
}

impl<'a> Mutator<'a> {
    /// Generates mutations of `seeds`, which must not be empty, with at most `longest` bytes.
    pub fn new(seeds: &'a [Vec<u8>], longest: usize) -> Mutator<'a> {
        Mutator {
            seeds,
            longest,
            state: 0x9e37_79b9_7f4a_7c15,
        }
    }

    fn random(&mut self) -> u64 {
        // xorshift64*
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// A random number below `bound`; 0 if that is 0.
    fn below(&mut self, bound: usize) -> usize {
        match bound {
            0 => 0,
            bound => (self.random() % bound as u64) as usize,
        }
    }

    /// The next input: a seed after one to eight changes.
    pub fn next_input(&mut self) -> Vec<u8> {
        let seed = self.below(self.seeds.len());
        let mut input = self.seeds[seed].clone();
        for _ in 0..=self.below(8) {
            self.change(&mut input);
        }
        input.truncate(self.longest);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len());
        let span = 1 + self.below(16.min(input.len() - at));
        let end = (at + span).min(input.len());
        match self.below(10) {
            0 if !input.is_empty() => input[at] ^= 1 << self.below(8),
            1 if !input.is_empty() => input[at] = self.random() as u8,
            2 if at + 8 <= input.len() => {
                let value = match self.below(4) {
                    0 => u64::MAX,
                    1 => 1 << self.below(64),
                    2 => self.below(300) as u64,
                    _ => self.random(),
                };
                let width = [1, 2, 4, 8][self.below(4)];
                input[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
            }
            3 => {
                input.drain(at..end);
            }
            4 => {
                let copy = input[at..end].to_vec();
                let to = self.below(input.len() + 1);
                input.splice(to..to, copy);
            }
            5 => {
                let token = TOKENS[self.below(TOKENS.len())];
                input.splice(at..at, token.iter().copied());
            }
            6 => {
                let seed = self.below(self.seeds.len());
                let from = self.below(self.seeds[seed].len());
                let span = self.below(64.min(self.seeds[seed].len() - from));
                let other = self.seeds[seed][from..from + span].to_vec();
                input.splice(at..end, other);
            }
            7 => input.truncate(at),
            _ if !input.is_empty() => input[at] = b' ' + self.below(95) as u8,
            _ => {}
        }
    }
}
