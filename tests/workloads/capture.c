/* capture MODE [ROUNDS]: programs that captures are tried on. Each checks its results.
 *
 * add        vector addition with synchronous copies
 * streams    two streams with asynchronous copies, an event between them, memory from the stream's pool
 * strided    accesses in strides, and a copy of rows with a pitch
 * reduce     a sum in two launches, with local memory
 * hidden     a kernel that reads the sizes of grid and block from hidden arguments, and a device variable
 * pointers   pointers inside structures passed by value, and in device memory
 * managed    managed and mapped host memory that the host writes between launches
 * graph      a graph made by stream capture, launched with host data that change
 * wrong N    as add, with a result that a faulty kernel call changes in round N
 * module     the kernel of hidden, from a module whose variable is set through its address
 * launches   add, whose kernel the runtime launches, and module, whose kernel is launched by its handle
 * shared     as add, with calls that captures do not replay
 * overwrite  memory that the host overwrites as soon as an asynchronous copy from it has begun
 * poll       completion that is asked for in a loop
 * callback   a host function in a stream that writes what is copied next
 * perthread  two threads, each on its own default stream
 * calls N    N calls without data; prints what one costs
 * upload N D N MiB of noise in D different pieces of 16 MiB; prints what a mebibyte costs
 * busy       rounds of copies and launches from four threads, until it is killed */
#include "fatbin.h"
#include "workload.h"

#include <pthread.h>
#include <string.h>

enum { COUNT = 5000, BLOCK = 64, BLOCKS = (COUNT + BLOCK - 1) / BLOCK };

struct arrays {
    uint32_t count;
    uint32_t *out;
    const uint32_t *in;
};

static void STUB(add)(float *out, const float *a, const float *b, uint32_t count) { STUB_BODY(add, &out, &a, &b, &count); }
static void STUB(strided)(float *data, uint32_t stride, uint32_t count) { STUB_BODY(strided, &data, &stride, &count); }
static void STUB(reduce)(uint32_t *out, const uint32_t *in, uint32_t count) { STUB_BODY(reduce, &out, &in, &count); }
static void STUB(sizes)(uint32_t *out, uint32_t count) { STUB_BODY(sizes, &out, &count); }
static void STUB(through_struct)(struct arrays arrays) { STUB_BODY(through_struct, &arrays); }
static void STUB(through_table)(uint32_t **rows, uint32_t rows_count, uint32_t count) {
    STUB_BODY(through_table, &rows, &rows_count, &count);
}

static uint32_t offset_value;

EMBED_KERNELS("capture.hipfb") {
    REGISTER(add, "add_kernel");
    REGISTER(strided, "strided_kernel");
    REGISTER(reduce, "reduce_kernel");
    REGISTER(sizes, "sizes_kernel");
    REGISTER(through_struct, "struct_kernel");
    REGISTER(through_table, "table_kernel");
    __hipRegisterVar(fatbin_handle, &offset_value, (char *)"offset_value", (char *)"offset_value", 0,
                     sizeof offset_value, 0, 0);
}

static void check(int ok, const char *what, long index) {
    if (!ok)
        FAIL("%s: element %ld is wrong", what, index);
}

static void run_add(long rounds, long faulty) {
    static float a[COUNT], b[COUNT], c[COUNT];
    float *da, *db, *dc;
    HIP(hipMalloc((void **)&da, sizeof a));
    HIP(hipMalloc((void **)&db, sizeof b));
    HIP(hipMalloc((void **)&dc, sizeof c));
    for (long round = 0; round < rounds; ++round) {
        for (int i = 0; i < COUNT; ++i) {
            a[i] = (float)(i + round);
            b[i] = (float)(2 * i);
        }
        HIP(hipMemcpy(da, a, sizeof a, hipMemcpyHostToDevice));
        HIP(hipMemcpy(db, b, sizeof b, hipMemcpyHostToDevice));
        LAUNCH(add, linear(BLOCKS), linear(BLOCK), 0, NULL, dc, da, db, round == faulty ? COUNT - 100 : COUNT);
        HIP(hipMemcpy(c, dc, sizeof c, hipMemcpyDeviceToHost));
        for (int i = 0; i < COUNT && faulty < 0; ++i)
            check(c[i] == a[i] + b[i], "sum", i);
    }
    HIP(hipFree(da));
    HIP(hipFree(db));
    HIP(hipFree(dc));
}

static void run_streams(long rounds) {
    hipStream_t streams[2];
    hipEvent_t ready;
    float *host[3], *device[3];
    const size_t bytes = COUNT * sizeof(float);
    for (int i = 0; i < 2; ++i)
        HIP(hipStreamCreateWithFlags(&streams[i], hipStreamNonBlocking));
    HIP(hipEventCreate(&ready));
    for (int i = 0; i < 3; ++i)
        HIP(hipHostMalloc((void **)&host[i], bytes, hipHostMallocDefault));
    for (long round = 0; round < rounds; ++round) {
        for (int i = 0; i < 3; ++i)
            HIP(hipMallocAsync((void **)&device[i], bytes, streams[0]));
        for (int i = 0; i < COUNT; ++i) {
            host[0][i] = (float)(i % 97 + round);
            host[1][i] = 0.5f;
        }
        HIP(hipMemcpyAsync(device[0], host[0], bytes, hipMemcpyHostToDevice, streams[0]));
        HIP(hipMemcpyAsync(device[1], host[1], bytes, hipMemcpyHostToDevice, streams[0]));
        HIP(hipEventRecord(ready, streams[0]));
        HIP(hipStreamWaitEvent(streams[1], ready, 0));
        LAUNCH(add, linear(BLOCKS), linear(BLOCK), 0, streams[1], device[2], device[0], device[1], COUNT);
        HIP(hipMemcpyAsync(host[2], device[2], bytes, hipMemcpyDeviceToHost, streams[1]));
        HIP(hipStreamSynchronize(streams[1]));
        for (int i = 0; i < COUNT; ++i)
            check(host[2][i] == host[0][i] + 0.5f, "stream", i);
        for (int i = 0; i < 3; ++i)
            HIP(hipFreeAsync(device[i], streams[1]));
    }
    HIP(hipDeviceSynchronize());
    for (int i = 0; i < 3; ++i)
        HIP(hipHostFree(host[i]));
    HIP(hipEventDestroy(ready));
    for (int i = 0; i < 2; ++i)
        HIP(hipStreamDestroy(streams[i]));
}

static void run_strided(void) {
    enum { ROWS = 50, WIDTH = 100, PITCH = 128 };
    static float data[COUNT], after[COUNT];
    float *device;
    for (int i = 0; i < COUNT; ++i)
        data[i] = (float)i;
    HIP(hipMalloc((void **)&device, ROWS * PITCH * sizeof(float)));
    HIP(hipMemset(device, 0, ROWS * PITCH * sizeof(float)));
    HIP(hipMemcpy2D(device, PITCH * sizeof(float), data, WIDTH * sizeof(float), WIDTH * sizeof(float), ROWS,
                    hipMemcpyHostToDevice));
    for (uint32_t stride = 2; stride <= 8; stride *= 2)
        LAUNCH(strided, linear(BLOCKS), linear(BLOCK), 0, NULL, device, stride, ROWS * PITCH);
    HIP(hipMemcpy2D(after, WIDTH * sizeof(float), device, PITCH * sizeof(float), WIDTH * sizeof(float), ROWS,
                    hipMemcpyDeviceToHost));
    for (int row = 0; row < ROWS; ++row)
        for (int column = 0; column < WIDTH; ++column) {
            float expected = data[row * WIDTH + column];
            for (int stride = 2; stride <= 8; stride *= 2)
                if ((row * PITCH + column) % stride == 0)
                    expected = expected * 2.0f + 1.0f;
            check(after[row * WIDTH + column] == expected, "stride", row * WIDTH + column);
        }
    HIP(hipFree(device));
}

static void run_reduce(void) {
    static uint32_t in[COUNT];
    uint32_t *device, *partial, *total, sum = 0, result;
    for (uint32_t i = 0; i < COUNT; ++i) {
        in[i] = i * 7 + 1;
        sum += in[i];
    }
    HIP(hipMalloc((void **)&device, sizeof in));
    HIP(hipMalloc((void **)&partial, BLOCKS * sizeof *partial));
    HIP(hipMalloc((void **)&total, 2 * sizeof *total));
    HIP(hipMemcpy(device, in, sizeof in, hipMemcpyHostToDevice));
    LAUNCH(reduce, linear(BLOCKS), linear(BLOCK), 0, NULL, partial, device, COUNT);
    /* 79 partial sums: two blocks, whose sums are added on the host. */
    LAUNCH(reduce, linear(2), linear(BLOCK), 0, NULL, total, partial, BLOCKS);
    uint32_t both[2];
    HIP(hipMemcpy(both, total, sizeof both, hipMemcpyDeviceToHost));
    result = both[0] + both[1];
    check(result == sum, "sum", 0);
    HIP(hipFree(device));
    HIP(hipFree(partial));
    HIP(hipFree(total));
}

static void run_hidden(void) {
    static uint32_t out[COUNT];
    uint32_t *device, value = 11;
    HIP(hipMalloc((void **)&device, sizeof out));
    for (int round = 0; round < 2; ++round) {
        LAUNCH(sizes, linear(3), linear(BLOCK), 0, NULL, device, COUNT);
        HIP(hipMemcpy(out, device, sizeof out, hipMemcpyDeviceToHost));
        for (uint32_t i = 0; i < COUNT; ++i)
            check(out[i] == i * 3 + BLOCK + 1 + (round ? value : 5), "size", i);
        HIP(hipMemcpyToSymbol(&offset_value, &value, sizeof value, 0, hipMemcpyHostToDevice));
    }
    HIP(hipFree(device));
}

static void run_pointers(void) {
    enum { ROWS = 4 };
    static uint32_t in[COUNT], out[COUNT];
    uint32_t *rows[ROWS], **table;
    for (uint32_t i = 0; i < COUNT; ++i)
        in[i] = i ^ 0x55;
    for (int row = 0; row < ROWS; ++row) {
        HIP(hipMalloc((void **)&rows[row], sizeof in));
        HIP(hipMemcpy(rows[row], in, sizeof in, hipMemcpyHostToDevice));
    }
    struct arrays arrays = {COUNT, rows[0], rows[1]};
    LAUNCH(through_struct, linear(BLOCKS), linear(BLOCK), 0, NULL, arrays);
    HIP(hipMalloc((void **)&table, sizeof rows));
    HIP(hipMemcpy(table, rows, sizeof rows, hipMemcpyHostToDevice));
    LAUNCH(through_table, linear(BLOCKS), linear(BLOCK), 0, NULL, table, ROWS, COUNT);
    HIP(hipMemcpy(out, rows[0], sizeof out, hipMemcpyDeviceToHost));
    for (uint32_t i = 0; i < COUNT; ++i)
        check(out[i] == in[i] * 4 + 7, "row", i);
    HIP(hipFree(table));
    for (int row = 0; row < ROWS; ++row)
        HIP(hipFree(rows[row]));
}

static void run_managed(long rounds) {
    uint32_t *managed, *mapped, *device;
    HIP(hipMallocManaged((void **)&managed, COUNT * sizeof *managed, 1));
    HIP(hipHostMalloc((void **)&mapped, COUNT * sizeof *mapped, hipHostMallocDefault));
    for (long round = 0; round < rounds; ++round) {
        for (uint32_t i = 0; i < COUNT; ++i)
            managed[i] = i + (uint32_t)round;
        HIP(hipHostGetDevicePointer((void **)&device, mapped, 0));
        struct arrays arrays = {COUNT, device, managed};
        LAUNCH(through_struct, linear(BLOCKS), linear(BLOCK), 0, NULL, arrays);
        HIP(hipDeviceSynchronize());
        for (uint32_t i = 0; i < COUNT; ++i)
            check(mapped[i] == i + round + 7, "mapped", i);
    }
    HIP(hipFree(managed));
    HIP(hipHostFree(mapped));
}

static void run_graph(void) {
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t exec;
    float *host[3], *device[3];
    const size_t bytes = COUNT * sizeof(float);
    HIP(hipStreamCreate(&stream));
    for (int i = 0; i < 3; ++i) {
        HIP(hipHostMalloc((void **)&host[i], bytes, hipHostMallocDefault));
        HIP(hipMalloc((void **)&device[i], bytes));
    }
    HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    for (int i = 0; i < 2; ++i)
        HIP(hipMemcpyAsync(device[i], host[i], bytes, hipMemcpyHostToDevice, stream));
    LAUNCH(add, linear(BLOCKS), linear(BLOCK), 0, stream, device[2], device[0], device[1], COUNT);
    HIP(hipMemcpyAsync(host[2], device[2], bytes, hipMemcpyDeviceToHost, stream));
    HIP(hipStreamEndCapture(stream, &graph));
    HIP(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < COUNT; ++i) {
            host[0][i] = (float)(i + round);
            host[1][i] = (float)(round * 10);
        }
        HIP(hipGraphLaunch(exec, stream));
        HIP(hipStreamSynchronize(stream));
        for (int i = 0; i < COUNT; ++i)
            check(host[2][i] == host[0][i] + host[1][i], "graph", i);
    }
    HIP(hipGraphExecDestroy(exec));
    HIP(hipGraphDestroy(graph));
    HIP(hipStreamDestroy(stream));
}

static void run_module(void) {
    static uint32_t out[COUNT];
    uint32_t *device, value = 11, count = COUNT;
    hipModule_t module;
    hipFunction_t function;
    void *variable, *arguments[] = {&device, &count};
    size_t size;
    HIP(hipMalloc((void **)&device, sizeof out));
    HIP(hipModuleLoadData(&module, embedded_bundle));
    HIP(hipModuleGetFunction(&function, module, "sizes_kernel"));
    HIP(hipModuleGetGlobal(&variable, &size, module, "offset_value"));
    HIP(hipMemcpy(variable, &value, sizeof value, hipMemcpyHostToDevice));
    HIP(hipModuleLaunchKernel(function, 3, 1, 1, BLOCK, 1, 1, 0, NULL, arguments, NULL));
    HIP(hipMemcpy(out, device, sizeof out, hipMemcpyDeviceToHost));
    for (uint32_t i = 0; i < COUNT; ++i)
        check(out[i] == i * 3 + BLOCK + 1 + value, "size", i);
    HIP(hipModuleUnload(module));
    HIP(hipFree(device));
}

static void run_shared(void) {
    hipIpcMemHandle_t memory;
    hipIpcEventHandle_t shared;
    hipEvent_t event;
    void *address;
    HIP(hipMalloc(&address, 4096));
    HIP(hipIpcGetMemHandle(&memory, address));
    HIP(hipEventCreateWithFlags(&event, hipEventDisableTiming | hipEventInterprocess));
    HIP(hipIpcGetEventHandle(&shared, event));
    run_add(2, -1);
    HIP(hipEventDestroy(event));
    HIP(hipFree(address));
}

/* Copies `value` from pageable memory and back through a kernel that doubles it and adds one, in `stream`. */
static void overwritten(hipStream_t stream, float value) {
    static __thread float data[COUNT], after[COUNT];
    float *device;
    HIP(hipMalloc((void **)&device, sizeof data));
    for (int i = 0; i < COUNT; ++i)
        data[i] = value;
    HIP(hipMemcpyAsync(device, data, sizeof data, hipMemcpyHostToDevice, stream));
    memset(data, 0, sizeof data);
    LAUNCH(strided, linear(BLOCKS), linear(BLOCK), 0, stream, device, 1, COUNT);
    HIP(hipMemcpyAsync(after, device, sizeof after, hipMemcpyDeviceToHost, stream));
    HIP(hipStreamSynchronize(stream));
    for (int i = 0; i < COUNT; ++i)
        check(after[i] == 2 * value + 1, "copy", i);
    HIP(hipFree(device));
}

static void run_poll(void) {
    const hipError_t not_ready = (hipError_t)600;
    hipEvent_t done;
    HIP(hipEventCreate(&done));
    for (int round = 0; round < 3; ++round) {
        float *device, *host;
        HIP(hipMalloc((void **)&device, COUNT * sizeof *device));
        HIP(hipHostMalloc((void **)&host, COUNT * sizeof *host, hipHostMallocDefault));
        HIP(hipMemset(device, 0, COUNT * sizeof *device));
        LAUNCH(strided, linear(BLOCKS), linear(BLOCK), 0, NULL, device, 1, COUNT);
        HIP(hipMemcpyAsync(host, device, COUNT * sizeof *host, hipMemcpyDeviceToHost, NULL));
        HIP(hipEventRecord(done, NULL));
        hipError_t status;
        while ((status = hipEventQuery(done)) == not_ready)
            ;
        HIP(status);
        check(host[COUNT - 1] == 1, "poll", COUNT - 1);
        HIP(hipHostFree(host));
        HIP(hipFree(device));
    }
    HIP(hipEventDestroy(done));
}

static void fill(void *data) {
    for (int i = 0; i < COUNT; ++i)
        ((float *)data)[i] = 3;
}

static void run_callback(void) {
    static float data[COUNT];
    float *device;
    HIP(hipMalloc((void **)&device, sizeof data));
    HIP(hipLaunchHostFunc(NULL, fill, data));
    HIP(hipDeviceSynchronize());
    HIP(hipMemcpy(device, data, sizeof data, hipMemcpyHostToDevice));
    LAUNCH(strided, linear(BLOCKS), linear(BLOCK), 0, NULL, device, 1, COUNT);
    HIP(hipMemcpy(data, device, sizeof data, hipMemcpyDeviceToHost));
    check(data[7] == 7, "callback", 7);
    HIP(hipFree(device));
}

static void *per_thread(void *value) {
    const hipStream_t own = (hipStream_t)2;
    for (int round = 0; round < 3; ++round)
        overwritten(own, *(float *)value + (float)round);
    return NULL;
}

static void run_per_thread(void) {
    pthread_t other;
    float values[2] = {10, 20};
    if (pthread_create(&other, NULL, per_thread, &values[0]))
        FAIL("cannot start %s", "a thread");
    per_thread(&values[1]);
    pthread_join(other, NULL);
}

static void run_calls(long count) {
    HIP(hipSetDevice(0));
    double start = seconds_now();
    for (long i = 0; i < count; ++i)
        HIP(hipSetDevice(0));
    printf("%.1f ns per call\n", (seconds_now() - start) * 1e9 / (double)count);
}

static void run_upload(long mebibytes, long different) {
    enum { PIECE = 16 << 20 };
    uint64_t state = 88172645463325252u, *pieces;
    void *device;
    size_t words = (size_t)different * PIECE / sizeof *pieces;
    if (!(pieces = malloc(words * sizeof *pieces)))
        FAIL("no memory for %ld pieces", different);
    for (size_t i = 0; i < words; ++i) {
        state ^= state << 13;
        state ^= state >> 7;
        pieces[i] = state ^= state << 17;
    }
    HIP(hipMalloc(&device, PIECE));
    double start = seconds_now();
    for (long i = 0; i < mebibytes / 16; ++i)
        HIP(hipMemcpy(device, (char *)pieces + i % different * PIECE, PIECE, hipMemcpyHostToDevice));
    printf("%.1f ns per MiB\n", (seconds_now() - start) * 1e9 / (double)mebibytes);
    HIP(hipFree(device));
    free(pieces);
}

static void *busy(void *argument) {
    (void)argument;
    for (;;)
        run_streams(10);
    return NULL;
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "add";
    if (!strcmp(mode, "add"))
        run_add(number_argument(argc, argv, 2, 2), -1);
    else if (!strcmp(mode, "wrong"))
        run_add(10, number_argument(argc, argv, 2, 4));
    else if (!strcmp(mode, "streams"))
        run_streams(number_argument(argc, argv, 2, 3));
    else if (!strcmp(mode, "strided"))
        run_strided();
    else if (!strcmp(mode, "reduce"))
        run_reduce();
    else if (!strcmp(mode, "hidden"))
        run_hidden();
    else if (!strcmp(mode, "pointers"))
        run_pointers();
    else if (!strcmp(mode, "managed"))
        run_managed(number_argument(argc, argv, 2, 3));
    else if (!strcmp(mode, "graph"))
        run_graph();
    else if (!strcmp(mode, "module"))
        run_module();
    else if (!strcmp(mode, "launches")) {
        run_add(1, -1);
        run_module();
    } else if (!strcmp(mode, "shared"))
        run_shared();
    else if (!strcmp(mode, "overwrite"))
        overwritten(NULL, 5);
    else if (!strcmp(mode, "poll"))
        run_poll();
    else if (!strcmp(mode, "callback"))
        run_callback();
    else if (!strcmp(mode, "perthread"))
        run_per_thread();
    else if (!strcmp(mode, "calls"))
        run_calls(number_argument(argc, argv, 2, 1000000));
    else if (!strcmp(mode, "upload"))
        run_upload(number_argument(argc, argv, 2, 512), number_argument(argc, argv, 3, 1));
    else if (!strcmp(mode, "busy")) {
        pthread_t threads[4];
        for (int i = 0; i < 4; ++i)
            if (pthread_create(&threads[i], NULL, busy, NULL))
                FAIL("cannot start thread %d", i);
        pthread_join(threads[0], NULL);
    } else
        FAIL("no mode %s", mode);
    puts("ok");
    return 0;
}
