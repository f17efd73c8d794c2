/* Kernels that request something of the host: printf, a failed assertion, memory. */
#include "hostcall.h"

EXPORTED void print_kernel(unsigned lines) {
    unsigned id = block_x() * block_size_x() + thread_x();
    if (id == 0)
        printf("%s: 100%% of %d, %u, %#lx, %c, %.2f, %*d, [%-6s], %p\n", "values", -5, 7u, 1ul << 40, 'x', 2.5, 4, 42, "ab", (void *)0x10);
    if (thread_x() % 64 < lines)
        printf("block %u lane %u\n", block_x(), thread_x());
}

/* What the runtime's headers make of assert(value < limit). */
EXPORTED void assert_kernel(const unsigned *values, unsigned limit) {
    if (values[thread_x()] < limit)
        return;
    const char format[] = "%s:%u: %s: Device-side assertion `%s' failed.\n";
    u64 message = message_begin(1);
    message = message_text(message, format, sizeof format, false);
    message = message_text(message, "hostcall.hip", sizeof "hostcall.hip", false);
    u64 line = 13;
    message = message_part(message, &line, 1, false);
    message = message_text(message, "assert_kernel", sizeof "assert_kernel", false);
    message_text(message, "value < limit", sizeof "value < limit", true);
    __builtin_trap();
}

/* Each block has memory of its own for a while. */
EXPORTED void memory_kernel(unsigned *sums, unsigned bytes) {
    if (thread_x() != 0)
        return;
    u64 wanted[8] = {0, bytes};
    unsigned *memory = (unsigned *)hostcall(SERVICE_DEVICE_MEMORY, wanted).first;
    unsigned sum = 0;
    if (memory) {
        for (unsigned n = 0; n < bytes / 4; ++n)
            memory[n] = n + block_x();
        for (unsigned n = 0; n < bytes / 4; ++n)
            sum += memory[n];
        u64 given[8] = {(u64)memory};
        hostcall(SERVICE_DEVICE_MEMORY, given);
    }
    sums[block_x()] = sum;
}
