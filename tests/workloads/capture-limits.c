/* capture-limits MODE: programs that are hard to capture. Each checks its results, as far as they do not vary.
 *
 * file       pinned memory into which the kernel of the operating system reads a file, and which a kernel of the GPU reads
 * late       pinned memory that the host changes after the call of an asynchronous copy and before the copy
 * boxes      as late, with copies of rectangles and boxes
 * back       pinned memory that is copied to the device and back
 * large      5 GiB of memory, and a copy of 3 GiB that a graph has and that is never made
 * mapped     memory that is mapped to addresses which the program has reserved, part by part
 * aliased    physical memory that is mapped at two addresses, and at a third one later
 * peer       copies between two GPUs
 * peers      as peer, with a stream on each, and a kernel that reads memory of the other
 * varying    a kernel whose results differ a little from run to run
 * moving     a kernel that writes another page in each run
 * counting   a kernel that counts its runs in a device variable */
#include "fatbin.h"
#include "workload.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { COUNT = 4096, BLOCK = 64, BLOCKS = COUNT / BLOCK, PAGES = 64 };

static void STUB(varying)(float *out, const float *in, uint32_t count) { STUB_BODY(varying, &out, &in, &count); }
static void STUB(moving)(uint32_t *out, uint32_t pages) { STUB_BODY(moving, &out, &pages); }
static void STUB(counting)(uint32_t *out) { STUB_BODY(counting, &out); }
static void STUB(increment)(uint32_t *out, const uint32_t *in, uint32_t count) { STUB_BODY(increment, &out, &in, &count); }

static uint32_t launches;

EMBED_KERNELS("varying.hipfb") {
    REGISTER(varying, "varying_kernel");
    REGISTER(moving, "moving_kernel");
    REGISTER(counting, "counting_kernel");
    REGISTER(increment, "increment_kernel");
    __hipRegisterVar(fatbin_handle, &launches, (char *)"launches", (char *)"launches", 0, sizeof launches, 0, 0);
}

static void check(int ok, const char *what, long index) {
    if (!ok)
        FAIL("%s: element %ld is wrong", what, index);
}

static void run_file(void) {
    static uint32_t out[COUNT];
    uint32_t *pinned, *device;
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        FAIL("cannot open %s", "the program");
    HIP(hipHostMalloc((void **)&pinned, sizeof out, hipHostMallocDefault));
    HIP(hipMalloc((void **)&device, sizeof out));
    for (int round = 0; round < 3; ++round) {
        ssize_t got = pread(file, pinned, COUNT, round * 1024);
        if (got != COUNT)
            FAIL("cannot read %s", "the program");
        LAUNCH(increment, linear(BLOCKS), linear(BLOCK), 0, NULL, device, pinned, COUNT);
        HIP(hipMemcpy(out, device, sizeof out, hipMemcpyDeviceToHost));
        for (int i = 0; i < COUNT; ++i)
            check(out[i] == pinned[i] + 1, "file", i);
    }
    close(file);
    HIP(hipHostFree(pinned));
    HIP(hipFree(device));
}

static atomic_int changed;

static void wait_for_change(void *unused) {
    (void)unused;
    while (!atomic_load(&changed))
        usleep(100);
}

static void run_late(void) {
    static uint32_t out[COUNT];
    uint32_t *pinned, *device;
    hipStream_t stream;
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    HIP(hipHostMalloc((void **)&pinned, sizeof out, hipHostMallocDefault));
    HIP(hipMalloc((void **)&device, sizeof out));
    for (int round = 0; round < 2; ++round) {
        for (int i = 0; i < COUNT; ++i)
            pinned[i] = 1;
        atomic_store(&changed, 0);
        HIP(hipLaunchHostFunc(stream, wait_for_change, NULL));
        HIP(hipMemcpyAsync(device, pinned, sizeof out, hipMemcpyHostToDevice, stream));
        for (int i = 0; i < COUNT; ++i)
            pinned[i] = 2 + round;
        atomic_store(&changed, 1);
        HIP(hipStreamSynchronize(stream));
        HIP(hipMemcpy(out, device, sizeof out, hipMemcpyDeviceToHost));
        for (int i = 0; i < COUNT; ++i)
            check(out[i] == 2u + (uint32_t)round, "late", i);
    }
    HIP(hipHostFree(pinned));
    HIP(hipFree(device));
    HIP(hipStreamDestroy(stream));
}

static void run_boxes(void) {
    enum { WIDTH = 40, ROWS = 12, SLICES = 4, PITCH = 64, SLICE_ROWS = 16 };
    static uint32_t out[SLICES][SLICE_ROWS][PITCH];
    const size_t row = PITCH * sizeof(uint32_t), bytes = sizeof out;
    uint32_t *pinned, *device;
    hipStream_t stream;
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    HIP(hipHostMalloc((void **)&pinned, bytes, hipHostMallocDefault));
    HIP(hipMalloc((void **)&device, bytes));
    for (int is_box = 0; is_box < 2; ++is_box) {
        HIP(hipMemset(device, 0, bytes));
        for (size_t i = 0; i < bytes / sizeof *pinned; ++i)
            pinned[i] = 1;
        atomic_store(&changed, 0);
        HIP(hipLaunchHostFunc(stream, wait_for_change, NULL));
        if (is_box) {
            const hipMemcpy3DParms box = {.srcPos = {4, 1, 0},
                                          .srcPtr = {pinned, row, row, SLICE_ROWS},
                                          .dstPos = {8, 2, 0},
                                          .dstPtr = {device, row, row, SLICE_ROWS},
                                          .extent = {WIDTH * sizeof(uint32_t), ROWS, SLICES},
                                          .kind = hipMemcpyHostToDevice};
            HIP(hipMemcpy3DAsync(&box, stream));
        } else {
            HIP(hipMemcpy2DAsync(device, row, pinned, row, WIDTH * sizeof(uint32_t), ROWS, hipMemcpyHostToDevice, stream));
        }
        for (size_t i = 0; i < bytes / sizeof *pinned; ++i)
            pinned[i] = (uint32_t)i;
        atomic_store(&changed, 1);
        HIP(hipStreamSynchronize(stream));
        HIP(hipMemcpy(out, device, bytes, hipMemcpyDeviceToHost));
        check(is_box ? out[3][2][2] == (3 * SLICE_ROWS + 1) * PITCH + 1 : out[0][11][39] == 11 * PITCH + 39, "boxes", is_box);
        check(out[0][0][WIDTH] == 0 && out[SLICES - 1][SLICE_ROWS - 1][0] == 0, "boxes", is_box);
    }
    HIP(hipHostFree(pinned));
    HIP(hipFree(device));
    HIP(hipStreamDestroy(stream));
}

static void run_back(void) {
    uint32_t *pinned, *device;
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    HIP(hipHostMalloc((void **)&pinned, COUNT * sizeof *pinned, hipHostMallocDefault));
    HIP(hipMalloc((void **)&device, COUNT * sizeof *pinned));
    for (uint32_t i = 0; i < COUNT; ++i)
        pinned[i] = i;
    for (uint32_t round = 0; round < 3; ++round) {
        HIP(hipMemcpyAsync(device, pinned, COUNT * sizeof *pinned, hipMemcpyHostToDevice, stream));
        LAUNCH(increment, linear(BLOCKS), linear(BLOCK), 0, stream, device, device, COUNT);
        if (round == 1)
            LAUNCH(increment, linear(BLOCKS), linear(BLOCK), 0, stream, pinned, device, COUNT);
        else
            HIP(hipMemcpyAsync(pinned, device, COUNT * sizeof *pinned, hipMemcpyDeviceToHost, stream));
        HIP(hipStreamSynchronize(stream));
    }
    for (uint32_t i = 0; i < COUNT; ++i)
        check(pinned[i] == i + 4, "back", i);
    HIP(hipHostFree(pinned));
    HIP(hipFree(device));
    HIP(hipStreamDestroy(stream));
}

/* Physical memory at `address`, accessible to the GPU. */
static void map(void *address, size_t size) {
    const hipMemAllocationProp properties = {.type = 1, .locationType = 1};
    const hipMemAccessDesc access = {.locationType = 1, .flags = 3};
    hipMemGenericAllocationHandle_t memory;
    HIP(hipMemCreate(&memory, size, &properties, 0));
    HIP(hipMemMap(address, size, 0, memory, 0));
    HIP(hipMemSetAccess(address, size, &access, 1));
    HIP(hipMemRelease(memory));
}

static void run_mapped(void) {
    const size_t size = 2 << 20;
    static uint32_t in[COUNT], out[COUNT];
    uint32_t count = COUNT;
    char *reserved;
    HIP(hipSetDevice(0));
    HIP(hipMemAddressReserve((void **)&reserved, 4 * size, 0, NULL, 0));
    map(reserved, size);
    map(reserved + size, size);
    for (int round = 0; round < 3; ++round) {
        /* Half of it is in one part, half in the other: the kernel takes them as one. */
        const size_t half = sizeof in / 2;
        uint32_t *second = (uint32_t *)(reserved + size), *middle = second - COUNT / 2;
        for (uint32_t i = 0; i < COUNT; ++i)
            in[i] = i * 7 + (uint32_t)round;
        HIP(hipMemcpy(middle, in, half, hipMemcpyHostToDevice));
        HIP(hipMemcpy(second, in + COUNT / 2, half, hipMemcpyHostToDevice));
        LAUNCH(increment, linear(BLOCKS), linear(BLOCK), 0, NULL, middle, middle, count);
        HIP(hipMemcpy(out, middle, half, hipMemcpyDeviceToHost));
        HIP(hipMemcpy(out + COUNT / 2, second, half, hipMemcpyDeviceToHost));
        for (uint32_t i = 0; i < COUNT; ++i)
            check(out[i] == in[i] + 1, "mapped", i);
        HIP(hipMemUnmap(reserved + size, size));
        map(reserved + size, size);
    }
    HIP(hipMemUnmap(reserved, size));
    HIP(hipMemUnmap(reserved + size, size));
    HIP(hipMemAddressFree(reserved, 4 * size));
}

static void run_aliased(void) {
    const size_t size = 2 << 20;
    const hipMemAllocationProp properties = {.type = 1, .locationType = 1};
    const hipMemAccessDesc access = {.locationType = 1, .flags = 3};
    static uint32_t in[COUNT], out[COUNT];
    hipMemGenericAllocationHandle_t memory, again;
    char *reserved;
    HIP(hipSetDevice(0));
    HIP(hipMemAddressReserve((void **)&reserved, 3 * size, 0, NULL, 0));
    HIP(hipMemCreate(&memory, size, &properties, 0));
    HIP(hipMemMap(reserved, size, 0, memory, 0));
    HIP(hipMemSetAccess(reserved, size, &access, 1));
    HIP(hipMemRetainAllocationHandle(&again, reserved));
    HIP(hipMemMap(reserved + size, size, 0, again, 0));
    HIP(hipMemSetAccess(reserved + size, size, &access, 1));
    for (uint32_t i = 0; i < COUNT; ++i)
        in[i] = i * 5;
    HIP(hipMemcpy(reserved, in, sizeof in, hipMemcpyHostToDevice));
    /* Reads at one address what was written at the other, and the other way round. */
    uint32_t *first = (uint32_t *)reserved, *second = (uint32_t *)(reserved + size), *third = (uint32_t *)(reserved + 2 * size);
    LAUNCH(increment, linear(BLOCKS), linear(BLOCK), 0, NULL, second + COUNT, second, COUNT);
    HIP(hipMemcpy(out, first + COUNT, sizeof out, hipMemcpyDeviceToHost));
    for (uint32_t i = 0; i < COUNT; ++i)
        check(out[i] == in[i] + 1, "aliased", i);
    HIP(hipMemUnmap(reserved, size));
    HIP(hipMemUnmap(reserved + size, size));
    HIP(hipMemMap(third, size, 0, memory, 0));
    HIP(hipMemSetAccess(third, size, &access, 1));
    LAUNCH(increment, linear(BLOCKS), linear(BLOCK), 0, NULL, third, third + COUNT, COUNT);
    HIP(hipMemcpy(out, third, sizeof out, hipMemcpyDeviceToHost));
    for (uint32_t i = 0; i < COUNT; ++i)
        check(out[i] == in[i] + 2, "mapped later", i);
    HIP(hipMemUnmap(third, size));
    HIP(hipMemRelease(memory));
    HIP(hipMemAddressFree(reserved, 3 * size));
}

static void run_large(void) {
    const size_t gibibyte = (size_t)1 << 30;
    void *device, *host = mmap(NULL, 3 * gibibyte, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    hipStream_t stream;
    hipGraph_t graph;
    if (host == MAP_FAILED)
        FAIL("no room for %s", "3 GiB");
    HIP(hipMalloc(&device, 5 * gibibyte));
    HIP(hipStreamCreate(&stream));
    HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    HIP(hipMemcpyAsync(device, host, 3 * gibibyte, hipMemcpyHostToDevice, stream));
    HIP(hipStreamEndCapture(stream, &graph));
    HIP(hipGraphDestroy(graph));
    HIP(hipStreamDestroy(stream));
    HIP(hipFree(device));
}

static void run_peer(void) {
    static uint32_t data[COUNT];
    uint32_t *first, *second;
    int devices;
    HIP(hipGetDeviceCount(&devices));
    if (devices < 2)
        FAIL("%d GPUs are too few", devices);
    for (int i = 0; i < COUNT; ++i)
        data[i] = (uint32_t)i;
    HIP(hipMalloc((void **)&first, sizeof data));
    HIP(hipMemcpy(first, data, sizeof data, hipMemcpyHostToDevice));
    HIP(hipSetDevice(1));
    HIP(hipMalloc((void **)&second, sizeof data));
    HIP(hipMemcpyPeer(second, 1, first, 0, sizeof data));
    LAUNCH(increment, linear(BLOCKS), linear(BLOCK), 0, NULL, second, second, COUNT);
    HIP(hipDeviceSynchronize());
    HIP(hipSetDevice(0));
    HIP(hipMemcpyPeer(first, 0, second, 1, sizeof data));
    LAUNCH(increment, linear(BLOCKS), linear(BLOCK), 0, NULL, first, first, COUNT);
    HIP(hipMemcpy(data, first, sizeof data, hipMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; ++i)
        check(data[i] == (uint32_t)i + 2, "peer", i);
    HIP(hipFree(first));
    HIP(hipFree(second));
}

/* A stream of each GPU, which wait for each other; the kernel of the second GPU reads memory of the first. */
static void run_peers(void) {
    static uint32_t data[COUNT];
    uint32_t *memory[2];
    hipStream_t streams[2];
    hipEvent_t done[2];
    for (int i = 0; i < COUNT; ++i)
        data[i] = (uint32_t)i;
    for (int device = 0; device < 2; ++device) {
        HIP(hipSetDevice(device));
        HIP(hipDeviceEnablePeerAccess(!device, 0));
        HIP(hipMalloc((void **)&memory[device], sizeof data));
        HIP(hipStreamCreate(&streams[device]));
        HIP(hipEventCreate(&done[device]));
    }
    HIP(hipSetDevice(0));
    HIP(hipMemcpyAsync(memory[0], data, sizeof data, hipMemcpyHostToDevice, streams[0]));
    HIP(hipEventRecord(done[0], streams[0]));
    for (int round = 0; round < 2; ++round) {
        HIP(hipSetDevice(1));
        HIP(hipStreamWaitEvent(streams[1], done[0], 0));
        LAUNCH(increment, linear(BLOCKS), linear(BLOCK), 0, streams[1], memory[1], memory[0], COUNT);
        HIP(hipEventRecord(done[1], streams[1]));
        HIP(hipSetDevice(0));
        HIP(hipStreamWaitEvent(streams[0], done[1], 0));
        HIP(hipMemcpyPeerAsync(memory[0], 0, memory[1], 1, sizeof data, streams[0]));
        HIP(hipEventRecord(done[0], streams[0]));
    }
    HIP(hipMemcpyAsync(data, memory[0], sizeof data, hipMemcpyDeviceToHost, streams[0]));
    HIP(hipStreamSynchronize(streams[0]));
    for (int i = 0; i < COUNT; ++i)
        check(data[i] == (uint32_t)i + 2, "peers", i);
    for (int device = 0; device < 2; ++device) {
        HIP(hipSetDevice(device));
        HIP(hipFree(memory[device]));
    }
}

static void run_varying(void) {
    static float in[COUNT], out[COUNT];
    float *device[2];
    for (int i = 0; i < COUNT; ++i)
        in[i] = 1 + (float)i / COUNT;
    for (int i = 0; i < 2; ++i)
        HIP(hipMalloc((void **)&device[i], sizeof in));
    HIP(hipMemcpy(device[0], in, sizeof in, hipMemcpyHostToDevice));
    LAUNCH(varying, linear(BLOCKS), linear(BLOCK), 0, NULL, device[1], device[0], COUNT);
    HIP(hipMemcpy(out, device[1], sizeof out, hipMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; ++i)
        check(out[i] - in[i] < 2e-6f, "varying", i);
    for (int i = 0; i < 2; ++i)
        HIP(hipFree(device[i]));
}

static void run_moving(void) {
    uint32_t *device;
    HIP(hipMalloc((void **)&device, PAGES * 4096));
    HIP(hipMemset(device, 0, PAGES * 4096));
    LAUNCH(moving, linear(1), linear(BLOCK), 0, NULL, device, PAGES);
    HIP(hipDeviceSynchronize());
    HIP(hipFree(device));
}

static void run_counting(void) {
    uint32_t *device, out = 0;
    HIP(hipMalloc((void **)&device, sizeof out));
    for (int i = 0; i < 5; ++i)
        LAUNCH(counting, linear(1), linear(BLOCK), 0, NULL, device);
    HIP(hipMemcpy(&out, device, sizeof out, hipMemcpyDeviceToHost));
    check(out == 5, "counting", 0);
    HIP(hipFree(device));
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {
        {"file", run_file},       {"late", run_late},     {"boxes", run_boxes},       {"back", run_back},
        {"mapped", run_mapped}, {"aliased", run_aliased}, {"large", run_large},     {"peer", run_peer},     {"peers", run_peers},   {"varying", run_varying},   {"moving", run_moving},
        {"counting", run_counting},
    };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; ++i)
        if (!strcmp(mode, modes[i].name)) {
            modes[i].run();
            puts("ok");
            return 0;
        }
    FAIL("no mode %s", mode);
}
