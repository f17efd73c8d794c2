/* capture-nodes MODE: graphs of nodes of any type and of the driver's functions, and launches in other forms than the usual one. Each
 * checks its results.
 *
 * any        nodes of every type from one function, with other parameters between launches
 * driver     nodes of the driver's functions
 * values     values that streams and graphs write, and wait for
 * released   a stream that waits for a value which the host writes, and for one that another stream writes
 * into       a stream capture that goes on in a graph, and whose nodes the program asks for
 * launches   launches with a configuration, and launches in parts */
#include "fatbin.h"
#include "workload.h"

#include <string.h>

enum { COUNT = 4096, BLOCK = 64, BLOCKS = COUNT / BLOCK, ROWS = 16, ROW = COUNT / ROWS * sizeof(uint32_t) };

static void STUB(increment)(uint32_t *out, const uint32_t *in, uint32_t count) { STUB_BODY(increment, &out, &in, &count); }

EMBED_KERNELS("varying.hipfb") { REGISTER(increment, "increment_kernel"); }

static uint32_t in[COUNT], other[COUNT], out[COUNT], count = COUNT;

static void check(int ok, const char *what, long index) {
    if (!ok)
        FAIL("%s: element %ld is wrong", what, index);
}

static void fill(uint32_t seed) {
    for (uint32_t i = 0; i < COUNT; ++i) {
        in[i] = i * 3 + seed;
        other[i] = i * 5 + seed;
        out[i] = 0;
    }
}

static void double_all(void *data) {
    uint32_t *values = data;
    for (int i = 0; i < COUNT; ++i)
        values[i] *= 2;
}

static hipGraphNodeParams copy_of(void *to, void *from, int kind) {
    return (hipGraphNodeParams){.type = hipGraphNodeTypeMemcpy,
                                .memcpy.copyParams = {.srcPtr = {from, ROW, ROW, ROWS},
                                                      .dstPtr = {to, ROW, ROW, ROWS},
                                                      .extent = {ROW, ROWS, 1},
                                                      .kind = kind}};
}

static hipGraphNodeParams kernel_of(void **arguments) {
    return (hipGraphNodeParams){.type = hipGraphNodeTypeKernel,
                                .kernel = {.blockDim = linear(BLOCK),
                                           .func = (void *)STUB(increment),
                                           .gridDim = linear(BLOCKS),
                                           .kernelParams = arguments}};
}

/* Allocated memory is cleared, filled from the host, incremented here and in a graph inside, copied to other memory, back, and freed. */
static void run_any(void) {
    uint32_t *device;
    hipStream_t stream;
    hipEvent_t event;
    hipGraph_t graph, inner;
    hipGraphExec_t exec;
    hipGraphNode_t nodes[11], inside, found[11], ends[11];
    HIP(hipStreamCreate(&stream));
    HIP(hipEventCreate(&event));
    HIP(hipMalloc((void **)&device, sizeof in));
    HIP(hipGraphCreate(&graph, 0));
    HIP(hipGraphCreate(&inner, 0));

    hipGraphNodeParams memory = {.type = hipGraphNodeTypeMemAlloc,
                                 .alloc = {.allocType = 1, .locationType = 1, .bytesize = sizeof in}};
    HIP(hipGraphAddNode(&nodes[0], graph, NULL, 0, &memory));
    void *allocated = memory.alloc.dptr;
    hipGraphNodeParams clear = {.type = hipGraphNodeTypeMemset,
                                .memset = {.dst = allocated, .elementSize = 4, .height = 1, .width = COUNT}};
    HIP(hipGraphAddNode(&nodes[1], graph, &nodes[0], 1, &clear));
    hipGraphNodeParams host = {.type = hipGraphNodeTypeHost, .host = {double_all, other}};
    HIP(hipGraphAddNode(&nodes[2], graph, &nodes[1], 1, &host));
    hipGraphNodeParams up = copy_of(allocated, in, hipMemcpyHostToDevice);
    HIP(hipGraphAddNode(&nodes[3], graph, &nodes[1], 1, &up));
    void *arguments[] = {&allocated, &allocated, &count}, *over[] = {&device, &allocated, &count},
         *again[] = {&device, &device, &count};
    hipGraphNodeParams kernel = kernel_of(arguments), outer = kernel_of(over), last = kernel_of(again);
    HIP(hipGraphAddNode(&inside, inner, NULL, 0, &kernel));
    hipGraphNodeParams child = {.type = hipGraphNodeTypeGraph, .graph = inner};
    HIP(hipGraphAddNode(&nodes[4], graph, &nodes[3], 1, &child));
    hipGraphNodeParams record = {.type = hipGraphNodeTypeEventRecord, .event = event},
                       wait = {.type = hipGraphNodeTypeWaitEvent, .event = event}, empty = {.type = hipGraphNodeTypeEmpty};
    HIP(hipGraphAddNode(&nodes[5], graph, &nodes[4], 1, &record));
    HIP(hipGraphAddNode(&nodes[6], graph, &nodes[5], 1, &wait));
    HIP(hipGraphAddNode(&nodes[7], graph, &nodes[6], 1, &empty));
    /* Replaced below, before anything is launched. */
    HIP(hipGraphAddNode(&nodes[8], graph, &nodes[7], 1, &last));
    HIP(hipGraphNodeSetParams(nodes[8], &outer));
    hipGraphNodeParams down = copy_of(out, device, hipMemcpyDeviceToHost);
    HIP(hipGraphAddNode(&nodes[9], graph, &nodes[8], 1, &down));
    hipGraphNodeParams gone = {.type = hipGraphNodeTypeMemFree, .free = allocated};
    HIP(hipGraphAddNode(&nodes[10], graph, &nodes[9], 1, &gone));

    size_t room = 11;
    HIP(hipGraphGetEdges(graph, found, ends, &room));
    check(room == 10, "edges", (long)room);
    room = 1;
    HIP(hipGraphNodeGetDependencies(nodes[9], found, &room));
    check(room == 1 && found[0] == nodes[8], "dependencies", (long)room);

    HIP(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    for (uint32_t round = 0; round < 3; ++round) {
        fill(round * 7);
        if (round == 2) {
            hipGraphNodeParams changed = copy_of(allocated, other, hipMemcpyHostToDevice);
            hipGraphNodeParams silent = {.type = hipGraphNodeTypeHost, .host = {double_all, in}};
            HIP(hipGraphExecNodeSetParams(exec, nodes[2], &silent));
            HIP(hipGraphExecNodeSetParams(exec, nodes[3], &changed));
        }
        HIP(hipGraphLaunch(exec, stream));
        HIP(hipStreamSynchronize(stream));
        for (uint32_t i = 0; i < COUNT; ++i)
            check(out[i] == (round == 2 ? other[i] : in[i]) + 2, "any", i);
    }
    HIP(hipGraphExecDestroy(exec));
    HIP(hipGraphDestroy(graph));
    HIP(hipGraphDestroy(inner));
    HIP(hipFree(device));
    HIP(hipEventDestroy(event));
    HIP(hipStreamDestroy(stream));
}

static HIP_MEMCPY3D driver_copy(void *to, int to_type, void *from, int from_type) {
    return (HIP_MEMCPY3D){.srcMemoryType = from_type,
                          .srcHost = from,
                          .srcDevice = from,
                          .srcPitch = ROW,
                          .srcHeight = ROWS,
                          .dstMemoryType = to_type,
                          .dstHost = to,
                          .dstDevice = to,
                          .dstPitch = ROW,
                          .dstHeight = ROWS,
                          .WidthInBytes = ROW,
                          .Height = ROWS,
                          .Depth = 1};
}

static void run_driver(void) {
    enum { UNIFIED = 11 };
    uint32_t *device;
    hipStream_t stream;
    hipCtx_t context;
    hipGraph_t graph;
    hipGraphExec_t exec;
    hipGraphNode_t nodes[6];
    HIP(hipStreamCreate(&stream));
    HIP(hipMalloc((void **)&device, sizeof in));
    HIP(hipCtxGetCurrent(&context));
    HIP(hipGraphCreate(&graph, 0));
    hipMemAllocNodeParams memory = {.allocType = 1, .locationType = 1, .bytesize = sizeof in};
    HIP(hipGraphAddMemAllocNode(&nodes[0], graph, NULL, 0, &memory));
    const HIP_MEMCPY3D up = driver_copy(memory.dptr, hipMemoryTypeDevice, in, hipMemoryTypeHost),
                       up_other = driver_copy(memory.dptr, UNIFIED, other, UNIFIED),
                       over = driver_copy(device, hipMemoryTypeDevice, memory.dptr, hipMemoryTypeDevice),
                       down = driver_copy(out, hipMemoryTypeHost, device, hipMemoryTypeDevice);
    HIP(hipDrvGraphAddMemcpyNode(&nodes[1], graph, &nodes[0], 1, &up, context));
    HIP(hipDrvGraphAddMemcpyNode(&nodes[2], graph, &nodes[1], 1, &up, context));
    HIP(hipDrvGraphMemcpyNodeSetParams(nodes[2], &over));
    /* The first row gets a value. */
    hipMemsetParams first = {.dst = device, .elementSize = 4, .height = 1, .value = 77, .width = COUNT / ROWS};
    HIP(hipDrvGraphAddMemsetNode(&nodes[3], graph, &nodes[2], 1, &first, context));
    HIP(hipDrvGraphAddMemcpyNode(&nodes[4], graph, &nodes[3], 1, &down, context));
    HIP(hipDrvGraphAddMemFreeNode(&nodes[5], graph, &nodes[4], 1, memory.dptr));
    HIP(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    for (uint32_t round = 0; round < 3; ++round) {
        fill(round * 9);
        if (round == 2) {
            first.value = 78;
            HIP(hipDrvGraphExecMemcpyNodeSetParams(exec, nodes[1], &up_other, context));
            HIP(hipDrvGraphExecMemsetNodeSetParams(exec, nodes[3], &first, context));
        }
        HIP(hipGraphLaunch(exec, stream));
        HIP(hipStreamSynchronize(stream));
        for (uint32_t i = 0; i < COUNT; ++i) {
            const uint32_t wanted = i < COUNT / ROWS ? first.value : round == 2 ? other[i] : in[i];
            check(out[i] == wanted, "driver", i);
        }
    }
    /* Both sides of a copy by addresses alone. */
    fill(50);
    const HIP_MEMCPY3D there = driver_copy(device, UNIFIED, in, UNIFIED), back = driver_copy(out, UNIFIED, device, UNIFIED);
    HIP(hipDrvMemcpy3D(&there));
    HIP(hipDrvMemcpy3D(&back));
    check(!memcmp(in, out, sizeof in), "unified", 0);
    HIP(hipDrvGraphMemcpyNodeGetParams(nodes[2], &(HIP_MEMCPY3D){0}));
    HIP(hipGraphExecDestroy(exec));
    HIP(hipGraphDestroy(graph));
    HIP(hipFree(device));
    HIP(hipStreamDestroy(stream));
}

static hipStreamBatchMemOpParams operation(int which, void *address, uint64_t value) {
    return (hipStreamBatchMemOpParams){.value = {.operation = which, .address = address, .value = value}};
}

static void run_values(void) {
    uint32_t *device;
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t exec;
    hipGraphNode_t node, copy;
    HIP(hipStreamCreate(&stream));
    HIP(hipMalloc((void **)&device, 16));
    HIP(hipMemset(device, 0, 16));
    hipStreamBatchMemOpParams list[] = {operation(hipStreamMemOpWriteValue32, device, 5),
                                        operation(hipStreamMemOpWriteValue64, device + 2, 1ull << 32 | 6),
                                        operation(hipStreamMemOpWaitValue32, device, 5)};
    HIP(hipStreamBatchMemOp(stream, 3, list, 0));
    HIP(hipMemcpyAsync(out, device, 16, hipMemcpyDeviceToHost, stream));
    HIP(hipStreamSynchronize(stream));
    check(out[0] == 5 && out[1] == 0 && out[2] == 6 && out[3] == 1, "batch", 0);

    HIP(hipGraphCreate(&graph, 0));
    hipStreamBatchMemOpParams second[] = {operation(hipStreamMemOpWriteValue32, device + 1, 8)};
    hipBatchMemOpNodeParams first = {.count = 3, .paramArray = list}, changed = {.count = 1, .paramArray = second};
    HIP(hipCtxGetCurrent(&first.ctx));
    changed.ctx = first.ctx;
    HIP(hipGraphAddBatchMemOpNode(&node, graph, NULL, 0, &changed));
    HIP(hipGraphBatchMemOpNodeSetParams(node, &first));
    HIP(hipGraphAddMemcpyNode1D(&copy, graph, &node, 1, out, device, 16, hipMemcpyDeviceToHost));
    HIP(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    for (uint32_t round = 0; round < 3; ++round) {
        HIP(hipMemset(device, 0, 16));
        if (round == 2)
            HIP(hipGraphExecBatchMemOpNodeSetParams(exec, node, &changed));
        HIP(hipGraphLaunch(exec, stream));
        HIP(hipStreamSynchronize(stream));
        check(round == 2 ? !out[0] && out[1] == 8 : out[0] == 5 && out[3] == 1, "values", round);
    }
    HIP(hipGraphExecDestroy(exec));
    HIP(hipGraphDestroy(graph));

    /* Captured from a stream. */
    HIP(hipMemset(device, 0, 16));
    HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    HIP(hipStreamBatchMemOp(stream, 1, second, 0));
    HIP(hipStreamEndCapture(stream, &graph));
    HIP(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    HIP(hipGraphLaunch(exec, stream));
    HIP(hipStreamSynchronize(stream));
    HIP(hipMemcpy(out, device, 16, hipMemcpyDeviceToHost));
    check(out[1] == 8, "captured", 1);
    HIP(hipGraphExecDestroy(exec));
    HIP(hipGraphDestroy(graph));
    HIP(hipFree(device));
    HIP(hipStreamDestroy(stream));
}

static void run_released(void) {
    enum { AT_LEAST = 0 };
    uint32_t *flags, *device, *result;
    hipStream_t streams[2];
    for (int i = 0; i < 2; ++i)
        HIP(hipStreamCreateWithFlags(&streams[i], hipStreamNonBlocking));
    HIP(hipHostMalloc((void **)&flags, 4096, 0));
    HIP(hipHostMalloc((void **)&result, sizeof in, 0));
    HIP(hipMalloc((void **)&device, sizeof in));
    flags[0] = flags[1] = flags[2] = 0;
    for (uint32_t round = 1; round < 4; ++round) {
        fill(round * 17);
        hipStreamBatchMemOpParams host = operation(hipStreamMemOpWaitValue32, flags + 2, round);
        HIP(hipStreamWaitValue32(streams[0], flags, round, AT_LEAST, ~0u));
        HIP(hipStreamBatchMemOp(streams[0], 1, &host, 0));
        HIP(hipStreamWaitValue32(streams[0], flags + 1, round, AT_LEAST, ~0u));
        LAUNCH(increment, linear(BLOCKS), linear(BLOCK), 0, streams[0], device, device, COUNT);
        HIP(hipMemcpyAsync(result, device, sizeof in, hipMemcpyDeviceToHost, streams[0]));
        HIP(hipMemcpyAsync(device, in, sizeof in, hipMemcpyHostToDevice, streams[1]));
        HIP(hipStreamWriteValue32(streams[1], flags + 1, round, 0));
        *(volatile uint32_t *)flags = round;
        *(volatile uint32_t *)(flags + 2) = round;
        HIP(hipStreamSynchronize(streams[0]));
        HIP(hipStreamSynchronize(streams[1]));
        for (uint32_t i = 0; i < COUNT; ++i)
            check(result[i] == in[i] + 1, "released", i);
    }
    HIP(hipHostFree(flags));
    HIP(hipHostFree(result));
    HIP(hipFree(device));
    for (int i = 0; i < 2; ++i)
        HIP(hipStreamDestroy(streams[i]));
}

static void run_into(void) {
    enum { SET = 1, ACTIVE = 1 };
    uint32_t *device;
    hipStream_t stream;
    hipGraph_t graph, asked, ended;
    hipGraphExec_t exec;
    hipGraphNode_t up, own, *listed;
    size_t number;
    int status;
    unsigned long long id;
    HIP(hipStreamCreate(&stream));
    HIP(hipMalloc((void **)&device, sizeof in));
    HIP(hipGraphCreate(&graph, 0));
    HIP(hipGraphAddMemcpyNode1D(&up, graph, NULL, 0, device, in, sizeof in, hipMemcpyHostToDevice));
    HIP(hipStreamBeginCaptureToGraph(stream, graph, &up, NULL, 1, hipStreamCaptureModeGlobal));
    LAUNCH(increment, linear(BLOCKS), linear(BLOCK), 0, stream, device, device, COUNT);
    HIP(hipStreamGetCaptureInfo_v2(stream, &status, &id, &asked, (const hipGraphNode_t **)&listed, &number));
    check(status == ACTIVE && number == 1, "asked", (long)number);
    /* A node of the program's own takes the place of the last one of the stream. */
    void *arguments[] = {&device, &device, &count};
    hipGraphNodeParams kernel = kernel_of(arguments);
    HIP(hipGraphAddNode(&own, asked, listed, 1, &kernel));
    HIP(hipStreamUpdateCaptureDependencies(stream, &own, 1, SET));
    HIP(hipMemcpyAsync(out, device, sizeof in, hipMemcpyDeviceToHost, stream));
    HIP(hipStreamEndCapture(stream, &ended));
    HIP(hipGraphInstantiate(&exec, ended, NULL, NULL, 0));
    for (uint32_t round = 0; round < 3; ++round) {
        fill(round * 11);
        HIP(hipGraphLaunch(exec, stream));
        HIP(hipStreamSynchronize(stream));
        for (uint32_t i = 0; i < COUNT; ++i)
            check(out[i] == in[i] + 2, "into", i);
    }
    HIP(hipStreamGetCaptureInfo_v2(stream, &status, &id, NULL, NULL, NULL));
    check(status != ACTIVE, "not asked", status);
    HIP(hipGraphExecDestroy(exec));
    HIP(hipGraphDestroy(graph));
    HIP(hipFree(device));
    HIP(hipStreamDestroy(stream));
}

static void run_launches(void) {
    uint32_t *device;
    hipStream_t stream;
    hipFunction_t function;
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    HIP(hipMalloc((void **)&device, sizeof in));
    fill(13);
    HIP(hipMemcpyAsync(device, in, sizeof in, hipMemcpyHostToDevice, stream));
    void *arguments[] = {&device, &device, &count};
    hipLaunchAttribute together = {.id = hipLaunchAttributeCooperative, .value.cooperative = 1};
    for (unsigned attributes = 0; attributes < 2; ++attributes) {
        const hipLaunchConfig_t config = {linear(BLOCKS), linear(BLOCK), 0, stream, &together, attributes};
        HIP(hipLaunchKernelExC(&config, (const void *)STUB(increment), arguments));
        const HIP_LAUNCH_CONFIG driver = {BLOCKS, 1, 1, BLOCK, 1, 1, 0, stream, &together, attributes};
        HIP(hipGetFuncBySymbol(&function, (const void *)STUB(increment)));
        HIP(hipDrvLaunchKernelEx(&driver, function, arguments, NULL));
    }
    HIP(hipConfigureCall(linear(BLOCKS), linear(BLOCK), 0, stream));
    HIP(hipSetupArgument(&device, sizeof device, 0));
    HIP(hipSetupArgument(&device, sizeof device, 8));
    HIP(hipSetupArgument(&count, sizeof count, 16));
    HIP(hipLaunchByPtr((const void *)STUB(increment)));
    HIP(hipMemcpyAsync(out, device, sizeof in, hipMemcpyDeviceToHost, stream));
    HIP(hipStreamSynchronize(stream));
    for (uint32_t i = 0; i < COUNT; ++i)
        check(out[i] == in[i] + 5, "launches", i);
    HIP(hipFree(device));
    HIP(hipStreamDestroy(stream));
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {
        {"any", run_any}, {"driver", run_driver}, {"values", run_values}, {"released", run_released}, {"into", run_into}, {"launches", run_launches},
    };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; ++i)
        if (!strcmp(mode, modes[i].name)) {
            modes[i].run();
            puts("ok");
            return 0;
        }
    FAIL("no mode %s", mode);
}
