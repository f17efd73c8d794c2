//! Compiles loops over lanes for several instruction sets of the host, and selects one at run time.

/// Set of x86-64 instructions for which loops over lanes are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg(target_arch = "x86_64")]
pub(super) enum Level {
    /// Baseline: vectors of 128 bits, no fused multiply-add.
    Plain,
    /// AVX2: vectors of 256 bits.
    Avx2,
    /// AVX-512: vectors of 512 bits.
    Avx512,
}

/// The highest level that tests allow. Results do not depend on the level.
#[cfg(all(test, target_arch = "x86_64"))]
pub(super) static MOST: std::sync::RwLock<Level> = std::sync::RwLock::new(Level::Avx512);

#[cfg(target_arch = "x86_64")]
impl Level {
    /// The level to use: the highest that this processor supports, in tests limited by `MOST`.
    pub(super) fn from_this_processor() -> Self {
        #[cfg(test)]
        return Self::detected().min(*MOST.read().unwrap_or_else(|e| e.into_inner()));
        #[cfg(not(test))]
        Self::detected()
    }

    fn detected() -> Self {
        use std::arch::is_x86_feature_detected as has;
        let avx2 = has!("avx2")
            && has!("bmi1")
            && has!("bmi2")
            && has!("f16c")
            && has!("fma")
            && has!("lzcnt")
            && has!("popcnt");
        let avx512 = has!("avx512f")
            && has!("avx512bw")
            && has!("avx512cd")
            && has!("avx512dq")
            && has!("avx512vl");
        match (avx2, avx512) {
            (true, true) => Self::Avx512,
            (true, false) => Self::Avx2,
            (false, _) => Self::Plain,
        }
    }
}

/// Defines a function that returns handlers of instructions. Its body is compiled once for each [`Level`]; a call
/// selects the one for this processor.
///
/// Closures in the body, and what is inlined into them, may use the instructions of the level. Functions with loops
/// over lanes are therefore `#[inline(always)]` and are called by closures. Results do not depend on the level,
/// except for which of several NaNs is the result.
macro_rules! for_each_level {
    (
        $(#[$meta:meta])*
        $vis:vis fn $name:ident $(<$generic:ident: $bound:ident>)? (
            $($argument:ident: $type:ty),*
        ) -> $result:ty $body:block
    ) => {
        $(#[$meta])*
        $vis fn $name $(<$generic: $bound>)? ($($argument: $type),*) -> $result {
            #[cfg(target_arch = "x86_64")]
            {
                use $crate::isa::host::Level;

                #[target_feature(enable = "avx2,bmi1,bmi2,f16c,fma,lzcnt,popcnt")]
                fn avx2 $(<$generic: $bound>)? ($($argument: $type),*) -> $result $body

                #[target_feature(enable = "avx2,bmi1,bmi2,f16c,fma,lzcnt,popcnt")]
                #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
                fn avx512 $(<$generic: $bound>)? ($($argument: $type),*) -> $result $body

                match Level::from_this_processor() {
                    // SAFETY: the processor has the instructions, as was just determined.
                    Level::Avx512 => return unsafe { avx512 $(::<$generic>)? ($($argument),*) },
                    // SAFETY: likewise.
                    Level::Avx2 => return unsafe { avx2 $(::<$generic>)? ($($argument),*) },
                    Level::Plain => {}
                }
            }
            fn plain $(<$generic: $bound>)? ($($argument: $type),*) -> $result $body
            plain $(::<$generic>)? ($($argument),*)
        }
    };
}

pub(super) use for_each_level;
