/* A kernel whose messages go to a buffer that the host prints (-mprintf-kind=buffered). */
#include "device.h"

extern "C" __device__ int printf(const char *format, ...);

/* What the compiler calls for room in the buffer: the device libraries' function. The buffer begins with the offset behind
 * the last message and the bytes that there are for messages. */
extern "C" __device__ __attribute__((used)) char *__printf_alloc(unsigned bytes) {
    typedef __attribute__((address_space(4))) const char *Arguments;
    unsigned *buffer = *(unsigned *__attribute__((address_space(4))) const *)((Arguments)__builtin_amdgcn_implicitarg_ptr() + 72);
    unsigned offset = __atomic_load_n(&buffer[0], __ATOMIC_RELAXED);
    do {
        if (offset + bytes > buffer[1])
            return nullptr;
    } while (!__atomic_compare_exchange_n(&buffer[0], &offset, offset + bytes, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return (char *)(buffer + 2) + offset;
}

EXPORTED void print_to_buffer(unsigned lines, const char *format) {
    unsigned id = block_x() * block_size_x() + thread_x();
    if (id == 0) {
        printf("%s: 100%% of %d, %u, %#lx, %c, %.2f, %*d, [%-6s], %p\n", "values", -5, 7u, 1ul << 40, 'x', 2.5, 4, 42, "ab", (void *)0x10);
        printf(format, 3);
    }
    if (thread_x() % 64 < lines)
        printf("block %u lane %u\n", block_x(), thread_x());
}
