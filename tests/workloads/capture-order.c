/* capture-order MODE [ROUNDS]: work in streams, in an order that a replay has to keep. Each checks its results.
 *
 * kinds      one kernel in each kind of stream: null, blocking, non-blocking, per-thread and priority, in this order
 * polled     pinned memory that an asynchronous copy reads, and that the host changes when a kernel behind the copy has stored a
 *            flag for which it looks; a kernel that does not read that memory is launched then
 * chained    pinned memory that the device alone writes and reads, by copies and kernels in one stream */
#include "fatbin.h"
#include "workload.h"

#include <string.h>

#define PER_THREAD ((hipStream_t)2)

enum { BLOCK = 64, COUNT = 1 << 18, FEW = 4096, MOST_ROUNDS = 64 };

static void STUB(increment)(uint32_t *out, const uint32_t *in, uint32_t count) { STUB_BODY(increment, &out, &in, &count); }

EMBED_KERNELS("varying.hipfb") { REGISTER(increment, "increment_kernel"); }

static uint32_t out[COUNT];

static void check(const char *what, const uint32_t *device, uint32_t first) {
    HIP(hipMemcpy(out, device, sizeof out, hipMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; ++i)
        if (out[i] != first + (uint32_t)i)
            FAIL("%s: element %d is %u and not %u", what, i, out[i], first + (uint32_t)i);
}

static void run_kinds(void) {
    enum { KINDS = 5 };
    hipStream_t streams[KINDS] = {NULL, NULL, NULL, PER_THREAD, NULL};
    uint32_t *in, *device;
    HIP(hipStreamCreate(&streams[1]));
    HIP(hipStreamCreateWithFlags(&streams[2], hipStreamNonBlocking));
    HIP(hipStreamCreateWithPriority(&streams[4], hipStreamNonBlocking, -1));
    HIP(hipMalloc((void **)&in, sizeof out));
    HIP(hipMalloc((void **)&device, sizeof out));
    for (uint32_t i = 0; i < COUNT; ++i)
        out[i] = i;
    HIP(hipMemcpy(in, out, sizeof out, hipMemcpyHostToDevice));
    for (int kind = 0; kind < KINDS; ++kind) {
        HIP(hipMemset(device, 0, sizeof out));
        HIP(hipDeviceSynchronize());
        LAUNCH(increment, linear(COUNT / BLOCK), linear(BLOCK), 0, streams[kind], device, in, COUNT);
        HIP(hipStreamSynchronize(streams[kind]));
        check("kinds", device, 1);
    }
}

static void run_polled(long rounds) {
    uint32_t *pinned, *device, *zero, *other;
    volatile uint32_t *flags;
    hipStream_t copies, launches;
    HIP(hipStreamCreateWithFlags(&copies, hipStreamNonBlocking));
    HIP(hipStreamCreateWithFlags(&launches, hipStreamNonBlocking));
    HIP(hipHostMalloc((void **)&pinned, sizeof out, hipHostMallocDefault));
    HIP(hipHostMalloc((void **)&flags, MOST_ROUNDS * sizeof *flags, hipHostMallocDefault));
    HIP(hipMalloc((void **)&device, (size_t)rounds * sizeof out));
    HIP(hipMalloc((void **)&zero, FEW * sizeof *zero));
    HIP(hipMalloc((void **)&other, FEW * sizeof *other));
    HIP(hipMemset(zero, 0, FEW * sizeof *zero));
    HIP(hipDeviceSynchronize());
    for (long round = 0; round < rounds; ++round) {
        for (uint32_t i = 0; i < COUNT; ++i)
            pinned[i] = (uint32_t)round * 1000 + i;
        if (round > 0)
            LAUNCH(increment, linear(FEW / BLOCK), linear(BLOCK), 0, launches, other, zero, FEW);
        HIP(hipMemcpyAsync(device + round * COUNT, pinned, sizeof out, hipMemcpyHostToDevice, copies));
        uint32_t *flag = (uint32_t *)&flags[round];
        LAUNCH(increment, linear(1), linear(BLOCK), 0, copies, flag, zero, 1);
        while (!flags[round])
            ;
    }
    HIP(hipDeviceSynchronize());
    for (long round = 0; round < rounds; ++round)
        check("polled", device + round * COUNT, (uint32_t)round * 1000);
}

static void run_chained(long rounds) {
    uint32_t *pinned, *first, *second, *third;
    hipStream_t stream;
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    HIP(hipHostMalloc((void **)&pinned, sizeof out, hipHostMallocDefault));
    HIP(hipMalloc((void **)&first, sizeof out));
    HIP(hipMalloc((void **)&second, sizeof out));
    HIP(hipMalloc((void **)&third, sizeof out));
    for (uint32_t i = 0; i < COUNT; ++i)
        out[i] = i;
    memset(pinned, 0, sizeof out);
    HIP(hipMemcpy(first, out, sizeof out, hipMemcpyHostToDevice));
    for (long round = 0; round < rounds; ++round) {
        /* To the host and back, and read there by a kernel. */
        HIP(hipMemcpyAsync(pinned, first, sizeof out, hipMemcpyDeviceToHost, stream));
        HIP(hipMemcpyAsync(second, pinned, sizeof out, hipMemcpyHostToDevice, stream));
        LAUNCH(increment, linear(COUNT / BLOCK), linear(BLOCK), 0, stream, third, pinned, COUNT);
        LAUNCH(increment, linear(COUNT / BLOCK), linear(BLOCK), 0, stream, first, second, COUNT);
    }
    HIP(hipStreamSynchronize(stream));
    check("copied", second, (uint32_t)rounds - 1);
    check("read by a kernel", third, (uint32_t)rounds);
    check("counted", first, (uint32_t)rounds);
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "kinds";
    const long rounds = number_argument(argc, argv, 2, 6);
    if (rounds > MOST_ROUNDS)
        FAIL("more than %d rounds", MOST_ROUNDS);
    if (!strcmp(mode, "kinds"))
        run_kinds();
    else if (!strcmp(mode, "polled"))
        run_polled(rounds);
    else if (!strcmp(mode, "chained"))
        run_chained(rounds);
    else
        FAIL("no mode %s", mode);
    puts("ok");
    return 0;
}
