/* capture-graphs MODE: graphs that are made of nodes. Each checks its results.
 *
 * nodes      a host function, copies of boxes, kernels and another source for a copy between launches
 * memory     memory that the graph allocates and frees
 * symbols    copies to and from a device variable
 * pinned     a kernel that reads pinned memory itself, which the host changes between launches
 * chain      kernels that change memory one after the other, and one beside them: in nodes, of which one is changed between
 *            launches, and in captured streams
 * nested     a kernel of a graph in a graph
 * beside     streams that capture while another thread allocates, copies, waits and frees */
#include "fatbin.h"
#include "workload.h"

#include <pthread.h>
#include <string.h>

enum { COUNT = 4096, BLOCK = 64, BLOCKS = COUNT / BLOCK, ROWS = 16 };

static void STUB(increment)(uint32_t *out, const uint32_t *in, uint32_t count) { STUB_BODY(increment, &out, &in, &count); }

static void STUB(counting)(uint32_t *out) { STUB_BODY(counting, &out); }

static uint32_t launches;

EMBED_KERNELS("varying.hipfb") {
    REGISTER(increment, "increment_kernel");
    REGISTER(counting, "counting_kernel");
    __hipRegisterVar(fatbin_handle, &launches, (char *)"launches", (char *)"launches", 0, sizeof launches, 0, 0);
}

static void check(int ok, const char *what, long index) {
    if (!ok)
        FAIL("%s: element %ld is wrong", what, index);
}

static hipMemcpy3DParms box(void *to, void *from, int kind) {
    const size_t row = COUNT / ROWS * sizeof(uint32_t);
    return (hipMemcpy3DParms){.srcPtr = {from, row, row, ROWS},
                              .dstPtr = {to, row, row, ROWS},
                              .extent = {row, ROWS, 1},
                              .kind = kind};
}

static hipKernelNodeParams node_of(void **arguments) {
    return (hipKernelNodeParams){.blockDim = linear(BLOCK),
                                 .func = (void *)STUB(increment),
                                 .gridDim = linear(BLOCKS),
                                 .kernelParams = arguments};
}

static void double_all(void *data) {
    uint32_t *values = data;
    for (int i = 0; i < COUNT; ++i)
        values[i] *= 2;
}

static void run_nodes(void) {
    /* Pageable, on the stack and off it. */
    static uint32_t in[COUNT], other[COUNT];
    uint32_t out[COUNT], *device, count = COUNT;
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t exec;
    hipGraphNode_t nodes[4];
    HIP(hipStreamCreate(&stream));
    HIP(hipMalloc((void **)&device, sizeof in));
    HIP(hipGraphCreate(&graph, 0));
    const hipHostNodeParams host = {double_all, in};
    HIP(hipGraphAddHostNode(&nodes[0], graph, NULL, 0, &host));
    const hipMemcpy3DParms up = box(device, in, hipMemcpyHostToDevice), down = box(out, device, hipMemcpyDeviceToHost);
    HIP(hipGraphAddMemcpyNode(&nodes[1], graph, NULL, 0, &up));
    void *arguments[] = {&device, &device, &count};
    const hipKernelNodeParams kernel = node_of(arguments);
    HIP(hipGraphAddKernelNode(&nodes[2], graph, &nodes[1], 1, &kernel));
    HIP(hipGraphAddMemcpyNode(&nodes[3], graph, &nodes[2], 1, &down));
    HIP(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    for (int round = 0; round < 3; ++round) {
        if (round == 2) {
            hipMemcpy3DParms changed = box(device, other, hipMemcpyHostToDevice);
            HIP(hipGraphExecMemcpyNodeSetParams(exec, nodes[1], &changed));
        }
        for (int i = 0; i < COUNT; ++i) {
            in[i] = 0;
            other[i] = (uint32_t)(i * 3 + round);
        }
        HIP(hipGraphLaunch(exec, stream));
        HIP(hipStreamSynchronize(stream));
        for (int i = 0; i < COUNT; ++i)
            check(out[i] == (round == 2 ? other[i] : 0) + 1, "nodes", i);
    }
    HIP(hipGraphExecDestroy(exec));
    HIP(hipGraphDestroy(graph));
    HIP(hipFree(device));
    HIP(hipStreamDestroy(stream));
}

static void run_memory(void) {
    static uint32_t in[COUNT], out[COUNT];
    uint32_t count = COUNT;
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t exec;
    hipGraphNode_t nodes[5];
    hipMemAllocNodeParams memory = {.allocType = 1, .locationType = 1, .bytesize = sizeof in};
    HIP(hipStreamCreate(&stream));
    HIP(hipGraphCreate(&graph, 0));
    HIP(hipGraphAddMemAllocNode(&nodes[0], graph, NULL, 0, &memory));
    HIP(hipGraphAddMemcpyNode1D(&nodes[1], graph, &nodes[0], 1, memory.dptr, in, sizeof in, hipMemcpyHostToDevice));
    void *arguments[] = {&memory.dptr, &memory.dptr, &count};
    const hipKernelNodeParams kernel = node_of(arguments);
    HIP(hipGraphAddKernelNode(&nodes[2], graph, &nodes[1], 1, &kernel));
    HIP(hipGraphAddMemcpyNode1D(&nodes[3], graph, &nodes[2], 1, out, memory.dptr, sizeof in, hipMemcpyDeviceToHost));
    HIP(hipGraphAddMemFreeNode(&nodes[4], graph, &nodes[3], 1, memory.dptr));
    HIP(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    for (uint32_t round = 0; round < 3; ++round) {
        for (uint32_t i = 0; i < COUNT; ++i)
            in[i] = i * round;
        HIP(hipGraphLaunch(exec, stream));
        HIP(hipStreamSynchronize(stream));
        for (uint32_t i = 0; i < COUNT; ++i)
            check(out[i] == in[i] + 1, "memory", i);
    }
    HIP(hipGraphExecDestroy(exec));
    HIP(hipGraphDestroy(graph));
    HIP(hipStreamDestroy(stream));
}

static void run_symbols(void) {
    static uint32_t in, other, after;
    uint32_t *device;
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t exec;
    hipGraphNode_t nodes[3];
    HIP(hipStreamCreate(&stream));
    HIP(hipMalloc((void **)&device, sizeof *device));
    HIP(hipGraphCreate(&graph, 0));
    HIP(hipGraphAddMemcpyNodeToSymbol(&nodes[0], graph, NULL, 0, &launches, &in, sizeof in, 0, hipMemcpyHostToDevice));
    void *arguments[] = {&device};
    const hipKernelNodeParams kernel = {
        .blockDim = linear(1), .func = (void *)STUB(counting), .gridDim = linear(1), .kernelParams = arguments};
    HIP(hipGraphAddKernelNode(&nodes[1], graph, &nodes[0], 1, &kernel));
    HIP(hipGraphAddMemcpyNodeFromSymbol(&nodes[2], graph, &nodes[1], 1, &after, &launches, sizeof after, 0,
                                        hipMemcpyDeviceToHost));
    HIP(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    for (uint32_t round = 0; round < 3; ++round) {
        in = 10 * round;
        other = 1000;
        if (round == 2)
            HIP(hipGraphExecMemcpyNodeSetParamsToSymbol(exec, nodes[0], &launches, &other, sizeof other, 0,
                                                        hipMemcpyHostToDevice));
        HIP(hipGraphLaunch(exec, stream));
        HIP(hipStreamSynchronize(stream));
        check(after == (round == 2 ? other : in) + 1, "symbols", (long)round);
    }
    HIP(hipGraphExecDestroy(exec));
    HIP(hipGraphDestroy(graph));
    HIP(hipFree(device));
    HIP(hipStreamDestroy(stream));
}

static void nothing(void *unused) { (void)unused; }

static void run_pinned(void) {
    static uint32_t out[COUNT];
    uint32_t *pinned, *device, count = COUNT;
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t exec;
    HIP(hipStreamCreate(&stream));
    HIP(hipHostMalloc((void **)&pinned, sizeof out, hipHostMallocDefault));
    HIP(hipMalloc((void **)&device, sizeof out));
    for (int captured = 0; captured < 2; ++captured) {
        if (captured) {
            HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
            LAUNCH(increment, linear(BLOCKS), linear(BLOCK), 0, stream, device, pinned, COUNT);
            HIP(hipLaunchHostFunc(stream, nothing, NULL));
            HIP(hipStreamEndCapture(stream, &graph));
        } else {
            hipGraphNode_t node;
            void *arguments[] = {&device, &pinned, &count};
            const hipKernelNodeParams kernel = node_of(arguments);
            HIP(hipGraphCreate(&graph, 0));
            HIP(hipGraphAddKernelNode(&node, graph, NULL, 0, &kernel));
        }
        HIP(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
        for (uint32_t round = 0; round < 3; ++round) {
            for (uint32_t i = 0; i < COUNT; ++i)
                pinned[i] = i + round * 5 + (uint32_t)captured;
            HIP(hipGraphLaunch(exec, stream));
            HIP(hipStreamSynchronize(stream));
            HIP(hipMemcpy(out, device, sizeof out, hipMemcpyDeviceToHost));
            for (uint32_t i = 0; i < COUNT; ++i)
                check(out[i] == pinned[i] + 1, "pinned", i);
        }
        HIP(hipGraphExecDestroy(exec));
        HIP(hipGraphDestroy(graph));
    }
    HIP(hipHostFree(pinned));
    HIP(hipFree(device));
    HIP(hipStreamDestroy(stream));
}

/* In another thread, with its own stream. */
static void *work_beside(void *from) {
    static uint32_t back[COUNT];
    uint32_t *device;
    hipStream_t own;
    HIP(hipStreamCreateWithFlags(&own, hipStreamNonBlocking));
    HIP(hipMalloc((void **)&device, sizeof back));
    HIP(hipMemcpyAsync(device, from, sizeof back, hipMemcpyHostToDevice, own));
    LAUNCH(increment, linear(BLOCKS), linear(BLOCK), 0, own, device, device, COUNT);
    HIP(hipMemcpyAsync(back, device, sizeof back, hipMemcpyDeviceToHost, own));
    HIP(hipStreamSynchronize(own));
    for (int i = 0; i < COUNT; ++i)
        check(back[i] == ((uint32_t *)from)[i] + 1, "beside", i);
    HIP(hipFree(device));
    HIP(hipStreamDestroy(own));
    return NULL;
}

static void run_beside(void) {
    static uint32_t in[COUNT], out[COUNT];
    uint32_t *device;
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t exec;
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    HIP(hipMalloc((void **)&device, sizeof in));
    for (int round = 0; round < 4; ++round) {
        pthread_t other;
        for (int i = 0; i < COUNT; ++i)
            in[i] = (uint32_t)(i * 7 + round);
        HIP(hipStreamBeginCapture(stream, round % 2 ? hipStreamCaptureModeRelaxed : hipStreamCaptureModeThreadLocal));
        HIP(hipMemcpyAsync(device, in, sizeof in, hipMemcpyHostToDevice, stream));
        if (pthread_create(&other, NULL, work_beside, in))
            FAIL("cannot start %s", "a thread");
        pthread_join(other, NULL);
        LAUNCH(increment, linear(BLOCKS), linear(BLOCK), 0, stream, device, device, COUNT);
        HIP(hipMemcpyAsync(out, device, sizeof out, hipMemcpyDeviceToHost, stream));
        HIP(hipStreamEndCapture(stream, &graph));
        HIP(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
        HIP(hipGraphLaunch(exec, stream));
        HIP(hipStreamSynchronize(stream));
        for (int i = 0; i < COUNT; ++i)
            check(out[i] == in[i] + 1, "captured", i);
        HIP(hipGraphExecDestroy(exec));
        HIP(hipGraphDestroy(graph));
    }
    HIP(hipFree(device));
    HIP(hipStreamDestroy(stream));
}

/* Each element of `out` after a launch of a graph of three increments, of which the second has `second` elements. */
static void launch_chain(hipGraphExec_t exec, hipStream_t stream, uint32_t *in, uint32_t *out, uint32_t round,
                         uint32_t second) {
    for (uint32_t i = 0; i < COUNT; ++i)
        in[i] = i * 3 + round;
    HIP(hipGraphLaunch(exec, stream));
    HIP(hipStreamSynchronize(stream));
    for (uint32_t i = 0; i < COUNT; ++i)
        check(out[i] == in[i] + 2 + (i < second), "chain", i);
}

static void run_chain(void) {
    static uint32_t in[COUNT], out[COUNT];
    uint32_t *device, *side, count = COUNT, half = COUNT / 2;
    hipStream_t stream, other;
    hipEvent_t forked, joined;
    hipGraph_t graph;
    hipGraphExec_t exec;
    hipGraphNode_t nodes[6];
    HIP(hipStreamCreate(&stream));
    HIP(hipStreamCreate(&other));
    HIP(hipEventCreate(&forked));
    HIP(hipEventCreate(&joined));
    HIP(hipMalloc((void **)&device, sizeof in));
    HIP(hipMalloc((void **)&side, sizeof in));
    HIP(hipMemset(side, 0, sizeof in));

    void *arguments[] = {&device, &device, &count}, *beside[] = {&side, &side, &count},
         *fewer[] = {&device, &device, &half};
    const hipKernelNodeParams kernel = node_of(arguments), side_kernel = node_of(beside), changed = node_of(fewer);
    HIP(hipGraphCreate(&graph, 0));
    HIP(hipGraphAddMemcpyNode1D(&nodes[0], graph, NULL, 0, device, in, sizeof in, hipMemcpyHostToDevice));
    HIP(hipGraphAddKernelNode(&nodes[1], graph, &nodes[0], 1, &kernel));
    HIP(hipGraphAddKernelNode(&nodes[2], graph, NULL, 0, &side_kernel));
    HIP(hipGraphAddKernelNode(&nodes[3], graph, &nodes[1], 1, &kernel));
    HIP(hipGraphAddKernelNode(&nodes[4], graph, &nodes[3], 1, &kernel));
    HIP(hipGraphAddMemcpyNode1D(&nodes[5], graph, &nodes[4], 1, out, device, sizeof in, hipMemcpyDeviceToHost));
    HIP(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    HIP(hipGraphDestroy(graph));
    launch_chain(exec, stream, in, out, 0, COUNT);
    HIP(hipGraphExecDestroy(exec));
    /* Its handle stays, because a change names a node. */
    HIP(hipGraphCreate(&graph, 0));
    HIP(hipGraphAddMemcpyNode1D(&nodes[0], graph, NULL, 0, device, in, sizeof in, hipMemcpyHostToDevice));
    HIP(hipGraphAddKernelNode(&nodes[1], graph, &nodes[0], 1, &kernel));
    HIP(hipGraphAddKernelNode(&nodes[3], graph, &nodes[1], 1, &kernel));
    HIP(hipGraphAddKernelNode(&nodes[4], graph, &nodes[3], 1, &kernel));
    HIP(hipGraphAddMemcpyNode1D(&nodes[5], graph, &nodes[4], 1, out, device, sizeof in, hipMemcpyDeviceToHost));
    HIP(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    HIP(hipGraphExecKernelNodeSetParams(exec, nodes[3], &changed));
    launch_chain(exec, stream, in, out, 1, COUNT / 2);
    HIP(hipGraphExecDestroy(exec));
    HIP(hipGraphDestroy(graph));

    HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    HIP(hipEventRecord(forked, stream));
    HIP(hipStreamWaitEvent(other, forked, 0));
    HIP(hipMemcpyAsync(device, in, sizeof in, hipMemcpyHostToDevice, stream));
    LAUNCH(increment, linear(BLOCKS), linear(BLOCK), 0, stream, device, device, COUNT);
    LAUNCH(increment, linear(BLOCKS), linear(BLOCK), 0, other, side, side, COUNT);
    LAUNCH(increment, linear(BLOCKS), linear(BLOCK), 0, stream, device, device, COUNT);
    LAUNCH(increment, linear(BLOCKS), linear(BLOCK), 0, stream, device, device, COUNT);
    HIP(hipEventRecord(joined, other));
    HIP(hipStreamWaitEvent(stream, joined, 0));
    HIP(hipMemcpyAsync(out, device, sizeof in, hipMemcpyDeviceToHost, stream));
    HIP(hipStreamEndCapture(stream, &graph));
    HIP(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    HIP(hipGraphDestroy(graph));
    for (uint32_t round = 2; round < 4; ++round)
        launch_chain(exec, stream, in, out, round, COUNT);
    HIP(hipGraphExecDestroy(exec));
    HIP(hipFree(device));
    HIP(hipFree(side));
    HIP(hipStreamDestroy(stream));
    HIP(hipStreamDestroy(other));
}

/* A kernel of a graph that is a node of another one. */
static void run_nested(void) {
    uint32_t *device, count = COUNT;
    hipGraph_t outer, inner;
    hipGraphExec_t exec;
    hipGraphNode_t node;
    HIP(hipMalloc((void **)&device, COUNT * sizeof *device));
    HIP(hipMemset(device, 0, COUNT * sizeof *device));
    void *arguments[] = {&device, &device, &count};
    const hipKernelNodeParams kernel = node_of(arguments);
    HIP(hipGraphCreate(&inner, 0));
    HIP(hipGraphCreate(&outer, 0));
    HIP(hipGraphAddKernelNode(&node, inner, NULL, 0, &kernel));
    HIP(hipGraphAddChildGraphNode(&node, outer, NULL, 0, inner));
    HIP(hipGraphInstantiate(&exec, outer, NULL, NULL, 0));
    HIP(hipGraphLaunch(exec, NULL));
    HIP(hipDeviceSynchronize());
    HIP(hipGraphExecDestroy(exec));
    HIP(hipGraphDestroy(outer));
    HIP(hipGraphDestroy(inner));
    HIP(hipFree(device));
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    if (!strcmp(mode, "nodes"))
        run_nodes();
    else if (!strcmp(mode, "memory"))
        run_memory();
    else if (!strcmp(mode, "symbols"))
        run_symbols();
    else if (!strcmp(mode, "pinned"))
        run_pinned();
    else if (!strcmp(mode, "chain"))
        run_chain();
    else if (!strcmp(mode, "nested"))
        run_nested();
    else if (!strcmp(mode, "beside"))
        run_beside();
    else
        FAIL("no mode %s", mode);
    puts("ok");
    return 0;
}
