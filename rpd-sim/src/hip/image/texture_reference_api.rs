//! The functions of the API for texture references: variables of programs and modules that describe a texture. Binding
//! memory to a reference makes a texture object, whose words are copied into the variable that kernels read.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::ffi::CString;

use crate::hip::copy::api::{null_stream, submit};
use crate::hip::copy::params::linear;
use crate::hip::error::{HipResult, api, argument, code, put};
use crate::hip::image::array::{Array, Elements, device_has_images};
use crate::hip::image::texture;
use crate::hip::image::types::{
    AnyResource, ArrayDescriptor, ChannelFormatDesc, LinearResource, PitchedResource, ResourceDesc,
    TextureDesc, TextureReference, ViewDesc, resource_type, texture_flag,
};
use crate::hip::module;
use crate::hip::module::fatbin;
use crate::hip::runtime::{self, read, write};
use crate::hip::types::{Handle, kind};

/// The texture reference of a module, in the program's memory.
#[derive(Debug)]
pub(crate) struct ModuleReference {
    pub(crate) module: usize,
    name: CString,
    reference: Box<TextureReference>,
}

impl TextureReference {
    fn description(&self) -> TextureDesc {
        TextureDesc {
            address: self.address,
            filter: self.filter,
            read: self.read,
            srgb: self.srgb,
            border: [0.0; 4],
            normalized: self.normalized,
            anisotropy: self.anisotropy,
            level_filter: self.level_filter,
            level_bias: self.level_bias,
            level_min: self.level_min,
            level_max: self.level_max,
        }
    }

    /// Elements of the format that the program has set.
    fn elements(&self) -> HipResult<Elements> {
        let channels = u32::try_from(self.channel_count).map_err(|_| code::INVALID_VALUE)?;
        Elements::new(self.format, channels)
    }
}

/// The texture reference at an address; fails for null.
///
/// # Safety
/// `reference` is null or valid.
unsafe fn at(reference: *const TextureReference) -> HipResult<TextureReference> {
    // SAFETY: by contract, checked for null.
    let found = unsafe { argument(reference)? };
    device_has_images(runtime::current()?)?;
    Ok(found)
}

/// Address and size of the variable that kernels on the current device read.
fn device_variable(reference: *const TextureReference) -> HipResult<(usize, usize)> {
    let references = read(&runtime::get()?.images.references);
    let Some(own) = references.get(&(reference as usize)) else {
        return fatbin::variable(reference.cast());
    };
    let (mut address, mut size) = (std::ptr::null_mut(), 0);
    let handle = own.module as Handle;
    // SAFETY: the outputs are locals, the name is a C string.
    unsafe { module::get_global(&mut address, &mut size, handle, own.name.as_ptr())? };
    Ok((address as usize, size))
}

/// Binds a resource to a reference in place of what was bound to it, and updates the descriptor that kernels read.
///
/// # Safety
/// `reference` is null or a variable of the program.
pub(crate) unsafe fn bind(
    reference: *mut TextureReference,
    resource: ResourceDesc,
    view: Option<ViewDesc>,
) -> HipResult {
    // SAFETY: by contract.
    let mut now = unsafe { at(reference)? };
    let (variable, size) = device_variable(reference)?;
    if size < size_of::<TextureReference>() {
        return Err(code::INVALID_SYMBOL);
    }
    // What a reset of the device has destroyed is not there any more.
    let _ = texture::destroy(now.object as *const c_void);
    now.object = 0;
    // SAFETY: by contract, not null.
    unsafe { put(reference, now)? };
    now.object = texture::make(&resource, &now.description(), view.as_ref())? as usize;
    // SAFETY: as above.
    unsafe { put(reference, now)? };
    let to_device = linear(
        variable as *mut c_void,
        reference.cast(),
        size_of::<TextureReference>(),
        kind::HOST_TO_DEVICE,
    );
    submit(null_stream(), to_device, true)
}

/// Writes an offset of 0: binding refuses memory that would need another one.
///
/// # Safety
/// `offset` is null or valid.
unsafe fn no_offset(offset: *mut usize) -> HipResult {
    if offset.is_null() {
        return Ok(());
    }
    // SAFETY: by contract, not null.
    unsafe { put(offset, 0) }
}

fn linear_memory(pointer: *mut c_void, channels: ChannelFormatDesc, bytes: usize) -> ResourceDesc {
    let linear = LinearResource {
        pointer,
        channels,
        bytes,
    };
    ResourceDesc {
        kind: resource_type::LINEAR,
        any: AnyResource { linear },
    }
}

fn pitched_memory(
    pointer: *mut c_void,
    channels: ChannelFormatDesc,
    [width, height, pitch]: [usize; 3],
) -> ResourceDesc {
    let pitched = PitchedResource {
        pointer,
        channels,
        width,
        height,
        pitch,
    };
    ResourceDesc {
        kind: resource_type::PITCH_2D,
        any: AnyResource { pitched },
    }
}

/// The resource of an array, and its view as elements of a format.
fn array_resource(array: *const c_void, elements: Elements) -> (ResourceDesc, ViewDesc) {
    let resource = ResourceDesc {
        kind: resource_type::ARRAY,
        any: AnyResource {
            array: array.cast_mut(),
        },
    };
    let view = ViewDesc {
        format: elements.view_format(),
        ..ViewDesc::default()
    };
    (resource, view)
}

pub(crate) unsafe extern "C" fn hipBindTexture(
    offset: *mut usize,
    reference: *const TextureReference,
    pointer: *const c_void,
    channels: *const ChannelFormatDesc,
    size: usize,
) -> u32 {
    // SAFETY: the caller's pointers, checked for null. The reference is a variable although it is declared constant.
    api(|| unsafe {
        let resource = linear_memory(pointer.cast_mut(), argument(channels)?, size);
        bind(reference.cast_mut(), resource, None)?;
        no_offset(offset)
    })
}

pub(crate) unsafe extern "C" fn hipBindTexture2D(
    offset: *mut usize,
    reference: *const TextureReference,
    pointer: *const c_void,
    channels: *const ChannelFormatDesc,
    width: usize,
    height: usize,
    pitch: usize,
) -> u32 {
    // SAFETY: as above.
    api(|| unsafe {
        let size = [width, height, pitch];
        let resource = pitched_memory(pointer.cast_mut(), argument(channels)?, size);
        bind(reference.cast_mut(), resource, None)?;
        no_offset(offset)
    })
}

pub(crate) unsafe extern "C" fn hipBindTextureToArray(
    reference: *const TextureReference,
    array: *const c_void,
    channels: *const ChannelFormatDesc,
) -> u32 {
    // SAFETY: as above.
    api(|| unsafe {
        let elements = Elements::from_channels(&argument(channels)?)?;
        let (resource, view) = array_resource(array, elements);
        bind(reference.cast_mut(), resource, Some(view))
    })
}

pub(crate) unsafe extern "C" fn hipUnbindTexture(reference: *const TextureReference) -> u32 {
    // SAFETY: as above.
    api(|| unsafe {
        let mut now = at(reference)?;
        texture::destroy(now.object as *const c_void)?;
        now.object = 0;
        put(reference.cast_mut(), now)
    })
}

pub(crate) unsafe extern "C" fn hipGetTextureAlignmentOffset(
    offset: *mut usize,
    reference: *const TextureReference,
) -> u32 {
    // SAFETY: the caller's pointers, checked for null.
    api(|| unsafe { at(reference).and_then(|_| put(offset, 0)) })
}

pub(crate) unsafe extern "C" fn hipGetTextureReference(
    out: *mut *const TextureReference,
    symbol: *const c_void,
) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { fatbin::variable(symbol).and_then(|_| put(out, symbol.cast())) })
}

pub(crate) unsafe extern "C" fn hipModuleGetTexRef(
    out: *mut *mut TextureReference,
    handle: Handle,
    name: *const c_char,
) -> u32 {
    api(|| {
        if out.is_null() || name.is_null() {
            return Err(code::INVALID_VALUE);
        }
        device_has_images(runtime::current()?)?;
        // SAFETY: the caller's text.
        let name = unsafe { CStr::from_ptr(name) };
        let (mut address, mut size) = (std::ptr::null_mut(), 0);
        // SAFETY: the outputs are locals.
        unsafe { module::get_global(&mut address, &mut size, handle, name.as_ptr())? };
        if size < size_of::<TextureReference>() {
            return Err(code::NOT_FOUND);
        }
        let mut references = write(&runtime::get()?.images.references);
        let known = references
            .values_mut()
            .find(|known| known.module == handle as usize && *known.name == *name);
        if let Some(known) = known {
            // SAFETY: the caller's pointer, not null.
            return unsafe { put(out, &raw mut *known.reference) };
        }
        const FORMAT_FLOAT: u32 = 0x20;
        let mut reference = Box::new(TextureReference {
            read: 1,
            format: FORMAT_FLOAT,
            channel_count: 1,
            ..TextureReference::default()
        });
        let place = &raw mut *reference;
        let made = ModuleReference {
            module: handle as usize,
            name: name.to_owned(),
            reference,
        };
        references.insert(place as usize, made);
        // SAFETY: the caller's pointer, not null.
        unsafe { put(out, place) }
    })
}

pub(crate) unsafe extern "C" fn hipTexRefSetAddress(
    offset: *mut usize,
    reference: *mut TextureReference,
    pointer: *mut c_void,
    bytes: usize,
) -> u32 {
    // SAFETY: the caller's pointers, checked for null.
    api(|| unsafe {
        let channels = at(reference)?.elements()?.to_channels();
        bind(reference, linear_memory(pointer, channels, bytes), None)?;
        no_offset(offset)
    })
}

pub(crate) unsafe extern "C" fn hipTexRefSetAddress2D(
    reference: *mut TextureReference,
    descriptor: *const ArrayDescriptor,
    pointer: *mut c_void,
    pitch: usize,
) -> u32 {
    // SAFETY: the caller's pointers, checked for null.
    api(|| unsafe {
        let given = argument(descriptor)?;
        let channels = Elements::new(given.format, given.channels)?.to_channels();
        let size = [given.width, given.height, pitch];
        bind(reference, pitched_memory(pointer, channels, size), None)
    })
}

/// Checks the flags of a binding: programs have to set the one by which the array's format overrides the reference's.
pub(crate) fn check_array_flags(flags: u32) -> HipResult<()> {
    const OVERRIDE_FORMAT: u32 = 1;
    match flags {
        OVERRIDE_FORMAT => Ok(()),
        _ => Err(code::INVALID_VALUE),
    }
}

pub(crate) unsafe extern "C" fn hipTexRefSetArray(
    reference: *mut TextureReference,
    array: *const c_void,
    flags: u32,
) -> u32 {
    api(|| {
        check_array_flags(flags)?;
        let elements = Array::find(array)
            .map_err(|_| code::INVALID_VALUE)?
            .elements;
        // SAFETY: the caller's pointer, checked for null.
        unsafe {
            let mut now = at(reference)?;
            now.format = elements.format;
            now.channel_count = elements.channels as c_int;
            put(reference, now)?;
            let (resource, view) = array_resource(array, elements);
            bind(reference, resource, Some(view))
        }
    })
}

/// The resource that is bound to a reference.
///
/// # Safety
/// As of [`at`].
pub(crate) unsafe fn bound(reference: *const TextureReference) -> HipResult<ResourceDesc> {
    // SAFETY: by contract.
    let object = unsafe { at(reference)? }.object;
    Ok(texture::find(object as *const c_void)?.resource)
}

pub(crate) unsafe extern "C" fn hipTexRefGetAddress(
    out: *mut *mut c_void,
    reference: *const TextureReference,
) -> u32 {
    // SAFETY: the caller's pointers, checked for null; each member by the type of the resource.
    api(|| unsafe {
        let resource = bound(reference)?;
        match resource.kind {
            resource_type::LINEAR => put(out, resource.any.linear.pointer),
            resource_type::PITCH_2D => put(out, resource.any.pitched.pointer),
            _ => Err(code::INVALID_VALUE),
        }
    })
}

pub(crate) unsafe extern "C" fn hipTexRefGetArray(
    out: *mut *mut c_void,
    reference: *const TextureReference,
) -> u32 {
    // SAFETY: as above.
    api(|| unsafe {
        let resource = bound(reference)?;
        match resource.kind {
            resource_type::ARRAY => put(out, resource.any.array),
            _ => Err(code::INVALID_VALUE),
        }
    })
}

/// Declares functions that write a field of a reference.
macro_rules! getters {
    ($($name:ident($($out:ident: $t:ty = $value:expr),*);)*) => {$(
        pub(crate) unsafe extern "C" fn $name(
            $($out: *mut $t,)*
            reference: *const TextureReference,
        ) -> u32 {
            // SAFETY: the caller's pointers, checked for null.
            api(|| unsafe {
                let found = at(reference)?;
                $(
                    let value: fn(&TextureReference) -> $t = $value;
                    put($out, value(&found))?;
                )*
                Ok(())
            })
        }
    )*};
}

getters! {
    hipTexRefGetFilterMode(mode: u32 = |reference| reference.filter);
    hipTexRefGetMaxAnisotropy(most: c_int = |reference| reference.anisotropy as c_int);
    hipTexRefGetMipmapFilterMode(mode: u32 = |reference| reference.level_filter);
    hipTexRefGetMipmapLevelBias(bias: f32 = |reference| reference.level_bias);
    hipTexRefGetMipmapLevelClamp(least: f32 = |reference| reference.level_min, most: f32 = |reference| reference.level_max);
    hipTexRefGetFormat(format: u32 = |reference| reference.format, channels: c_int = |reference| reference.channel_count);
    hipTexRefGetFlags(flags: u32 = |reference| {
        let flag = |is_set: bool, flag| if is_set { flag } else { 0 };
        flag(reference.read == 0, texture_flag::AS_INTEGER)
            | flag(reference.normalized == 1, texture_flag::NORMALIZED)
            | flag(reference.srgb == 1, texture_flag::SRGB)
    });
}

/// Declares functions that change a field of a reference. The change takes effect when something is bound to the
/// reference.
macro_rules! setters {
    ($($name:ident($($value:ident: $t:ty),*) = $set:expr;)*) => {$(
        pub(crate) unsafe extern "C" fn $name(
            reference: *mut TextureReference,
            $($value: $t,)*
        ) -> u32 {
            // SAFETY: the caller's pointer, checked for null.
            api(|| unsafe {
                let mut now = at(reference)?;
                let set: fn(&mut TextureReference, $($t),*) = $set;
                set(&mut now, $($value),*);
                put(reference, now)
            })
        }
    )*};
}

setters! {
    hipTexRefSetFilterMode(mode: u32) = |reference, mode| reference.filter = mode;
    hipTexRefSetMaxAnisotropy(most: u32) = |reference, most| reference.anisotropy = most;
    hipTexRefSetMipmapFilterMode(mode: u32) = |reference, mode| reference.level_filter = mode;
    hipTexRefSetMipmapLevelBias(bias: f32) = |reference, bias| reference.level_bias = bias;
    hipTexRefSetMipmapLevelClamp(least: f32, most: f32) = |reference, least, most| {
        reference.level_min = least;
        reference.level_max = most;
    };
    hipTexRefSetFormat(format: u32, channels: c_int) = |reference, format, channels| {
        reference.format = format;
        reference.channel_count = channels;
    };
    hipTexRefSetFlags(flags: u32) = |reference, flags| {
        reference.read = u32::from(flags & texture_flag::AS_INTEGER == 0);
        reference.normalized = c_int::from(flags & texture_flag::NORMALIZED != 0);
        reference.srgb = c_int::from(flags & texture_flag::SRGB != 0);
    };
}

/// Checks the number of a dimension that programs pass, and returns it as an index.
fn dimension(number: c_int) -> HipResult<usize> {
    let number = usize::try_from(number).ok().filter(|number| *number < 3);
    number.ok_or(code::INVALID_VALUE)
}

pub(crate) unsafe extern "C" fn hipTexRefGetAddressMode(
    mode: *mut u32,
    reference: *const TextureReference,
    number: c_int,
) -> u32 {
    // SAFETY: the caller's pointers, checked for null.
    api(|| unsafe { put(mode, at(reference)?.address[dimension(number)?]) })
}

pub(crate) unsafe extern "C" fn hipTexRefSetAddressMode(
    reference: *mut TextureReference,
    number: c_int,
    mode: u32,
) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe {
        let mut now = at(reference)?;
        now.address[dimension(number)?] = mode;
        put(reference, now)
    })
}
