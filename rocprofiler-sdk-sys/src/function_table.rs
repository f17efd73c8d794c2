//! The machinery behind the table of functions.

use core::ffi::CStr;

/// The C name of a function.
macro_rules! symbol {
    ($name:ident) => {
        const { crate::function_table::c_name(concat!(stringify!($name), "\0")) }
    };
}

pub(crate) const fn c_name(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a name with a zero byte"),
    }
}

/// Declares a type for every function, and the struct with one slot for each.
macro_rules! functions {
    (
        required { $( $(#[$rmeta:meta])* fn $rname:ident as $rtype:ident($($rargs:tt)*) $(-> $rret:ty)?; )* }
        optional { $( $(#[$ometa:meta])* fn $oname:ident as $otype:ident($($oargs:tt)*) $(-> $oret:ty)?; )* }
    ) => {
        $(
            #[doc = concat!("Type of `", stringify!($rname), "`.")]
            pub type $rtype = unsafe extern "C" fn($($rargs)*) $(-> $rret)?;
        )*
        $(
            #[doc = concat!("Type of `", stringify!($oname), "`.")]
            pub type $otype = unsafe extern "C" fn($($oargs)*) $(-> $oret)?;
        )*

        /// The functions of a loaded SDK. What tracing cannot do without is required, the rest is optional.
        ///
        /// All functions are thread safe unless their description states otherwise, and report success as
        /// [`rocprofiler_status_t::SUCCESS`]. Pointers passed in must be valid for the call.
        #[derive(Clone, Copy, Debug)]
        pub struct Functions {
            $( $(#[$rmeta])* pub $rname: $rtype, )*
            $( $(#[$ometa])* pub $oname: Option<$otype>, )*
        }

        impl Functions {
            /// Names of the functions that [`Functions::load`] insists on.
            pub const REQUIRED: &'static [&'static core::ffi::CStr] = &[ $( $crate::function_table::symbol!($rname), )* ];
            /// Names of the functions that may be absent.
            pub const OPTIONAL: &'static [&'static core::ffi::CStr] = &[ $( $crate::function_table::symbol!($oname), )* ];

            /// Fills the table by asking `lookup` for every name; null means absent.
            ///
            /// # Errors
            ///
            /// The first required function that is absent.
            ///
            /// # Safety
            ///
            /// A pointer that `lookup` returns must be the function of that name of rocprofiler-sdk 1.x (or of a
            /// library with the same ABI), and must stay callable for as long as the table is used.
            pub unsafe fn load(
                mut lookup: impl FnMut(&core::ffi::CStr) -> *mut core::ffi::c_void,
            ) -> Result<Self, $crate::function_table::MissingSymbol> {
                Ok(Self {
                    $(
                        $rname: {
                            let address = lookup($crate::function_table::symbol!($rname));
                            if address.is_null() {
                                return Err($crate::function_table::MissingSymbol($crate::function_table::symbol!($rname)));
                            }
                            // SAFETY: not null, and by the contract of this function it is the function
                            // of that name, whose type this is.
                            unsafe { core::mem::transmute::<*mut core::ffi::c_void, $rtype>(address) }
                        },
                    )*
                    $(
                        $oname: {
                            let address = lookup($crate::function_table::symbol!($oname));
                            // SAFETY: a null pointer becomes `None`; any other is, by the contract of
                            // this function, the function of that name, whose type this is.
                            unsafe { core::mem::transmute::<*mut core::ffi::c_void, Option<$otype>>(address) }
                        },
                    )*
                })
            }
        }
    };
}

/// A function that the loaded library does not have although it is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingSymbol(pub &'static CStr);

impl core::fmt::Display for MissingSymbol {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "the library has no function `{}`",
            self.0.to_str().unwrap_or("?")
        )
    }
}

impl core::error::Error for MissingSymbol {}

pub(crate) use {functions, symbol};
