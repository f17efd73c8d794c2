/* slow FAULT [clean [ROUNDS]]: a program that is slow for one known reason, or with `clean` a twin that does the same work without
 * it. ROUNDS are those of its loop. The faults are the names in `faults` below. */
#include "fatbin.h"
#include "rccl.h"
#include "workload.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* Items of a group; words of a buffer. GROUPS workgroups of `work` take long enough for a launch ahead. FILL fill the simulated GPU
 * of 104 units once: eight groups of four waves for each. */
enum { ITEMS = 256, WORDS = 1 << 20, GROUPS = 64, FILL = 104 * 8 };
static const size_t BYTES = WORDS * sizeof(uint32_t);

/* Stubs; the parameters are those of the kernels. */
#define KERNEL(name, parameters, ...)                                                                                    \
    static void STUB(name) parameters { STUB_BODY(name, __VA_ARGS__); }

KERNEL(work, (uint32_t *data, uint32_t rounds), &data, &rounds)
KERNEL(tiles, (uint32_t *data, uint32_t rounds), &data, &rounds)
KERNEL(many_registers, (uint32_t *data, uint32_t rounds), &data, &rounds)
KERNEL(few_registers, (uint32_t *data, uint32_t rounds), &data, &rounds)
KERNEL(scratch_array, (uint32_t *data, uint32_t rounds), &data, &rounds)
KERNEL(rows, (uint32_t *data, const uint32_t *in, uint32_t step, uint32_t rounds), &data, &in, &step, &rounds)
KERNEL(banks, (uint32_t *data, uint32_t stride, uint32_t rounds), &data, &stride, &rounds)
KERNEL(lanes, (uint32_t *data, uint32_t of, uint32_t rounds), &data, &of, &rounds)
KERNEL(sums, (uint32_t *data, uint32_t places, uint32_t rounds), &data, &places, &rounds)
KERNEL(uneven, (uint32_t *data, uint32_t factor, uint32_t rounds), &data, &factor, &rounds)
KERNEL(chase, (uint32_t *data, const uint32_t *next, uint32_t rounds), &data, &next, &rounds)

EMBED_KERNELS("slow.hipfb") {
    REGISTER(work, "work");
    REGISTER(tiles, "tiles");
    REGISTER(many_registers, "many_registers");
    REGISTER(few_registers, "few_registers");
    REGISTER(scratch_array, "scratch_array");
    REGISTER(rows, "rows");
    REGISTER(banks, "banks");
    REGISTER(lanes, "lanes");
    REGISTER(sums, "sums");
    REGISTER(uneven, "uneven");
    REGISTER(chase, "chase");
}

/* Whether the twin without the fault runs. */
static bool clean;
/* Rounds of the loop. */
static int rounds;
static hipStream_t stream;
static uint32_t *device;
/* Memory of the host that is pinned. */
static uint32_t *pinned;

static hipStream_t new_stream(unsigned flags) {
    hipStream_t made;
    HIP(hipStreamCreateWithFlags(&made, flags));
    return made;
}

/* About a millisecond of the simulated GPU; a part of it with fewer rounds. */
static void compute(hipStream_t on, uint32_t amount) {
    LAUNCH(work, linear(GROUPS), linear(ITEMS), 0, on, device, amount);
}

static void wait_for(hipStream_t on) { HIP(hipStreamSynchronize(on)); }

/* The host prepares each launch, for longer than the GPU needs for the one before. */
static void late_host(void) {
    for (int i = 0; i < rounds; ++i) {
        compute(stream, 40);
        if (!clean)
            usleep(20000);
    }
}

/* The host waits for each kernel before it launches the next. */
static void wait_in_loop(void) {
    for (int i = 0; i < rounds * 5; ++i) {
        compute(stream, 10);
        if (!clean)
            wait_for(stream);
    }
}

/* Copies for which the host waits. */
static void sync_copy(void) {
    for (int i = 0; i < rounds; ++i) {
        size_t bytes = BYTES / 16;
        if (clean)
            HIP(hipMemcpyAsync(device, pinned, bytes, hipMemcpyHostToDevice, stream));
        else
            HIP(hipMemcpy(device, pinned, bytes, hipMemcpyHostToDevice));
        compute(clean ? stream : NULL, 40);
        if (clean)
            HIP(hipMemcpyAsync(pinned, device, bytes, hipMemcpyDeviceToHost, stream));
        else
            HIP(hipMemcpy(pinned, device, bytes, hipMemcpyDeviceToHost));
    }
}

/* Asynchronous copies of memory that is not pinned. */
static void pageable(void) {
    uint32_t *host = clean ? pinned : calloc(WORDS, sizeof *host);
    if (!host)
        FAIL("no memory for %d words", WORDS);
    for (int i = 0; i < rounds; ++i) {
        HIP(hipMemcpyAsync(device, host, BYTES / 4, hipMemcpyHostToDevice, stream));
        compute(stream, 60);
    }
    wait_for(stream);
    if (!clean)
        free(host);
}

/* Fills for which the host waits. */
static void sync_fill(void) {
    for (int i = 0; i < rounds; ++i) {
        if (clean)
            HIP(hipMemsetAsync(device, 0, 65536, stream));
        else
            HIP(hipMemset(device, 0, 65536));
        compute(stream, 20);
    }
}

/* Memory that is made and freed for each launch. */
static void allocate(void) {
    for (int i = 0; i < rounds; ++i) {
        uint32_t *memory = device;
        if (!clean)
            HIP(hipMalloc((void **)&memory, BYTES));
        LAUNCH(work, linear(GROUPS), linear(ITEMS), 0, stream, memory, 20);
        if (!clean)
            HIP(hipFree(memory));
    }
}

/* Memory that is freed while kernels run, each time for a few of them. */
static void free_under_way(void) {
    enum { MOST = 64, OF = 4 };
    uint32_t *parts[MOST];
    int count = rounds / OF < MOST ? rounds / OF : MOST;
    for (int i = 0; i < count; ++i)
        HIP(hipMalloc((void **)&parts[i], 65536));
    for (int i = 0; i < count; ++i) {
        for (int n = 0; n < OF; ++n)
            compute(stream, 10);
        if (!clean)
            HIP(hipFree(parts[i]));
    }
    wait_for(stream);
    for (int i = 0; clean && i < count; ++i)
        HIP(hipFree(parts[i]));
}

/* Code that is loaded again in each round. */
static void load(void) {
    hipModule_t module;
    hipFunction_t kernel;
    HIP(hipModuleLoadData(&module, embedded_bundle));
    HIP(hipModuleGetFunction(&kernel, module, "work"));
    uint32_t amount = 20;
    void *params[] = {&device, &amount};
    for (int i = 0; i < rounds; ++i) {
        hipModule_t again;
        for (int n = 0; !clean && n < 4; ++n) {
            HIP(hipModuleLoadData(&again, embedded_bundle));
            HIP(hipModuleGetFunction(&kernel, again, "work"));
        }
        HIP(hipModuleLaunchKernel(kernel, GROUPS, 1, 1, ITEMS, 1, 1, 0, stream, params, NULL));
    }
    wait_for(stream);
    HIP(hipModuleUnload(module));
}

/* Two streams of which each waits for the other's latest kernel. */
static void serial_streams(void) {
    hipStream_t other = new_stream(hipStreamNonBlocking);
    hipEvent_t ended;
    HIP(hipEventCreateWithFlags(&ended, 2));
    for (int i = 0; i < rounds; ++i) {
        LAUNCH(work, linear(16), linear(ITEMS), 0, stream, device, 80);
        if (!clean) {
            HIP(hipEventRecord(ended, stream));
            HIP(hipStreamWaitEvent(other, ended, 0));
        }
        LAUNCH(work, linear(16), linear(ITEMS), 0, other, device + WORDS / 2, 80);
        if (!clean) {
            HIP(hipEventRecord(ended, other));
            HIP(hipStreamWaitEvent(stream, ended, 0));
        }
    }
    wait_for(stream);
    wait_for(other);
    HIP(hipEventDestroy(ended));
}

/* Work on the null stream between that of two others, which wait for it. */
static void null_stream(void) {
    hipStream_t own[2];
    for (int n = 0; n < 2; ++n)
        own[n] = new_stream(clean ? hipStreamNonBlocking : 0);
    for (int i = 0; i < rounds; ++i) {
        for (int n = 0; n < 2; ++n)
            LAUNCH(work, linear(16), linear(ITEMS), 0, own[n], device + n * WORDS / 2, 80);
        LAUNCH(work, linear(16), linear(ITEMS), 0, NULL, device + WORDS / 4, 20);
    }
    HIP(hipDeviceSynchronize());
}

/* More streams than there are hardware queues for. */
static void shared_queue(void) {
    enum { STREAMS = 8 };
    int used = clean ? 2 : STREAMS;
    hipStream_t own[STREAMS];
    for (int n = 0; n < used; ++n)
        own[n] = new_stream(hipStreamNonBlocking);
    for (int i = 0; i < rounds; ++i)
        for (int n = 0; n < used; ++n)
            LAUNCH(work, linear(8), linear(ITEMS), 0, own[n], device + n * WORDS / STREAMS, 40);
    HIP(hipDeviceSynchronize());
}

/* Large copies between kernels that nothing hides. */
static void exposed_copy(void) {
    for (int i = 0; i < rounds; ++i) {
        if (!clean || i == 0)
            HIP(hipMemcpyAsync(device, pinned, BYTES, hipMemcpyHostToDevice, stream));
        compute(stream, 20);
    }
}

/* Many copies of a few bytes. */
static void small_copy(void) {
    for (int i = 0; i < rounds; ++i) {
        if (clean)
            HIP(hipMemcpyAsync(device, pinned, 400 * 256, hipMemcpyHostToDevice, stream));
        else
            for (int n = 0; n < 400; ++n)
                HIP(hipMemcpyAsync(device + 64 * n, pinned + 64 * n, 256, hipMemcpyHostToDevice, stream));
        compute(stream, 2);
    }
}

/* Results that go to the host and back unchanged. */
static void round_trip(void) {
    for (int i = 0; i < rounds; ++i) {
        compute(stream, 40);
        if (!clean) {
            HIP(hipMemcpyAsync(pinned, device, BYTES / 8, hipMemcpyDeviceToHost, stream));
            HIP(hipMemcpyAsync(device, pinned, BYTES / 8, hipMemcpyHostToDevice, stream));
        }
    }
}

/* Launches of an item each. */
static void tiny(void) {
    if (clean) {
        for (int i = 0; i < rounds; ++i)
            compute(stream, 40);
        return;
    }
    for (int i = 0; i < rounds * 50; ++i)
        LAUNCH(work, linear(1), linear(64), 0, stream, device, 1);
}

/* Twelve launches whose order does not repeat within. */
static void launch_sequence(void) {
    for (const char *which = "wtlwwlttlllw"; *which; ++which) {
        if (*which == 'w')
            LAUNCH(work, linear(1), linear(64), 0, stream, device, 1);
        else if (*which == 't')
            LAUNCH(tiles, linear(1), linear(64), 1024, stream, device, 1);
        else
            LAUNCH(lanes, linear(1), linear(64), 0, stream, device, 1, 1);
    }
}

static hipGraphExec_t capture(void) {
    hipGraph_t graph;
    hipGraphExec_t made;
    HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    launch_sequence();
    HIP(hipStreamEndCapture(stream, &graph));
    HIP(hipGraphInstantiate(&made, graph, NULL, NULL, 0));
    HIP(hipGraphDestroy(graph));
    return made;
}

/* A sequence of short kernels that could be a graph. */
static void sequence(void) {
    hipGraphExec_t graph = clean ? capture() : NULL;
    for (int i = 0; i < rounds * 2; ++i) {
        if (clean)
            HIP(hipGraphLaunch(graph, stream));
        else
            launch_sequence();
    }
    wait_for(stream);
    if (clean)
        HIP(hipGraphExecDestroy(graph));
}

/* A graph that is made again for each launch. */
static void rebuilt_graph(void) {
    hipGraphExec_t graph = capture();
    for (int i = 0; i < rounds; ++i) {
        HIP(hipGraphLaunch(graph, stream));
        compute(stream, 10);
        if (!clean) {
            HIP(hipGraphExecDestroy(graph));
            graph = capture();
        }
    }
    wait_for(stream);
    HIP(hipGraphExecDestroy(graph));
}

static void sleep_a_little(void *time) { usleep(*(useconds_t *)time); }

/* Functions of the host between kernels of a stream. */
static void host_function(void) {
    static useconds_t time = 2000;
    for (int i = 0; i < rounds; ++i) {
        compute(stream, 20);
        if (!clean)
            HIP(hipLaunchHostFunc(stream, sleep_a_little, &time));
    }
}

/* The host asks again and again whether the work has ended. */
static void poll(void) {
    for (int i = 0; i < rounds; ++i)
        compute(stream, 40);
    while (!clean && hipStreamQuery(stream) == hipErrorNotReady)
        ;
}

/* Work for the first of two GPUs alone, or `part` times as much for it as for the second. */
static void two_devices(uint32_t part) {
    uint32_t *second = NULL;
    hipStream_t other = NULL;
    if (part) {
        HIP(hipSetDevice(1));
        HIP(hipMalloc((void **)&second, BYTES));
        other = new_stream(hipStreamNonBlocking);
        HIP(hipSetDevice(0));
    }
    for (int i = 0; i < rounds; ++i) {
        compute(stream, 20 * (part ? part : 1));
        if (!part)
            continue;
        HIP(hipSetDevice(1));
        LAUNCH(work, linear(GROUPS), linear(ITEMS), 0, other, second, 20);
        HIP(hipSetDevice(0));
    }
    wait_for(stream);
    if (part)
        wait_for(other);
}

static void idle_device(void) { two_devices(clean ? 1 : 0); }
static void unequal_devices(void) { two_devices(clean ? 1 : 3); }

#define RCCL(call)                                                                                                     \
    do {                                                                                                               \
        ncclResult_t result_ = (call);                                                                                 \
        if (result_ != ncclSuccess)                                                                                    \
            FAIL("%s: %s (%d)", #call, ncclGetErrorString(result_), result_);                                          \
    } while (0)

/* Ranks that add their numbers after each step, of which one computes for longer. */
static void late_rank(void) {
    enum { RANKS = 4, LATE = 2 };
    ncclComm_t comms[RANKS];
    hipStream_t streams[RANKS];
    uint32_t *data[RANKS];
    RCCL(ncclCommInitAll(comms, RANKS, NULL));
    for (int rank = 0; rank < RANKS; ++rank) {
        HIP(hipSetDevice(rank));
        HIP(hipMalloc((void **)&data[rank], BYTES));
        streams[rank] = new_stream(hipStreamNonBlocking);
    }
    for (int i = 0; i < rounds; ++i) {
        for (int rank = 0; rank < RANKS; ++rank) {
            HIP(hipSetDevice(rank));
            LAUNCH(work, linear(16), linear(ITEMS), 0, streams[rank], data[rank], 40);
            if (!clean && rank == LATE)
                LAUNCH(work, linear(GROUPS), linear(ITEMS), 0, streams[rank], data[rank], 900);
        }
        RCCL(ncclGroupStart());
        for (int rank = 0; rank < RANKS; ++rank)
            RCCL(ncclAllReduce(data[rank], data[rank], 4096, ncclUint32, ncclSum, comms[rank], streams[rank]));
        RCCL(ncclGroupEnd());
    }
    for (int rank = 0; rank < RANKS; ++rank) {
        HIP(hipSetDevice(rank));
        wait_for(streams[rank]);
        RCCL(ncclCommDestroy(comms[rank]));
    }
    HIP(hipSetDevice(0));
}

/* A few groups on a GPU with many units, or one for each. */
static void small_grid(void) {
    for (int i = 0; i < rounds; ++i)
        LAUNCH(work, linear(clean ? FILL : 8), linear(ITEMS), 0, stream, device, clean ? 10 : 400);
}

/* A last round that is nearly empty, or whole rounds. */
static void last_round(void) {
    for (int i = 0; i < rounds / 4; ++i)
        LAUNCH(work, linear(clean ? 2 * FILL : FILL + 16), linear(ITEMS), 0, stream, device, 20);
}

/* Groups of 40 items leave more than a third of their waves' lanes empty. */
static void odd_groups(void) {
    for (int i = 0; i < rounds / 4; ++i)
        LAUNCH(work, linear(FILL * 4), linear(clean ? 64 : 40), 0, stream, device, 20);
}

static void local_memory(void) {
    for (int i = 0; i < rounds / 4; ++i)
        LAUNCH(tiles, linear(FILL), linear(ITEMS), clean ? 1024 : 40960, stream, device, 20);
}

static void vector_registers(void) {
    for (int i = 0; i < rounds / 10; ++i) {
        if (clean)
            LAUNCH(few_registers, linear(FILL), linear(ITEMS), 0, stream, device, 4);
        else
            LAUNCH(many_registers, linear(FILL), linear(ITEMS), 0, stream, device, 1);
    }
}

static void spilled(void) {
    for (int i = 0; i < rounds / 8; ++i) {
        if (clean)
            LAUNCH(work, linear(FILL), linear(ITEMS), 0, stream, device, 20);
        else
            LAUNCH(scratch_array, linear(FILL), linear(ITEMS), 0, stream, device, 4);
    }
}

static void strided(void) {
    for (int i = 0; i < rounds / 4; ++i)
        LAUNCH(rows, linear(FILL), linear(ITEMS), 0, stream, device, device, clean ? 1 : 32, 10);
}

static void bank_conflicts(void) {
    for (int i = 0; i < rounds / 4; ++i)
        LAUNCH(banks, linear(FILL), linear(ITEMS), 0, stream, device, clean ? 1 : 32, 40);
}

static void divergent(void) {
    for (int i = 0; i < rounds / 4; ++i)
        LAUNCH(lanes, linear(FILL), linear(ITEMS), 0, stream, device, clean ? 1 : 4, 40);
}

static void atomic_sums(void) {
    for (int i = 0; i < rounds / 4; ++i) {
        if (clean)
            LAUNCH(work, linear(FILL), linear(ITEMS), 0, stream, device, 20);
        else
            LAUNCH(sums, linear(FILL), linear(ITEMS), 0, stream, device, 16, 4);
    }
}

static void uneven_barrier(void) {
    for (int i = 0; i < rounds / 4; ++i)
        LAUNCH(uneven, linear(FILL), linear(ITEMS), 0, stream, device, clean ? 1 : 8, 2);
}

static void memory_latency(void) {
    uint32_t *results;
    HIP(hipMalloc((void **)&results, BYTES));
    for (int i = 0; i < rounds / 4; ++i) {
        if (clean)
            LAUNCH(work, linear(FILL), linear(ITEMS), 0, stream, results, 20);
        else
            LAUNCH(chase, linear(FILL), linear(ITEMS), 0, stream, results, device, 20);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} faults[] = {
    {"late-host", late_host},
    {"wait-in-loop", wait_in_loop},
    {"sync-copy", sync_copy},
    {"pageable", pageable},
    {"sync-fill", sync_fill},
    {"allocate", allocate},
    {"free", free_under_way},
    {"load", load},
    {"serial-streams", serial_streams},
    {"null-stream", null_stream},
    {"shared-queue", shared_queue},
    {"exposed-copy", exposed_copy},
    {"small-copy", small_copy},
    {"round-trip", round_trip},
    {"tiny", tiny},
    {"sequence", sequence},
    {"rebuilt-graph", rebuilt_graph},
    {"host-function", host_function},
    {"poll", poll},
    {"idle-device", idle_device},
    {"unequal-devices", unequal_devices},
    {"late-rank", late_rank},
    {"small-grid", small_grid},
    {"last-round", last_round},
    {"odd-groups", odd_groups},
    {"local-memory", local_memory},
    {"registers", vector_registers},
    {"scratch", spilled},
    {"strided", strided},
    {"banks", bank_conflicts},
    {"divergent", divergent},
    {"atomics", atomic_sums},
    {"uneven", uneven_barrier},
    {"latency", memory_latency},
};

int main(int argc, char **argv) {
    if (argc < 2)
        FAIL("usage: %s FAULT [clean [ROUNDS]]", argv[0]);
    clean = argc > 2 && strcmp(argv[2], "clean") == 0;
    rounds = (int)number_argument(argc, argv, 3, 40);
    size_t fault = 0, count = sizeof faults / sizeof *faults;
    while (fault < count && strcmp(faults[fault].name, argv[1]))
        ++fault;
    if (fault == count)
        FAIL("there is no fault `%s`", argv[1]);
    HIP(hipSetDevice(0));
    stream = new_stream(hipStreamNonBlocking);
    HIP(hipMalloc((void **)&device, BYTES));
    HIP(hipHostMalloc((void **)&pinned, BYTES, hipHostMallocDefault));
    /* Places of chains that lead far away, side by side. */
    for (uint32_t i = 0; i < WORDS; ++i)
        pinned[i] = (i + 40960) % WORDS;
    HIP(hipMemcpyAsync(device, pinned, BYTES, hipMemcpyHostToDevice, stream));
    wait_for(stream);
    faults[fault].run();
    HIP(hipDeviceSynchronize());
    HIP(hipGetLastError());
    HIP(hipHostFree(pinned));
    HIP(hipFree(device));
    HIP(hipStreamDestroy(stream));
    puts("ok");
    return 0;
}
