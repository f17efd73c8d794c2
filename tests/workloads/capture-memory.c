/* capture-memory MODE: host memory that kernels read, and that changes between launches. Each checks its results.
 *
 * written    managed, pinned and registered memory, changed page by page: by stores, by a read of a file, by copies from the device,
 *            and while a kernel that reads other memory runs
 * table      pinned memory to which only memory of the device points
 * forked     pinned memory, written by this process while a child with a copy of it writes as well
 * put-back   managed memory that the device changes by fills and copies, and to which the host gives its content back
 * many       pinned memory in many pieces, all of which a launch may read
 * removed    registered memory that the program replaces by other memory
 * shared     registered memory that is shared with a child, which writes it
 * cost MIB ROUNDS   pinned memory of which one page changes between launches; prints ns per launch */
#include "fatbin.h"
#include "workload.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 256, PAGE = 4096, WORDS = PAGE / sizeof(uint32_t), PAGES = 64, COUNT = PAGES * WORDS, BYTES = PAGES * PAGE };

struct arrays {
    uint32_t count;
    uint32_t *out;
    const uint32_t *in;
};

static void STUB(through_struct)(struct arrays arrays) { STUB_BODY(through_struct, &arrays); }
static void STUB(through_table)(uint32_t **rows, uint32_t rows_count, uint32_t count) {
    STUB_BODY(through_table, &rows, &rows_count, &count);
}

EMBED_KERNELS("capture.hipfb") {
    REGISTER(through_struct, "struct_kernel");
    REGISTER(through_table, "table_kernel");
}

static uint32_t out[COUNT];

/* What the kernel makes of `in`, in memory of the device. */
static void launch(uint32_t *device, const uint32_t *in, uint32_t count) {
    const struct arrays arrays = {count, device, in};
    LAUNCH(through_struct, linear((count + BLOCK - 1) / BLOCK), linear(BLOCK), 0, NULL, arrays);
}

static void check(const char *what, const uint32_t *device, const uint32_t *in) {
    HIP(hipMemcpy(out, device, BYTES, hipMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; ++i)
        if (out[i] != in[i] + 7)
            FAIL("%s: element %d is wrong", what, i);
}

/* Memory of the program that does not begin at a page. */
static uint32_t *registered(int flags) {
    char *memory = mmap(NULL, BYTES + PAGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        FAIL("no memory for %d bytes", BYTES + PAGE);
    HIP(hipHostRegister(memory + 400, BYTES, 0));
    return (uint32_t *)(memory + 400);
}

static void run_written(void) {
    enum { KINDS = 3 };
    uint32_t *in[KINDS], *device[KINDS], *back;
    hipStream_t stream;
    HIP(hipMallocManaged((void **)&in[0], BYTES, 1));
    HIP(hipHostMalloc((void **)&in[1], BYTES, 0));
    in[2] = registered(MAP_PRIVATE);
    HIP(hipHostMalloc((void **)&back, BYTES, 0));
    HIP(hipStreamCreate(&stream));
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        FAIL("cannot open %s", "the program");
    for (int kind = 0; kind < KINDS; ++kind)
        HIP(hipMalloc((void **)&device[kind], BYTES));
    for (uint32_t round = 0; round < 6; ++round) {
        for (int kind = 0; kind < KINDS; ++kind) {
            /* The launch before is under way. */
            in[kind][round * 7 * WORDS + 5] = round + 100;
            in[kind][COUNT - 1] += round;
            if (pread(file, (char *)in[kind] + 20 * PAGE + 77, 5000, round * 600) != 5000)
                FAIL("cannot read %s", "the program");
            launch(device[kind], in[kind], COUNT);
        }
        HIP(hipMemcpyAsync(back, device[0], BYTES, hipMemcpyDeviceToHost, stream));
        for (int kind = 0; kind < KINDS; ++kind)
            check("written", device[kind], in[kind]);
        HIP(hipStreamSynchronize(stream));
        /* A copy has written it. */
        HIP(hipMemcpy(back, device[1], BYTES, hipMemcpyDeviceToHost));
        launch(device[1], back, COUNT);
        check("back", device[1], back);
        /* The kernel writes what it reads. */
        launch(in[0], in[0], COUNT);
        HIP(hipDeviceSynchronize());
        launch(device[0], in[0], COUNT);
        check("in place", device[0], in[0]);
    }
    HIP(hipHostUnregister(in[2]));
    HIP(hipHostFree(in[1]));
    HIP(hipHostFree(back));
    HIP(hipFree(in[0]));
}

static void run_table(void) {
    enum { ROWS = 3 };
    uint32_t *rows[ROWS], **table;
    HIP(hipMalloc((void **)&rows[0], BYTES));
    HIP(hipMemset(rows[0], 0, BYTES));
    for (int row = 1; row < ROWS; ++row) {
        HIP(hipHostMalloc((void **)&rows[row], BYTES, 0));
        memset(rows[row], row, BYTES);
    }
    HIP(hipMalloc((void **)&table, sizeof rows));
    HIP(hipMemcpy(table, rows, sizeof rows, hipMemcpyHostToDevice));
    uint32_t sum = 0;
    for (uint32_t round = 0; round < 4; ++round) {
        rows[1][30 * WORDS] = round;
        rows[2][30 * WORDS] = round * 1000;
        sum += round * 1001;
        LAUNCH(through_table, linear(COUNT / BLOCK), linear(BLOCK), 0, NULL, table, ROWS, COUNT);
        HIP(hipMemcpy(out, rows[0], BYTES, hipMemcpyDeviceToHost));
        if (out[30 * WORDS] != sum)
            FAIL("table: round %u is wrong", round);
    }
}

/* A child runs meanwhile that writes the memory and ends. */
static void in_child(uint32_t *memory, uint32_t round) {
    pid_t child = fork();
    if (child < 0)
        FAIL("no child for round %u", round);
    if (child == 0) {
        for (int page = 0; page < PAGES; ++page)
            memory[page * WORDS] = 0xdead + round;
        _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status)
        FAIL("the child of round %u failed", round);
}

static void run_forked(void) {
    uint32_t *in, *device;
    HIP(hipHostMalloc((void **)&in, BYTES, 0));
    HIP(hipMalloc((void **)&device, BYTES));
    for (uint32_t round = 0; round < 4; ++round) {
        in[9 * WORDS] = round;
        in_child(in, round);
        in[11 * WORDS] = round;
        launch(device, in, COUNT);
        check("forked", device, in);
    }
    HIP(hipHostFree(in));
}

/* The device changes it in one of several ways, the host writes what was there before, and a kernel reads it. */
static void run_put_back(void) {
    enum { WAYS = 8 };
    uint32_t *in, *device, *other;
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t exec;
    hipGraphNode_t node;
    HIP(hipStreamCreate(&stream));
    HIP(hipMallocManaged((void **)&in, BYTES, 1));
    HIP(hipMalloc((void **)&device, BYTES));
    HIP(hipMalloc((void **)&other, BYTES));
    HIP(hipMemset(other, 9, BYTES));
    static uint32_t before[COUNT], zeros[COUNT];
    for (int i = 0; i < COUNT; ++i)
        before[i] = in[i] = (uint32_t)i * 3;
    launch(device, in, COUNT);
    check("at first", device, in);
    for (int way = 0; way < WAYS; ++way) {
        switch (way) {
        case 0:
            HIP(hipMemset(in, 0, BYTES));
            break;
        case 1:
            HIP(hipMemcpy(in, other, BYTES, hipMemcpyDeviceToDevice));
            break;
        case 2:
            HIP(hipMemcpyDtoD(in, other, BYTES));
            break;
        case 3:
            HIP(hipMemcpy(in, zeros, BYTES, hipMemcpyHostToDevice));
            break;
        case 4:
            HIP(hipMemset2D(in, PAGE, 5, PAGE / 2, PAGES));
            break;
        case 5:
            HIP(hipMemsetD32(in, 77, COUNT));
            break;
        default:
            if (way == 6) {
                const hipMemsetParams fill = {.dst = in, .elementSize = 4, .height = 1, .value = 6, .width = COUNT};
                HIP(hipGraphCreate(&graph, 0));
                HIP(hipGraphAddMemsetNode(&node, graph, NULL, 0, &fill));
            } else {
                HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
                HIP(hipMemcpyAsync(in, other, BYTES, hipMemcpyDeviceToDevice, stream));
                HIP(hipMemsetAsync(in, 1, PAGE, stream));
                HIP(hipStreamEndCapture(stream, &graph));
            }
            HIP(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
            HIP(hipGraphLaunch(exec, stream));
            HIP(hipGraphExecDestroy(exec));
            HIP(hipGraphDestroy(graph));
        }
        HIP(hipDeviceSynchronize());
        memcpy(in, before, BYTES);
        launch(device, in, COUNT);
        check("put back", device, before);
    }
    HIP(hipFree(in));
}

static void run_many(void) {
    enum { PIECES = 6 };
    uint32_t *pieces[PIECES], *device;
    HIP(hipMalloc((void **)&device, BYTES));
    for (int piece = 0; piece < PIECES; ++piece) {
        HIP(hipHostMalloc((void **)&pieces[piece], BYTES, 0));
        for (uint32_t i = 0; i < COUNT; ++i)
            pieces[piece][i] = i * 2654435761u + (uint32_t)piece;
    }
    launch(device, pieces[PIECES - 1], COUNT);
    check("many", device, pieces[PIECES - 1]);
}

static void run_shared(void) {
    uint32_t *device, *in = registered(MAP_SHARED);
    HIP(hipMalloc((void **)&device, BYTES));
    for (uint32_t round = 0; round < 4; ++round) {
        in_child(in, round);
        launch(device, in, COUNT);
        check("shared", device, in);
    }
    HIP(hipHostUnregister(in));
}

static void run_removed(void) {
    uint32_t *device, *in = registered(MAP_PRIVATE);
    HIP(hipMalloc((void **)&device, BYTES));
    for (uint32_t round = 0; round < 4; ++round) {
        in[8 * WORDS] = round;
        if (round == 2 && mmap((char *)in - 400, BYTES + PAGE, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
            FAIL("no memory for %d bytes", BYTES + PAGE);
        launch(device, in, COUNT);
        check("removed", device, in);
    }
    HIP(hipHostUnregister(in));
}

static void run_cost(long mebibytes, long rounds) {
    uint32_t *in, *device;
    const size_t bytes = (size_t)mebibytes << 20;
    HIP(hipHostMalloc((void **)&in, bytes, 0));
    HIP(hipMalloc((void **)&device, PAGE));
    /* No two pages are alike. */
    for (size_t i = 0; i < bytes / sizeof *in; ++i)
        in[i] = (uint32_t)(i * 2654435761u);
    launch(device, in, WORDS);
    HIP(hipDeviceSynchronize());
    const double start = seconds_now();
    for (long round = 0; round < rounds; ++round) {
        in[(size_t)round * WORDS % (bytes / sizeof *in)] = (uint32_t)round;
        launch(device, in, WORDS);
        HIP(hipDeviceSynchronize());
    }
    printf("%.0f ns per launch\n", (seconds_now() - start) * 1e9 / (double)rounds);
    HIP(hipHostFree(in));
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "written";
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {{"written", run_written}, {"table", run_table},   {"forked", run_forked},
                 {"shared", run_shared},   {"removed", run_removed}, {"put-back", run_put_back},
                 {"many", run_many}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; ++i)
        if (!strcmp(mode, modes[i].name)) {
            modes[i].run();
            puts("ok");
            return 0;
        }
    if (!strcmp(mode, "cost")) {
        run_cost(number_argument(argc, argv, 2, 1024), number_argument(argc, argv, 3, 20));
        return 0;
    }
    FAIL("no mode %s", mode);
}
