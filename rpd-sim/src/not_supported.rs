//! Exported functions about hardware that no simulated GPU has.

/// Declares functions of C that return a status and do nothing else: `not_supported! { (PARAMETER) STATUS; NAME... }`.
/// The status depends on that one parameter; other parameters are left out, because none is read.
macro_rules! not_supported {
    (@one ($($parameter:ident: $type:ty)?) ($status:expr) $name:ident) => {
        #[doc = concat!("`", stringify!($name), "`, which is not supported.")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($parameter: $type)?) -> u32 {
            $status
        }
    };
    ($parameter:tt $status:expr; $($name:ident)*) => {
        $($crate::not_supported::not_supported! { @one $parameter ($status) $name })*
    };
}

pub(crate) use not_supported;
