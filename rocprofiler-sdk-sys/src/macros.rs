//! The few shapes that every declaration of the ABI is made of.

/// An enum of the C ABI: a transparent integer, so that values of later releases are representable.
macro_rules! c_enum {
    (
        $(#[$meta:meta])*
        $name:ident: $repr:ty {
            $( $(#[$vmeta:meta])* $variant:ident = $value:literal => $c_name:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $repr);

        impl $name {
            $( $(#[$vmeta])* pub const $variant: Self = Self($value); )*

            /// Every enumerator in the order of the header, aliases included, with its C name.
            pub const ALL: &'static [(Self, &'static core::ffi::CStr)] = &[
                $( (Self::$variant, $c_name), )*
            ];

            /// C name of this value (the first one, where names share a value); `None` when this
            /// version of the ABI does not know it.
            pub fn c_name(self) -> Option<&'static core::ffi::CStr> {
                Self::ALL.iter().find(|(value, _)| *value == self).map(|(_, name)| *name)
            }
        }

        impl Default for $name {
            /// The zero value.
            fn default() -> Self {
                Self(0)
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.c_name().map(core::ffi::CStr::to_str) {
                    Some(Ok(name)) => f.write_str(name),
                    _ => write!(f, concat!(stringify!($name), "({})"), self.0),
                }
            }
        }
    };
}

/// A handle: one integer in a struct, passed in one register. Zero means "none".
macro_rules! c_handle {
    ( $( $(#[$meta:meta])* $name:ident )* ) => {
        $(
            $(#[$meta])*
            #[repr(C)]
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub struct $name {
                /// The number that identifies the object; opaque, zero for none.
                pub handle: u64,
            }
        )*
    };
}

/// A plain struct or union of the ABI. All of them are valid when zeroed: integers, raw pointers,
/// nullable function pointers and nested structs of the same sort.
macro_rules! c_struct {
    (
        $(#[$meta:meta])*
        struct $name:ident { $($body:tt)* }
    ) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub struct $name { $($body)* }

        c_struct!(@zero $name);
    };
    (
        $(#[$meta:meta])*
        union $name:ident { $($body:tt)* }
    ) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy)]
        pub union $name { $($body)* }

        c_struct!(@zero $name);

        impl core::fmt::Debug for $name {
            /// Prints the type only: the valid member of the union is not known here.
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(concat!(stringify!($name), " { .. }"))
            }
        }
    };
    (@zero $name:ident) => {
        impl Default for $name {
            /// All bytes zero, padding included; a leading `size` is left for the caller to set.
            fn default() -> Self {
                // SAFETY: every field of these types is an integer, a float, a raw pointer, an
                // `Option` of a function pointer, or a type made of those; zero is valid for each.
                unsafe { core::mem::zeroed() }
            }
        }
    };
}

/// Accessors for bit fields kept in one integer field: `getter setter first-bit width`.
macro_rules! bit_fields {
    ( $name:ident . $field:ident : $repr:ty {
        $( $(#[$meta:meta])* $get:ident $set:ident $shift:literal $width:literal )*
    } ) => {
        impl $name {
            $(
                $(#[$meta])*
                pub const fn $get(&self) -> $repr {
                    (self.$field >> $shift) & (<$repr>::MAX >> (<$repr>::BITS - $width))
                }

                #[doc = concat!("The same with `", stringify!($get), "` replaced; excess bits of the value are cut off.")]
                #[must_use]
                pub const fn $set(mut self, value: $repr) -> Self {
                    let mask = <$repr>::MAX >> (<$repr>::BITS - $width);
                    self.$field = (self.$field & !(mask << $shift)) | ((value & mask) << $shift);
                    self
                }
            )*
        }
    };
}

pub(crate) use {bit_fields, c_enum, c_handle, c_struct};
