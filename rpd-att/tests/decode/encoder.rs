//! An encoder of streams. Lengths, patterns and places of fields are stated here a second time, taken from the format's
//! description, so that a mistake in the decoder's tables is not repeated.

/// Address at which the code object of most streams is loaded.
pub(crate) const BASE: u64 = 0x7F00_0000_0000;

/// Types of INST of GFX9.
pub(crate) mod inst {
    pub(crate) const SMEM: u64 = 0;
    pub(crate) const SALU: u64 = 1;
    pub(crate) const VMEM: u64 = 2;
    pub(crate) const VALU: u64 = 5;
    pub(crate) const LDS: u64 = 6;
    pub(crate) const JUMP_TO_REGISTER: u64 = 7;
    pub(crate) const JUMP: u64 = 12;
    pub(crate) const NEXT: u64 = 13;
    pub(crate) const MESSAGE: u64 = 15;
    pub(crate) const TRAP: u64 = 29;
}

/// A generator of pseudo-random numbers, the same in each run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(2) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 16) % limit
    }
}

/// A stream of GFX9.
#[derive(Clone, Default)]
pub(crate) struct Gfx9 {
    pub(crate) bytes: Vec<u8>,
    pub(crate) time: i64,
}

impl Gfx9 {
    /// A stream with the header of an MI300: all SIMDs, compute unit `cu`.
    pub(crate) fn new(cu: u64) -> Self {
        let header = 0x11u64 | 5 << 13 | 0xF << 16 | cu << 20;
        Self {
            bytes: header.to_le_bytes().to_vec(),
            time: 0,
        }
    }

    /// A stream for compute unit 1, with code object 3 at [`BASE`], whose kernel is 0x1000 bytes behind it.
    pub(crate) fn with_code() -> Self {
        let mut stream = Self::new(1);
        stream
            .start_words()
            .code_object(3, BASE, 0x10000, 2)
            .kernel(BASE + 0x1000);
        stream
    }

    fn put(&mut self, word: u64, bytes: usize) {
        self.bytes.extend_from_slice(&word.to_le_bytes()[..bytes]);
    }

    /// Lets time pass until `time`, less the time that the next token adds itself, which is returned: 0 or 1.
    fn until(&mut self, time: i64) -> u64 {
        assert!(time >= self.time && time % 4 == 0, "{time} {}", self.time);
        let mut units = (time - self.time) / 4;
        while units > 1 {
            let step = units.min(255);
            self.put((step as u64) << 4, 2);
            units -= step;
        }
        self.time = time;
        units as u64
    }

    pub(crate) fn misc(&mut self, delta: u64, kind: u64) -> &mut Self {
        self.time += delta as i64 * 4;
        self.put(delta << 4 | kind << 13, 2);
        self
    }

    pub(crate) fn timestamp(&mut self, stamp: u64) -> &mut Self {
        self.put(1 | stamp << 16, 8);
        self
    }

    /// Writes a register, with the number 0 in the field of the micro engine.
    pub(crate) fn register(&mut self, time: i64, address: u64, data: u64) -> &mut Self {
        let delta = self.until(time);
        self.put(2 | delta << 4 | address << 16 | data << 32, 8);
        self
    }

    pub(crate) fn compute(&mut self, time: i64, address: u64, data: u64) -> &mut Self {
        let delta = self.until(time);
        self.put(15 | delta << 4 | address << 9 | data << 16, 6);
        self
    }

    /// Writes the words that begin the host's packets.
    pub(crate) fn start_words(&mut self) -> &mut Self {
        let time = self.time;
        self.register(time, 0xC342, 0x434F_5200);
        self.register(time, 0xC342, 524_801)
    }

    fn code_object_word(&mut self, kind: u64, data: u64) {
        let time = self.time;
        self.register(time, 0xC342, 4 | kind << 8);
        self.register(time, 0xC342, data & 0xFFFF_FFFF);
    }

    pub(crate) fn code_object(
        &mut self,
        id: u64,
        address: u64,
        size: u64,
        flags: u64,
    ) -> &mut Self {
        self.code_object_word(2, address);
        self.code_object_word(3, address >> 32);
        self.code_object_word(1, size);
        self.code_object_word(4, size >> 32);
        if id >= 1 << 30 {
            self.code_object_word(5, id);
            self.code_object_word(6, id >> 32);
            self.code_object_word(0, flags);
        } else {
            self.code_object_word(0, flags | id << 2);
        }
        self
    }

    pub(crate) fn kernel(&mut self, entry: u64) -> &mut Self {
        let time = self.time;
        self.compute(time, 0x0C, entry >> 8 & 0xFFFF_FFFF);
        self.compute(time, 0x0D, entry >> 40);
        self.compute(time, 0x00, 1)
    }

    pub(crate) fn wave_start(&mut self, time: i64, cu: u64, simd: u64, slot: u64) -> &mut Self {
        self.wave_start_counted(time, cu, simd, slot, 0)
    }

    pub(crate) fn wave_start_counted(
        &mut self,
        time: i64,
        cu: u64,
        simd: u64,
        slot: u64,
        count: u64,
    ) -> &mut Self {
        let delta = self.until(time);
        // The micro engine that register writes with field 0 belong to.
        let me = 1 << 18;
        self.put(
            3 | delta << 4 | cu << 6 | slot << 10 | simd << 14 | me | count << 22,
            4,
        );
        self
    }

    pub(crate) fn wave_end(&mut self, time: i64, cu: u64, simd: u64, slot: u64) -> &mut Self {
        let delta = self.until(time);
        self.put(6 | delta << 4 | cu << 6 | slot << 10 | simd << 14, 2);
        self
    }

    /// Writes a token ISSUE. `states`: slot and 1 (stall), 2 (issued) or 3 (immediate).
    pub(crate) fn issue(&mut self, time: i64, simd: u64, states: &[(u64, u64)]) -> &mut Self {
        let delta = self.until(time);
        let mut word = 13 | delta << 4 | simd << 5;
        for (slot, state) in states {
            word |= state << (8 + 2 * slot);
        }
        self.put(word, 4);
        self
    }

    pub(crate) fn inst(&mut self, time: i64, simd: u64, slot: u64, kind: u64) -> &mut Self {
        let delta = self.until(time);
        self.put(10 | delta << 4 | slot << 5 | simd << 9 | kind << 11, 2);
        self
    }

    /// Writes issue and completion of an instruction of 4 cycles, of slot 0 of SIMD 0.
    pub(crate) fn run(&mut self, time: i64, kind: u64) -> &mut Self {
        self.issue(time, 0, &[(0, 2)]).inst(time + 4, 0, 0, kind)
    }

    pub(crate) fn inst_pc(&mut self, time: i64, simd: u64, slot: u64, address: u64) -> &mut Self {
        let delta = self.until(time);
        self.put(
            11 | delta << 4 | slot << 5 | simd << 9 | (address / 4) << 16,
            8,
        );
        self
    }

    pub(crate) fn shader_data(&mut self, time: i64, cu: u64, slot: u64, data: u64) -> &mut Self {
        let delta = self.until(time);
        self.put(12 | delta << 4 | cu << 6 | slot << 10 | data << 16, 6);
        self
    }

    pub(crate) fn perf(&mut self, time: i64, cu: u64, bank: u64, values: [u64; 4]) -> &mut Self {
        let delta = self.until(time);
        let [a, b, c, d] = values;
        self.put(
            14 | delta << 4 | cu << 6 | bank << 10 | a << 12 | b << 25 | c << 38 | d << 51,
            8,
        );
        self
    }

    /// Writes a token with this low word and length, valid or not.
    pub(crate) fn raw(&mut self, word: u64, bytes: usize) -> &mut Self {
        self.put(word, bytes);
        self
    }
}

/// A stream of RDNA.
#[derive(Clone)]
pub(crate) struct Rdna {
    bits: Vec<bool>,
    pub(crate) version: u64,
    pub(crate) time: i64,
}

impl Rdna {
    /// A stream that begins with the header, for SIMD 0 of WGP 1.
    pub(crate) fn new(version: u64) -> Self {
        Self::with_header(version, 0)
    }

    /// A stream with additional bits of the header.
    pub(crate) fn with_header(version: u64, more: u64) -> Self {
        let mut stream = Self {
            bits: Vec::new(),
            version,
            time: 0,
        };
        stream.raw(0b001_0001 | version << 7 | 1 << 15 | more, 64);
        stream
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        (self.bits.chunks(8))
            .map(|bits| {
                bits.iter()
                    .rev()
                    .fold(0, |byte, bit| byte << 1 | u8::from(*bit))
            })
            .collect()
    }

    /// Position of the next token in bits.
    pub(crate) fn at(&self) -> usize {
        self.bits.len()
    }

    pub(crate) fn raw(&mut self, word: u64, bits: usize) -> &mut Self {
        for at in 0..bits {
            self.bits.push(at < 64 && word >> at & 1 == 1);
        }
        self
    }

    /// Lets time pass until `time`, less the time that a token with a time field of `bits` bits adds, which is
    /// returned.
    fn until(&mut self, time: i64, bits: u32) -> u64 {
        assert!(time >= self.time, "{time} {}", self.time);
        let mut left = (time - self.time) as u64;
        let most = (1 << bits) - 1;
        while left > most {
            // 4 to 19 cycles; never more than are left.
            let step = left.min(19);
            if step < 4 {
                break;
            }
            self.raw(0b1000 | (step - 4) << 4, 8);
            left -= step;
        }
        assert!(left <= most, "{left} cycles cannot be written");
        self.time = time;
        left
    }

    pub(crate) fn register(&mut self, compute: bool, address: u64, data: u64) -> &mut Self {
        let cs = u64::from(compute || self.version <= 2);
        self.raw(0b1001 | cs << 15 | address << 16 | data << 32, 64)
    }

    pub(crate) fn start_words(&mut self) -> &mut Self {
        self.register(false, 0xC342, 0x434F_5200);
        self.register(false, 0xC342, 524_801)
    }

    pub(crate) fn code_object(&mut self, id: u64, address: u64, size: u64) -> &mut Self {
        for (kind, data) in [
            (2, address & 0xFFFF_FFFF),
            (3, address >> 32),
            (1, size & 0xFFFF_FFFF),
            (4, size >> 32),
            (0, id << 2 | 2),
        ] {
            self.register(false, 0xC342, 4 | kind << 8);
            self.register(false, 0xC342, data);
        }
        self
    }

    pub(crate) fn kernel(&mut self, entry: u64) -> &mut Self {
        self.register(true, 0x0C, entry >> 8 & 0xFFFF_FFFF);
        self.register(true, 0x0D, entry >> 40)
    }

    pub(crate) fn wave_start(&mut self, time: i64, wgp: u64, simd: u64, slot: u64) -> &mut Self {
        let delta = self.until(time, 2);
        let slot_at = if self.version == 4 { 15 } else { 13 };
        self.raw(
            0b0_1100 | delta << 5 | simd << 8 | wgp << 10 | slot << slot_at,
            32,
        )
    }

    /// Writes a wave start of GFX12, with a workgroup number and `words` extension words.
    pub(crate) fn wave_start_ext(
        &mut self,
        time: i64,
        wgp: u64,
        slot: u64,
        workgroup: u64,
        words: usize,
    ) -> &mut Self {
        let delta = self.until(time, 2);
        self.raw(
            0b1_1100 | delta << 5 | wgp << 10 | slot << 15 | workgroup << 33,
            40,
        );
        for word in 0..words {
            self.raw(1 | (word as u64 + 0x5A) << 1, 8);
        }
        self
    }

    pub(crate) fn wave_end(&mut self, time: i64, wgp: u64, simd: u64, slot: u64) -> &mut Self {
        let delta = self.until(time, 3);
        self.raw(
            0b1_0101 | delta << 5 | simd << 9 | wgp << 11 | slot << 15,
            20,
        )
    }

    pub(crate) fn inst(&mut self, time: i64, slot: u64, op: u64) -> &mut Self {
        let delta = self.until(time, 3);
        if self.version == 4 {
            self.raw(0b010 | delta << 3 | slot << 7 | op << 12, 20)
        } else {
            self.raw(0b010 | delta << 4 | slot << 8 | op << 13, 20)
        }
    }

    pub(crate) fn valu(&mut self, time: i64, slot: u64) -> &mut Self {
        let delta = self.until(time, 3);
        self.raw(0b011 | delta << 3 | slot << 7, 12)
    }

    pub(crate) fn immediate(&mut self, time: i64, slot: u64) -> &mut Self {
        let delta = self.until(time, 3);
        self.raw(0b1101 | delta << 4 | slot << 7, 12)
    }

    pub(crate) fn immediates(&mut self, time: i64, mask: u64) -> &mut Self {
        let delta = self.until(time, 3);
        self.raw(0b0_0100 | delta << 5 | mask << 8, 24)
    }

    pub(crate) fn ready(&mut self, time: i64, mask: u64) -> &mut Self {
        let delta = self.until(time, 3);
        self.raw(0b1_0100 | delta << 5 | mask << 8, 24)
    }

    pub(crate) fn new_pc(&mut self, time: i64, slot: u64, address: u64) -> &mut Self {
        let delta = self.until(time, 3);
        if self.version == 4 {
            self.raw(0b010_0001, 8);
            self.raw(delta | slot << 3 | (address >> 2) << 8, 64)
        } else {
            self.raw(
                0b010_0001 | delta << 8 | slot << 11 | (address >> 2) << 16,
                64,
            )
        }
    }

    pub(crate) fn misc(&mut self, time: i64, flags: u64) -> &mut Self {
        let delta = self.until(time, 9);
        self.raw(0b101_0001 | delta << 7 | flags << 16, 24)
    }
}
