// The runtime's own kernels. Rebuild blit.co with ./build.sh.
//
// All take plain addresses, so that any alignment works; whole 16-byte blocks or 4-byte words are moved
// where the addresses allow it.

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long u64;
typedef u32 block __attribute__((ext_vector_type(4)));

static u64 item(void) {
  return (u64)__builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() +
         __builtin_amdgcn_workitem_id_x();
}
static u64 items(void) { return __builtin_amdgcn_grid_size_x(); }

#define GLOBAL(type, address) ((__global type *)(address))

// `word` is the pattern as it lies at addresses divisible by four.
static void fill_row(u64 dst, u64 bytes, u32 word, u64 first, u64 step) {
  u64 end = dst + bytes, base = dst & ~15ul, blocks = (end - base + 15) / 16;
  for (u64 n = first; n < blocks; n += step) {
    u64 low = base + 16 * n;
    if (low >= dst && low + 16 <= end) {
      *GLOBAL(block, low) = (block)(word);
    } else {
      for (u64 at = low; at < low + 16; ++at)
        if (at >= dst && at < end) *GLOBAL(u8, at) = (u8)(word >> (8 * (at & 3)));
    }
  }
}

static void copy_row(u64 dst, u64 src, u64 bytes, u64 first, u64 step) {
  if (((dst | src | bytes) & 3) == 0) {
    for (u64 n = first; n < bytes / 4; n += step) GLOBAL(u32, dst)[n] = GLOBAL(u32, src)[n];
  } else {
    for (u64 n = first; n < bytes; n += step) GLOBAL(u8, dst)[n] = GLOBAL(u8, src)[n];
  }
}

__kernel void __amd_rocclr_fillBufferAligned(u64 dst, u64 bytes, u32 word) {
  fill_row(dst, bytes, word, item(), items());
}

__kernel void __amd_rocclr_fillBufferAligned2D(u64 dst, u64 pitch, u64 width, u64 height, u32 word) {
  u64 row = __builtin_amdgcn_workgroup_id_y();
  if (row < height) {
    u64 start = dst + row * pitch;
    fill_row(start, width, word, item(), items());
  }
}

__kernel void __amd_rocclr_copyBuffer(u64 dst, u64 src, u64 bytes) {
  copy_row(dst, src, bytes, item(), items());
}

// Addresses and size divisible by 16.
__kernel void __amd_rocclr_copyBufferAligned(u64 dst, u64 src, u64 bytes) {
  for (u64 n = item(); n < bytes / 16; n += items()) GLOBAL(block, dst)[n] = GLOBAL(block, src)[n];
}

#define RECT_PARAMETERS \
  u64 dst, u64 dst_pitch, u64 dst_slice, u64 src, u64 src_pitch, u64 src_slice, u64 width

static void copy_rect(RECT_PARAMETERS) {
  u64 row = __builtin_amdgcn_workgroup_id_y(), slice = __builtin_amdgcn_workgroup_id_z();
  copy_row(dst + row * dst_pitch + slice * dst_slice, src + row * src_pitch + slice * src_slice, width,
           item(), items());
}

#define RECT_KERNEL(name)                                                        \
  __kernel void name(RECT_PARAMETERS) {                                          \
    copy_rect(dst, dst_pitch, dst_slice, src, src_pitch, src_slice, width);      \
  }

RECT_KERNEL(__amd_rocclr_copyBufferRect)
// Every number divisible by 16.
__kernel void __amd_rocclr_copyBufferRectAligned(RECT_PARAMETERS) {
  u64 row = __builtin_amdgcn_workgroup_id_y(), slice = __builtin_amdgcn_workgroup_id_z();
  u64 to = dst + row * dst_pitch + slice * dst_slice, from = src + row * src_pitch + slice * src_slice;
  for (u64 n = item(); n < width / 16; n += items()) GLOBAL(block, to)[n] = GLOBAL(block, from)[n];
}

// Arrays are linear on this device, so that images are rectangles too.
RECT_KERNEL(__amd_rocclr_copyImage)
RECT_KERNEL(__amd_rocclr_copyImage1DA)
RECT_KERNEL(__amd_rocclr_copyBufferToImage)
RECT_KERNEL(__amd_rocclr_copyImageToBuffer)

// Fills rows with a texel of `size` bytes (a power of two up to 16).
__kernel void __amd_rocclr_fillImage(u64 dst, u64 pitch, u64 slice, u64 width, block texel, u32 size) {
  u64 row = dst + __builtin_amdgcn_workgroup_id_y() * pitch + __builtin_amdgcn_workgroup_id_z() * slice;
  for (u64 at = item(); at < width; at += items()) {
    u32 byte = at & (size - 1);
    GLOBAL(u8, row)[at] = (u8)(texel[byte / 4] >> (8 * (byte & 3)));
  }
}

__kernel void __amd_rocclr_streamOpsWrite(u64 address, u64 value, u32 size) {
  if (size == 8)
    __opencl_atomic_store(GLOBAL(atomic_ulong, address), value, __ATOMIC_RELEASE, __OPENCL_MEMORY_SCOPE_ALL_SVM_DEVICES);
  else
    __opencl_atomic_store(GLOBAL(atomic_uint, address), (u32)value, __ATOMIC_RELEASE, __OPENCL_MEMORY_SCOPE_ALL_SVM_DEVICES);
}

// Conditions as in hipStreamWaitValue: 0 greater or equal, 1 equal, 2 and, 3 nor.
__kernel void __amd_rocclr_streamOpsWait(u64 address, u64 value, u64 mask, u32 condition, u32 size) {
  for (;;) {
    u64 seen = size == 8
      ? __opencl_atomic_load(GLOBAL(atomic_ulong, address), __ATOMIC_ACQUIRE, __OPENCL_MEMORY_SCOPE_ALL_SVM_DEVICES)
      : __opencl_atomic_load(GLOBAL(atomic_uint, address), __ATOMIC_ACQUIRE, __OPENCL_MEMORY_SCOPE_ALL_SVM_DEVICES);
    seen &= mask;
    u64 wanted = value & mask;
    u32 met = condition == 0   ? (long)(seen - wanted) >= 0
              : condition == 1 ? seen == wanted
              : condition == 2 ? (seen & wanted) != 0
                               : ~(seen | wanted) != 0;
    if (met) break;
    __builtin_amdgcn_s_sleep(8);
  }
}

// Clears the header of the heap that device-side malloc grows in.
__kernel void __amd_rocclr_initHeap(u64 heap, u64 bytes, u64 reserved) {
  for (u64 n = item(); n < bytes / 4; n += items()) GLOBAL(u32, heap)[n] = 0;
}

__kernel void __amd_rocclr_gwsInit(u32 value) { __builtin_amdgcn_ds_gws_init(value, 0); }
