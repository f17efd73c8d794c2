/* Kernels of many kinds with one signature: each work-item writes one number, or its block the numbers of its work-items.
 * Blocks have 256 work-items. What the numbers are, a model on the host computes. */
#include "device.h"

typedef unsigned int u32;
typedef unsigned long u64;
typedef unsigned short u16;
typedef unsigned char u8;

enum { BLOCK = 256 };

#define KERNEL(name) EXPORTED void name(u32 *out, const u32 *a, const u32 *b, u32 n)
#define EACH(name, ...) \
    KERNEL(name) { \
        u32 i = block_x() * BLOCK + thread_x(); \
        if (i < n) { \
            u32 x = a[i], y = b[i]; \
            out[i] = (__VA_ARGS__); \
        } \
    }

static __device__ inline float as_float(u32 bits) { return __builtin_bit_cast(float, bits); }
static __device__ inline u32 as_bits(float value) { return __builtin_bit_cast(u32, value); }
static __device__ inline double wide(u32 x) { return (double)(int)x; }
static __device__ inline u32 fold(u64 bits) { return (u32)(bits >> 32) ^ (u32)bits; }
static __device__ inline u32 fold(double value) { return fold(__builtin_bit_cast(u64, value)); }
/* A float between -32768 and 32767, a multiple of 1/4. */
static __device__ inline float small(u32 x) { return (float)((int)x >> 14) * 0.25f; }

/* Integers. */
EACH(mix_integers, (x ^ y << 7) * 2654435761u + (y >> 3))
EACH(multiply_high, (u32)((u64)x * y >> 32) ^ (u32)((long)(int)x * (int)y >> 32))
EACH(divide_signed, (u32)((int)x / (int)(y | 1)) + 3 * (u32)((int)x % (int)(y >> 8 | 1)))
EACH(divide_unsigned, x / (y >> 16 | 1) ^ x % (y | 1))
EACH(divide_long, fold(((u64)x << 32 | y) / ((u64)y << 7 | 1)) + fold(((u64)y << 32 | x) % ((u64)x | 1)))
EACH(add_long, fold(((u64)x << 32 | y) + ((u64)y << 32 | x) - (u64)x * y))
EACH(shift_long, fold(((u64)x << 32 | y) >> (y & 63) ^ ((u64)y << 32 | x) << (x & 63)) + fold((u64)((long)((u64)x << 32 | y) >> (x & 63))))
EACH(count_bits, (u32)__builtin_popcount(x) | (u32)__builtin_clz(y | 1) << 8 | (u32)__builtin_ctz(x | 1u << 31) << 16)
EACH(reverse_bits, __builtin_bitreverse32(x) ^ __builtin_bswap32(y))
EACH(rotate, (x << (y & 31) | x >> (32 - (y & 31) & 31)) + (y << 13 | y >> 19))
EACH(narrow_integers, (u32)(u8)(x + y) | (u32)(u16)((short)x * (short)y) << 16)
EACH(saturate, (u32)__builtin_elementwise_add_sat((int)x, (int)y) ^ __builtin_elementwise_sub_sat(x, y))
EACH(least_and_greatest, ((int)x < (int)y ? x : y) ^ (x > y ? x : y) << 1)

/* Floats. */
EACH(fused_multiply_add, as_bits(__builtin_fmaf(small(x), small(y), small(x ^ y))))
EACH(divide_floats, as_bits(small(x) / (small(y) + 0.125f)))
EACH(square_root, as_bits(__builtin_sqrtf(__builtin_fabsf(small(x)))) ^ as_bits(small(y) * 3.0f))
EACH(round_floats, as_bits(__builtin_floorf(small(x))) ^ as_bits(__builtin_truncf(small(y))) ^ as_bits(__builtin_rintf(small(x + y))))
EACH(convert_floats, (u32)(int)small(x) ^ as_bits((float)y) ^ as_bits((float)(int)x))
EACH(compare_floats, (u32)(as_float(x) < as_float(y)) | (u32)(as_float(x) != as_float(y)) << 1 | (u32)!(as_float(x) >= as_float(y)) << 2)
EACH(half_floats, (u32)__builtin_bit_cast(u16, (_Float16)((_Float16)(float)(x & 255) * (_Float16)(float)(y & 7) + (_Float16)0.5f)))
EACH(doubles, fold(wide(x) * wide(y) + 0.5) ^ fold(wide(x) - wide(y) * 3.0))
EACH(divide_doubles, fold(wide(x) / (wide(y) + 0.5)))
EACH(root_of_double, fold(__builtin_sqrt(__builtin_fabs(wide(x) + wide(y)))))
EACH(fused_doubles, fold(__builtin_fma(wide(x), wide(y), wide(x ^ y))))

/* Control flow and private memory. */
KERNEL(collatz) {
    u32 i = block_x() * BLOCK + thread_x();
    if (i >= n)
        return;
    u32 steps = 0;
    for (u64 value = (a[i] & 0xffff) + 1; value != 1; ++steps)
        value = value & 1 ? 3 * value + 1 : value / 2;
    out[i] = steps;
}
KERNEL(choose) {
    u32 i = block_x() * BLOCK + thread_x();
    if (i >= n)
        return;
    u32 x = a[i], y = b[i];
    switch (x & 7) {
    case 0: out[i] = x + y; break;
    case 1: out[i] = x - y; break;
    case 2: out[i] = x * y; break;
    case 3: out[i] = x & y; break;
    case 4: out[i] = x | y; break;
    case 5: out[i] = x ^ y; break;
    default: out[i] = ~x;
    }
}
KERNEL(private_array) {
    u32 i = block_x() * BLOCK + thread_x();
    if (i >= n)
        return;
    u32 own[16];
    for (u32 k = 0; k < 16; ++k)
        own[k] = a[i] * (k + 1);
    u32 sum = 0, at = b[i] & 15;
    for (u32 k = 0; k < 16; ++k) {
        sum = sum * 31 + own[at];
        own[at] = sum;
        at = (at * 5 + 3) & 15;
    }
    out[i] = sum;
}
static __device__ __attribute__((noinline)) u32 greatest_divisor(u32 x, u32 y) { return y == 0 ? x : greatest_divisor(y, x % y); }
KERNEL(call_functions) {
    u32 i = block_x() * BLOCK + thread_x();
    if (i < n)
        out[i] = greatest_divisor(a[i] & 0xfff, b[i] & 0xfff);
}
KERNEL(random_walk) {
    u32 i = block_x() * BLOCK + thread_x();
    if (i >= n)
        return;
    u32 state = a[i] | 1;
    for (u32 k = 0; k < 32; ++k) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
    }
    out[i] = state;
}
KERNEL(checksum) {
    u32 i = block_x() * BLOCK + thread_x();
    if (i >= n)
        return;
    u32 sum = ~0u;
    for (u32 k = 0; k < 4; ++k) {
        sum ^= (a[i] >> 8 * k) & 255;
        for (u32 bit = 0; bit < 8; ++bit)
            sum = sum & 1 ? sum >> 1 ^ 0xedb88320u : sum >> 1;
    }
    out[i] = ~sum;
}
KERNEL(search) {
    u32 i = block_x() * BLOCK + thread_x();
    if (i >= n)
        return;
    /* The squares of numbers are in order. */
    u32 low = 0, high = 65536, wanted = b[i];
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (middle * middle < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    out[i] = low;
}

/* Memory. */
KERNEL(gather) {
    u32 i = block_x() * BLOCK + thread_x();
    if (i < n)
        out[i] = a[(i * 37 + 11) % n] + ((const u16 *)b)[2 * i + 1] + ((const u8 *)a)[4 * i + 2];
}
KERNEL(scatter) {
    u32 i = block_x() * BLOCK + thread_x();
    if (i < n)
        out[(i * 5 + 3) & (n - 1)] = a[i] ^ b[i];
}
struct four { u32 part[4]; };
KERNEL(copy_wide) {
    u32 i = block_x() * BLOCK + thread_x();
    if (i < n / 4) {
        four value = ((const four *)a)[i];
        value.part[0] += value.part[3];
        ((four *)out)[i] = value;
    }
}
KERNEL(bytes_and_words) {
    u32 i = block_x() * BLOCK + thread_x();
    if (i >= n)
        return;
    u8 *bytes = (u8 *)(out + i);
    bytes[0] = (u8)a[i];
    bytes[1] = (u8)(b[i] >> 8);
    ((u16 *)bytes)[1] = (u16)(a[i] >> 16);
}
__constant__ u32 WEIGHTS[5] = {1, 4, 6, 4, 1};
KERNEL(stencil) {
    u32 i = block_x() * BLOCK + thread_x();
    if (i >= n)
        return;
    u32 sum = 0;
    for (u32 k = 0; k < 5; ++k)
        sum += WEIGHTS[k] * a[(i + k + n - 2) % n];
    out[i] = sum;
}
KERNEL(multiply_matrices) {
    /* 32 by 32, the numbers of a times those of b. */
    u32 i = block_x() * BLOCK + thread_x();
    if (i >= n)
        return;
    u32 sum = 0;
    for (u32 k = 0; k < 32; ++k)
        sum += a[i / 32 * 32 + k] * b[k * 32 + i % 32];
    out[i] = sum;
}

/* A block. */
KERNEL(reverse_block) {
    __shared__ u32 tile[BLOCK];
    u32 t = thread_x(), base = block_x() * BLOCK;
    tile[t] = a[base + t];
    block_barrier();
    out[base + t] = tile[BLOCK - 1 - t];
}
KERNEL(transpose_block) {
    __shared__ u32 tile[16][17];
    u32 t = thread_x(), base = block_x() * BLOCK;
    tile[t / 16][t % 16] = a[base + t];
    block_barrier();
    out[base + t] = tile[t % 16][t / 16];
}
KERNEL(reduce_block) {
    __shared__ u32 sums[BLOCK];
    u32 t = thread_x(), base = block_x() * BLOCK;
    sums[t] = a[base + t];
    block_barrier();
    for (u32 half = BLOCK / 2; half > 0; half /= 2) {
        if (t < half)
            sums[t] += sums[t + half];
        block_barrier();
    }
    out[base + t] = sums[0];
}
KERNEL(scan_block) {
    __shared__ u32 sums[2][BLOCK];
    u32 t = thread_x(), base = block_x() * BLOCK, from = 0;
    sums[0][t] = a[base + t];
    block_barrier();
    for (u32 distance = 1; distance < BLOCK; distance *= 2) {
        sums[1 - from][t] = sums[from][t] + (t >= distance ? sums[from][t - distance] : 0);
        from = 1 - from;
        block_barrier();
    }
    out[base + t] = sums[from][t];
}
KERNEL(sort_block) {
    __shared__ u32 keys[BLOCK];
    u32 t = thread_x(), base = block_x() * BLOCK;
    keys[t] = a[base + t];
    block_barrier();
    for (u32 size = 2; size <= BLOCK; size *= 2) {
        for (u32 stride = size / 2; stride > 0; stride /= 2) {
            u32 other = t ^ stride;
            if (other > t) {
                bool up = (t & size) == 0;
                u32 x = keys[t], y = keys[other];
                if ((x > y) == up) {
                    keys[t] = y;
                    keys[other] = x;
                }
            }
            block_barrier();
        }
    }
    out[base + t] = keys[t];
}
KERNEL(histogram_block) {
    __shared__ u32 counts[BLOCK];
    u32 t = thread_x(), base = block_x() * BLOCK;
    counts[t] = 0;
    block_barrier();
    for (u32 k = 0; k < 4; ++k)
        __atomic_fetch_add(&counts[a[base + t] >> 8 * k & 255], 1, __ATOMIC_RELAXED);
    block_barrier();
    out[base + t] = counts[t];
}
KERNEL(exchange_lanes) {
    u32 i = block_x() * BLOCK + thread_x();
    u32 lane = thread_x() & 31;
    /* Every second lane gets its neighbour's number; both are in the same half of a wave. */
    u32 from = (thread_x() & 32) | (lane ^ 1);
    out[i] = (u32)__builtin_amdgcn_ds_bpermute((int)(from * 4), (int)a[i]) + b[i];
}
KERNEL(first_lanes) {
    u32 i = block_x() * BLOCK + thread_x();
    /* The same in all lanes of a wave of any size. */
    u32 number = (u32)__builtin_amdgcn_readfirstlane((int)(block_x() * 3 + 1));
    out[i] = number + a[i];
}

/* Atomics of all blocks. The numbers written do not depend on the order. */
KERNEL(add_atomically) {
    u32 i = block_x() * BLOCK + thread_x();
    __atomic_fetch_add(&out[a[i] & (n - 1)], b[i], __ATOMIC_RELAXED);
}
KERNEL(greatest_atomically) {
    u32 i = block_x() * BLOCK + thread_x();
    __atomic_fetch_max(&out[a[i] & 63], b[i], __ATOMIC_RELAXED);
}
KERNEL(swap_atomically) {
    u32 i = block_x() * BLOCK + thread_x();
    u32 *place = &out[a[i] & 63], before = __atomic_load_n(place, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(place, &before, before * 3 + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}
KERNEL(add_long_atomically) {
    u32 i = block_x() * BLOCK + thread_x();
    __atomic_fetch_add((u64 *)out + (a[i] & 63), (u64)b[i] << 20, __ATOMIC_RELAXED);
}
KERNEL(look_back) {
    /* A chain of blocks: each adds its number to that of the block before, which it waits for. */
    __shared__ u32 ticket;
    if (thread_x() == 0)
        ticket = __atomic_fetch_add(&out[n - 1], 1, __ATOMIC_RELAXED);
    block_barrier();
    if (thread_x() != 0)
        return;
    u32 before = 0;
    if (ticket > 0) {
        u64 *place = (u64 *)out + ticket - 1, value;
        while (!((value = __atomic_load_n(place, __ATOMIC_ACQUIRE)) >> 32))
            __builtin_amdgcn_s_sleep(1);
        before = (u32)value;
    }
    __atomic_store_n((u64 *)out + ticket, 1ul << 32 | (before + a[ticket]), __ATOMIC_RELEASE);
}
