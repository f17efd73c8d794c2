/* Kernels whose time inside is known: what each one spends its cycles on is in its name. */
#include "device.h"

#define ONE_WAVE __attribute__((amdgpu_flat_work_group_size(1, 1024)))

/* Every multiply-add needs the result of the one before. */
EXPORTED ONE_WAVE void dependent_chain(float *out, int rounds) {
    float value = (float)thread_x();
    for (int i = 0; i < rounds; ++i) {
#pragma unroll
        for (int n = 0; n < 32; ++n)
            value = __builtin_fmaf(value, 0.5f, 1.0f);
    }
    out[block_x() * 256 + thread_x()] = value;
}

/* Eight chains side by side, so that no multiply-add has to wait for the one before it. */
EXPORTED void independent_chains(float *out, int rounds) {
    float value[8];
    for (int n = 0; n < 8; ++n)
        value[n] = (float)(thread_x() + n);
    for (int i = 0; i < rounds; ++i) {
#pragma unroll
        for (int n = 0; n < 64; ++n)
            value[n % 8] = __builtin_fmaf(value[n % 8], 0.5f, 1.0f);
    }
    float sum = 0;
    for (int n = 0; n < 8; ++n)
        sum += value[n];
    out[block_x() * 256 + thread_x()] = sum;
}

/* Lanes read local memory at distances of `stride` words: 1 has no conflicts, 32 all in one bank. */
EXPORTED void bank_conflicts(float *out, int rounds, int stride) {
    __shared__ float words[8192];
    unsigned t = thread_x();
#pragma clang loop unroll(disable) vectorize(disable)
    for (unsigned at = t; at < 8192; at += 256)
        words[at] = (float)at;
    block_barrier();
    unsigned at = t * (unsigned)stride & 8191;
    float sum = 0;
    for (int i = 0; i < rounds; ++i) {
        sum += words[at];
        at ^= (unsigned)i & 1;
        __asm__ volatile("" : "+v"(at));
    }
    out[block_x() * 256 + t] = sum;
}

/* Odd lanes take square roots, even ones divide: each wave goes through both. */
EXPORTED void divergent_branch(float *out, int rounds) {
    float value = (float)(thread_x() + 1);
    for (int i = 0; i < rounds; ++i) {
        if (thread_x() & 1) {
#pragma unroll
            for (int n = 0; n < 16; ++n)
                value = __builtin_amdgcn_sqrtf(value) + 1.0f;
        } else {
#pragma unroll
            for (int n = 0; n < 16; ++n)
                value = __builtin_amdgcn_rcpf(value) + 1.0f;
        }
    }
    out[block_x() * 256 + thread_x()] = value;
}

/* Reads and writes memory once, and does next to nothing with it. */
EXPORTED void memory_stream(float *out, const float *in, unsigned count) {
    unsigned stride = __builtin_amdgcn_grid_size_x();
    for (unsigned at = block_x() * 256 + thread_x(); at < count; at += stride)
        out[at] = in[at] + 1.0f;
}

/* One lane follows a chain of pointers: nothing but waiting for memory. */
EXPORTED ONE_WAVE void pointer_chase(unsigned long *out, unsigned long *next, int rounds) {
    typedef unsigned long __attribute__((address_space(1))) *pointer;
    pointer at = (pointer)next;
    __asm__ volatile("" : "+v"(at));
#pragma unroll 1
    for (int i = 0; i < rounds; ++i)
        at = (pointer)*at;
    if (thread_x() == 0)
        out[block_x()] = (unsigned long)at - (unsigned long)next;
}

/* The first wave of four computes four times as long as the others, which wait for it at the barrier. */
EXPORTED void barrier_imbalance(float *out, int rounds, int work) {
    float value = (float)thread_x();
    int slow = __builtin_amdgcn_readfirstlane(thread_x() / 64 == 0);
    for (int i = 0; i < rounds; ++i) {
        int steps = slow ? work * 4 : work;
        for (int n = 0; n < steps; ++n)
            value = __builtin_fmaf(value, 0.5f, 1.0f);
        __builtin_amdgcn_s_barrier();
    }
    out[block_x() * 256 + thread_x()] = value;
}

/* Sleeps, in units of 64 cycles. */
EXPORTED ONE_WAVE void sleeper(unsigned *out, int rounds) {
    for (int i = 0; i < rounds; ++i)
        __builtin_amdgcn_s_sleep(8);
    out[block_x() * 64 + thread_x()] = (unsigned)rounds;
}

#if defined(__gfx90a__) || defined(__gfx942__)
typedef float f32x16 __attribute__((ext_vector_type(16)));

/* Matrix instructions back to back. */
EXPORTED void matrix_chain(float *out, int rounds) {
    f32x16 first = {}, second = {};
    float a = (float)(thread_x() & 3), b = 1.0f;
    for (int i = 0; i < rounds; ++i) {
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            first = __builtin_amdgcn_mfma_f32_32x32x2f32(a, b, first, 0, 0, 0);
            second = __builtin_amdgcn_mfma_f32_32x32x2f32(b, a, second, 0, 0, 0);
        }
    }
    float sum = 0;
    for (int n = 0; n < 16; ++n)
        sum += first[n] + second[n];
    out[block_x() * 256 + thread_x()] = sum;
}
#else
EXPORTED void matrix_chain(float *out, int rounds) {
    out[block_x() * 256 + thread_x()] = (float)rounds;
}
#endif

/* Two phases of multiply-adds, one after the other. */
static __device__ __attribute__((noinline)) float phase_one(float value, int rounds) {
    for (int i = 0; i < rounds; ++i) {
#pragma unroll
        for (int n = 0; n < 16; ++n)
            value = __builtin_fmaf(value, 0.5f, 1.0f);
    }
    return value;
}

static __device__ inline __attribute__((always_inline)) float phase_two(float value, int rounds) {
    for (int i = 0; i < rounds; ++i) {
#pragma unroll
        for (int n = 0; n < 16; ++n)
            value = __builtin_fmaf(value, 0.25f, 2.0f);
    }
    return value;
}

/* `first` to `second` is the ratio of the times of the phases; the first is a call, the second inlined. */
EXPORTED void two_phases(float *out, int first, int second) {
    float value = (float)thread_x();
    value = phase_one(value, first);
    value = phase_two(value, second);
    out[block_x() * 256 + thread_x()] = value;
}

/* Lane masks: the first `active` lanes of each wave compute; the others sit out. */
EXPORTED void lane_mask(float *out, int active, int rounds) {
    float value = (float)thread_x();
    if ((int)(thread_x() & 63) < active) {
        for (int i = 0; i < rounds; ++i)
            value = __builtin_fmaf(value, 0.5f, 1.0f);
        out[block_x() * 256 + thread_x()] = value;
    }
}
