/* Image instructions, one a kernel. Each work-item takes coordinates, four numbers each, and writes four numbers. What the
 * compiler has no function for is called by the name of LLVM's intrinsic. */
#include "device.h"

typedef float v4f __attribute__((ext_vector_type(4)));
typedef _Float16 v4h __attribute__((ext_vector_type(4)));
typedef int v4i __attribute__((ext_vector_type(4)));
typedef int v8i __attribute__((ext_vector_type(8)));

/* A texture or surface object: the image's descriptor, or a buffer's in its first half, and the sampler's. */
struct Object {
    v8i image;
    v4i other, sampler;
};
typedef const struct Object __attribute__((address_space(4))) *Texture;

#define INTRINSIC(result, name, symbol, ...) extern "C" __device__ result name(__VA_ARGS__) __asm("llvm.amdgcn." symbol)

INTRINSIC(v4f, sample_1, "image.sample.1d.v4f32.f32", int, float, v8i, v4i, bool, int, int);
INTRINSIC(v4f, sample_2, "image.sample.2d.v4f32.f32", int, float, float, v8i, v4i, bool, int, int);
INTRINSIC(v4f, sample_3, "image.sample.3d.v4f32.f32", int, float, float, float, v8i, v4i, bool, int, int);
INTRINSIC(v4f, sample_1_layered, "image.sample.1darray.v4f32.f32", int, float, float, v8i, v4i, bool, int, int);
INTRINSIC(v4f, sample_2_layered, "image.sample.2darray.v4f32.f32", int, float, float, float, v8i, v4i, bool, int, int);
INTRINSIC(v4f, load_1, "image.load.1d.v4f32.i32", int, int, v8i, int, int);
INTRINSIC(v4f, load_2, "image.load.2d.v4f32.i32", int, int, int, v8i, int, int);
INTRINSIC(v4h, load_2_half, "image.load.2d.v4f16.i32", int, int, int, v8i, int, int);
INTRINSIC(v4f, load_3, "image.load.3d.v4f32.i32", int, int, int, int, v8i, int, int);
INTRINSIC(void, store_2, "image.store.2d.v4f32.i32", v4f, int, int, int, v8i, int, int);
INTRINSIC(void, store_2_half, "image.store.2d.v4f16.i32", v4h, int, int, int, v8i, int, int);
INTRINSIC(void, store_2_layered, "image.store.2darray.v4f32.i32", v4f, int, int, int, int, v8i, int, int);
INTRINSIC(v4f, load_level_1_layered, "image.load.mip.1darray.v4f32.i32", int, int, int, int, v8i, int, int);
INTRINSIC(v4f, load_level_2, "image.load.mip.2d.v4f32.i32", int, int, int, int, v8i, int, int);
INTRINSIC(v4f, load_level_3, "image.load.mip.3d.v4f32.i32", int, int, int, int, int, v8i, int, int);
INTRINSIC(void, store_level_2_layered, "image.store.mip.2darray.v4f32.i32", v4f, int, int, int, int, int, v8i, int, int);
INTRINSIC(int, atomic_add_2, "image.atomic.add.2d.i32.i32", int, int, int, v8i, int, int);
INTRINSIC(v4f, size_2_layered, "image.getresinfo.2darray.v4f32.i32", int, int, v8i, int, int);
INTRINSIC(v4f, size_3, "image.getresinfo.3d.v4f32.i32", int, int, v8i, int, int);
INTRINSIC(v4f, fetch_format, "struct.buffer.load.format.v4f32", v4i, int, int, int, int);
INTRINSIC(void, store_format, "struct.buffer.store.format.v4f32", v4f, v4i, int, int, int, int);
INTRINSIC(v4f, fetch_typed, "struct.tbuffer.load.v4f32", v4i, int, int, int, int, int);

static __device__ inline int whole(float bits) { return __builtin_bit_cast(int, bits); }

/* `at`: the coordinates, `number`: their bits as integers, `in`: what the work-item's place in `out` has before. */
#define KERNEL(name, ...) \
    EXPORTED void name(Texture t, v4f *out, const v4f *coordinates, unsigned n) { \
        unsigned i = block_x() * block_size_x() + thread_x(); \
        if (i < n) { \
            v4f at = coordinates[i], in = out[i]; \
            (void)at, (void)in; \
            __VA_ARGS__; \
        } \
    }

KERNEL(sample_1d, out[i] = sample_1(15, at.x, t->image, t->sampler, false, 0, 0))
KERNEL(sample_2d, out[i] = sample_2(15, at.x, at.y, t->image, t->sampler, false, 0, 0))
KERNEL(sample_3d, out[i] = sample_3(15, at.x, at.y, at.z, t->image, t->sampler, false, 0, 0))
KERNEL(sample_1d_layered, out[i] = sample_1_layered(15, at.x, at.z, t->image, t->sampler, false, 0, 0))
KERNEL(sample_2d_layered, out[i] = sample_2_layered(15, at.x, at.y, at.z, t->image, t->sampler, false, 0, 0))
KERNEL(load_1d, out[i] = load_1(15, whole(at.x), t->image, 0, 0))
KERNEL(load_2d, out[i] = load_2(15, whole(at.x), whole(at.y), t->image, 0, 0))
KERNEL(load_2d_half, out[i] = __builtin_convertvector(load_2_half(15, whole(at.x), whole(at.y), t->image, 0, 0), v4f))
KERNEL(load_3d, out[i] = load_3(15, whole(at.x), whole(at.y), whole(at.z), t->image, 0, 0))
KERNEL(store_2d, store_2(in, 15, whole(at.x), whole(at.y), t->image, 0, 0))
KERNEL(store_2d_half, store_2_half(__builtin_convertvector(in, v4h), 15, whole(at.x), whole(at.y), t->image, 0, 0))
KERNEL(store_2d_layered, store_2_layered(in, 15, whole(at.x), whole(at.y), whole(at.z), t->image, 0, 0))
/* The level follows the coordinates. */
KERNEL(load_level_1d_layered, out[i] = load_level_1_layered(15, whole(at.x), whole(at.z), whole(at.w), t->image, 0, 0))
KERNEL(load_level_2d, out[i] = load_level_2(15, whole(at.x), whole(at.y), whole(at.w), t->image, 0, 0))
KERNEL(load_level_3d, out[i] = load_level_3(15, whole(at.x), whole(at.y), whole(at.z), whole(at.w), t->image, 0, 0))
KERNEL(store_level_2d_layered, store_level_2_layered(in, 15, whole(at.x), whole(at.y), whole(at.z), whole(at.w), t->image, 0, 0))
KERNEL(atomic_add_2d, out[i].x = __builtin_bit_cast(float, atomic_add_2(whole(in.x), whole(at.x), whole(at.y), t->image, 0, 0)))
KERNEL(size_2d_layered, out[i] = size_2_layered(15, 0, t->image, 0, 0))
KERNEL(size_level_3d, out[i] = size_3(15, whole(at.w), t->image, 0, 0))
KERNEL(fetch, out[i] = fetch_format(t->image.lo, whole(at.x), 0, 0, 0))
KERNEL(store_formatted, store_format(in, t->image.lo, whole(at.x), 0, 0, 0))
/* Format 16_16 (5) of SNORM (1). */
KERNEL(fetch_as_shorts, out[i] = fetch_typed(t->image.lo, whole(at.x), 0, 0, 5 | 1 << 4, 0))

/* A texture reference: a variable of 88 bytes with the address of a texture object. */
struct Reference {
    int description[18];
    Texture object;
    int format[2];
};
extern "C" {
__device__ struct Reference reference;
}

EXPORTED void sample_reference_2d(v4f *out, const v4f *coordinates, unsigned n) {
    unsigned i = block_x() * block_size_x() + thread_x();
    if (i < n) {
        Texture t = reference.object;
        out[i] = sample_2(15, coordinates[i].x, coordinates[i].y, t->image, t->sampler, false, 0, 0);
    }
}

EXPORTED void fetch_reference(v4f *out, const v4f *coordinates, unsigned n) {
    unsigned i = block_x() * block_size_x() + thread_x();
    if (i < n)
        out[i] = fetch_format(reference.object->image.lo, whole(coordinates[i].x), 0, 0, 0);
}
