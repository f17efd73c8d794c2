/* The small kernels of basic.hip, registered, with stubs; and one unit of checked GPU work. */
#ifndef RPD_BASIC_H
#define RPD_BASIC_H

#include "fatbin.h"
#include "workload.h"

static void STUB(empty_kernel)(void) {
    dim3 grid, block;
    size_t shared;
    hipStream_t stream;
    void *args[1] = {NULL};
    if (__hipPopCallConfiguration(&grid, &block, &shared, &stream) == hipSuccess)
        (void)hipLaunchKernel((const void *)STUB(empty_kernel), grid, block, args, shared, stream);
}

static void STUB(fill_kernel)(uint32_t *data, uint32_t value, uint32_t count) {
    STUB_BODY(fill_kernel, &data, &value, &count);
}

static void STUB(churn_kernel)(uint32_t *data, uint32_t rounds, uint32_t count) {
    STUB_BODY(churn_kernel, &data, &rounds, &count);
}

EMBED_KERNELS("basic.hipfb") {
    REGISTER(empty_kernel, "empty_kernel");
    REGISTER(fill_kernel, "fill_kernel");
    REGISTER(churn_kernel, "churn_kernel");
}

enum { BASIC_COUNT = 1024, BASIC_BLOCK = 64 };

/* `launches` times: fills device memory on `stream` and copies it back, checking every element.
 * Makes 1 hipMalloc and 1 hipFree, and per launch 1 dispatch, 1 device-to-host copy, 1 synchronisation. */
static inline void checked_work(hipStream_t stream, uint32_t seed, long launches) {
    static _Thread_local uint32_t host[BASIC_COUNT];
    uint32_t *device;
    HIP(hipMalloc((void **)&device, sizeof host));
    for (long n = 0; n < launches; ++n) {
        uint32_t value = seed + (uint32_t)n;
        LAUNCH(fill_kernel, linear(BASIC_COUNT / BASIC_BLOCK), linear(BASIC_BLOCK), 0, stream, device, value,
               BASIC_COUNT);
        HIP(hipMemcpyAsync(host, device, sizeof host, hipMemcpyDeviceToHost, stream));
        HIP(hipStreamSynchronize(stream));
        for (uint32_t i = 0; i < BASIC_COUNT; ++i) {
            if (host[i] != value + i)
                FAIL("launch %ld, element %u: %u instead of %u", n, i, host[i], value + i);
        }
    }
    HIP(hipFree(device));
}

#endif
