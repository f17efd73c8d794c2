/* Kernels that the device stops: each ends its queue with an error that says where and why. One wave a block. */
#include "device.h"

namespace faults {

/* Writes behind a base; a template, so that the name of the kernel is a mangled one. */
template <typename T> static __device__ void put(T *out, long index, T value) {
    out[index + thread_x()] = value;
}
template <typename T> __global__ void store(T *out, long index) {
    put(out, index, (T)1);
}
template __global__ void store<float>(float *, long);

/* Every fourth lane only. */
__global__ void some_lanes(unsigned *out, long index) {
    if (thread_x() % 4 == 0)
        out[index + thread_x()] = 1;
}

/* A scalar load. */
__global__ void scalar(const unsigned *in, long index) {
    if (in[index] == 1)
        __builtin_trap();
}

/* Local memory through a pointer that may be one to global memory as well. */
__global__ void local(unsigned *out, long index) {
    __shared__ unsigned part[64];
    unsigned *volatile chosen = index < 0 ? out : part;
    part[thread_x()] = 0;
    chosen[index + thread_x()] = 1;
}

/* An array of the work-item. */
__global__ void scratch(unsigned *out, long index) {
    volatile unsigned mine[16];
    for (unsigned n = 0; n < 16; ++n)
        mine[n] = n;
    mine[index] = 1;
    out[thread_x()] = mine[3];
}

__global__ void odd(unsigned *out, long index) {
    __atomic_fetch_add((unsigned *)((char *)(out + index) + 2), 1, __ATOMIC_RELAXED);
}

/* A failed assertion compiled without text. */
__global__ void traps(unsigned *out, long index) {
    if (index >= 0)
        __builtin_trap();
    out[thread_x()] = 1;
}

/* An instruction that no compiler emits. */
__global__ void packed(unsigned *out, long index) {
#ifdef __gfx90a__
    asm volatile("image_load_pck v0, v0, s[0:7] dmask:0x1" ::: "v0");
#endif
    out[index + thread_x()] = 1;
}

} /* namespace faults */
