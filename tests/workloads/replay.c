/* replay MODE: kernels that change their own input, in memory of one kind each; prints and checks what one run leaves.
 *
 * device      memory of hipMalloc, and a variable of the device that counts its runs
 * managed     memory of hipMallocManaged
 * pinned      memory of hipHostMalloc
 * registered  memory of the program that was registered
 * fine        fine-grained memory of the device
 * pooled      memory of hipMallocAsync
 * behind      a list in pinned memory to which memory of the device points
 * graph       memory of hipMalloc, in a graph that is launched twice */
#include "fatbin.h"
#include "workload.h"

#include <string.h>

enum { COUNT = 256, BLOCK = 64, BLOCKS = COUNT / BLOCK, FINE_GRAINED = 1 };

static void STUB(increment)(uint32_t *out, const uint32_t *in, uint32_t count) { STUB_BODY(increment, &out, &in, &count); }
static void STUB(counting)(uint32_t *out) { STUB_BODY(counting, &out); }
static uint32_t launches;

EMBED_KERNELS("varying.hipfb") {
    REGISTER(increment, "increment_kernel");
    REGISTER(counting, "counting_kernel");
    __hipRegisterVar(fatbin_handle, &launches, (char *)"launches", (char *)"launches", 0, sizeof launches, 0, 0);
}

static void expect(const uint32_t *values, uint32_t wanted) {
    for (uint32_t i = 0; i < COUNT; ++i)
        if (values[i] != wanted + i)
            FAIL("element %u is %u instead of %u", i, values[i], wanted + i);
}

/* Adds 1 twice, in place. */
static void twice(uint32_t *data, uint32_t *seen) {
    static uint32_t host[COUNT];
    for (uint32_t i = 0; i < COUNT; ++i)
        host[i] = i;
    HIP(hipMemcpy(data, host, sizeof host, hipMemcpyDefault));
    for (int round = 0; round < 2; ++round)
        LAUNCH(increment, linear(BLOCKS), linear(BLOCK), 0, NULL, seen, seen, COUNT);
    HIP(hipDeviceSynchronize());
    HIP(hipMemcpy(host, data, sizeof host, hipMemcpyDefault));
    expect(host, 2);
}

static void in_graph(uint32_t *data) {
    static uint32_t host[COUNT];
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t exec;
    for (uint32_t i = 0; i < COUNT; ++i)
        host[i] = i;
    HIP(hipMemcpy(data, host, sizeof host, hipMemcpyHostToDevice));
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal));
    LAUNCH(increment, linear(BLOCKS), linear(BLOCK), 0, stream, data, data, COUNT);
    HIP(hipStreamEndCapture(stream, &graph));
    HIP(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    for (int round = 0; round < 2; ++round)
        HIP(hipGraphLaunch(exec, stream));
    HIP(hipStreamSynchronize(stream));
    HIP(hipMemcpy(host, data, sizeof host, hipMemcpyDeviceToHost));
    expect(host, 2);
}

static int is(const char *mode, const char *name) { return strcmp(mode, name) == 0; }

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    static _Alignas(4096) uint32_t own[4096];
    uint32_t *data = NULL, *seen = NULL;
    if (is(mode, "device") || is(mode, "graph") || is(mode, "behind"))
        HIP(hipMalloc((void **)&data, COUNT * sizeof *data));
    else if (is(mode, "managed"))
        HIP(hipMallocManaged((void **)&data, COUNT * sizeof *data, hipMemAttachGlobal));
    else if (is(mode, "pinned"))
        HIP(hipHostMalloc((void **)&data, COUNT * sizeof *data, hipHostMallocDefault));
    else if (is(mode, "fine"))
        HIP(hipExtMallocWithFlags((void **)&data, COUNT * sizeof *data, FINE_GRAINED));
    else if (is(mode, "pooled"))
        HIP(hipMallocAsync((void **)&data, COUNT * sizeof *data, NULL));
    else if (is(mode, "registered")) {
        data = own;
        HIP(hipHostRegister(own, sizeof own, 0));
        HIP(hipHostGetDevicePointer((void **)&seen, own, 0));
    } else
        FAIL("there is no mode `%s`", mode);
    if (is(mode, "graph")) {
        in_graph(data);
    } else {
        if (is(mode, "behind")) {
            void *pinned, **table;
            HIP(hipHostMalloc(&pinned, 4096, hipHostMallocDefault));
            HIP(hipMalloc((void **)&table, sizeof pinned));
            HIP(hipMemcpy(table, &pinned, sizeof pinned, hipMemcpyHostToDevice));
        }
        twice(data, seen ? seen : data);
    }
    if (is(mode, "device")) {
        uint32_t counted = 0;
        for (int round = 0; round < 3; ++round)
            LAUNCH(counting, linear(1), linear(BLOCK), 0, NULL, data);
        HIP(hipMemcpy(&counted, data, sizeof counted, hipMemcpyDeviceToHost));
        if (counted != 3)
            FAIL("the kernel ran %u times instead of 3", counted);
    }
    printf("%s is right\n", mode);
    return 0;
}
