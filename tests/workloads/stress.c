/* stress SECONDS THREADS SEED [progress FILE] [unexecuted] [reset]: THREADS threads that do what a program can do with streams, at random:
 * launches in bursts, checked launches, checked copies, events, graphs, streams that come and go. With `reset` all of them stop now and
 * then for a reset of the device. Prints how many launches and copies it made.
 *
 * With `progress`, a line is added to FILE about every ten milliseconds: the time on CLOCK_BOOTTIME in ns, and the launches
 * and copies that had been waited for before it. `unexecuted` is for devices that do not execute kernels. */
#include "basic.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { ELEMENTS = BASIC_COUNT, BYTES = ELEMENTS * sizeof(uint32_t) };

static atomic_ulong launches, copies;
static atomic_int ending, resetting;
static pthread_barrier_t stopped, resumed;
static int executed = 1;

/* What a thread has. */
struct worker {
    pthread_t thread;
    uint64_t random;
    hipStream_t stream;
    uint32_t *device;
    uint32_t host[ELEMENTS], back[ELEMENTS];
};

static uint32_t below(struct worker *w, uint32_t limit) {
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (uint32_t)(w->random >> 33) % limit;
}

static void begin(struct worker *w) {
    HIP(hipStreamCreateWithFlags(&w->stream, hipStreamNonBlocking));
    HIP(hipMalloc((void **)&w->device, BYTES));
}

static void end(struct worker *w) {
    HIP(hipStreamSynchronize(w->stream));
    HIP(hipFree(w->device));
    HIP(hipStreamDestroy(w->stream));
}

static void launch(struct worker *w, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
        LAUNCH(empty_kernel, linear(1), linear(64), 0, w->stream);
}

static void burst(struct worker *w) {
    uint32_t count = 1 + below(w, 300);
    launch(w, count);
    HIP(hipStreamSynchronize(w->stream));
    launches += count;
}

static void checked_launch(struct worker *w) {
    uint32_t value = below(w, 1u << 30);
    LAUNCH(fill_kernel, linear(ELEMENTS / BASIC_BLOCK), linear(BASIC_BLOCK), 0, w->stream, w->device, value, ELEMENTS);
    HIP(hipMemcpyAsync(w->back, w->device, BYTES, hipMemcpyDeviceToHost, w->stream));
    HIP(hipStreamSynchronize(w->stream));
    for (uint32_t i = 0; executed && i < ELEMENTS; ++i) {
        if (w->back[i] != value + i)
            FAIL("launch: element %u: %u instead of %u", i, w->back[i], value + i);
    }
    launches += 1;
    copies += 1;
}

static void checked_copy(struct worker *w) {
    for (uint32_t i = 0; i < ELEMENTS; ++i)
        w->host[i] = below(w, ~0u);
    HIP(hipMemcpyAsync(w->device, w->host, BYTES, hipMemcpyHostToDevice, w->stream));
    HIP(hipMemcpyAsync(w->back, w->device, BYTES, hipMemcpyDeviceToHost, w->stream));
    HIP(hipStreamSynchronize(w->stream));
    if (memcmp(w->host, w->back, BYTES))
        FAIL("a copy differs");
    copies += 2;
}

static void events(struct worker *w) {
    hipEvent_t first, last;
    float milliseconds = -1;
    uint32_t count = 1 + below(w, 20);
    HIP(hipEventCreate(&first));
    HIP(hipEventCreate(&last));
    HIP(hipEventRecord(first, w->stream));
    launch(w, count);
    HIP(hipEventRecord(last, w->stream));
    HIP(hipEventSynchronize(last));
    HIP(hipEventElapsedTime(&milliseconds, first, last));
    if (!(milliseconds >= 0))
        FAIL("%f ms between two events", milliseconds);
    HIP(hipEventDestroy(first));
    HIP(hipEventDestroy(last));
    HIP(hipStreamSynchronize(w->stream));
    launches += count;
}

static void graph(struct worker *w) {
    hipGraph_t graph;
    hipGraphExec_t exec;
    uint32_t nodes = 1 + below(w, 100), times = 1 + below(w, 4);
    HIP(hipStreamBeginCapture(w->stream, hipStreamCaptureModeThreadLocal));
    launch(w, nodes);
    HIP(hipStreamEndCapture(w->stream, &graph));
    HIP(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    for (uint32_t i = 0; i < times; ++i)
        HIP(hipGraphLaunch(exec, w->stream));
    HIP(hipStreamSynchronize(w->stream));
    HIP(hipGraphExecDestroy(exec));
    HIP(hipGraphDestroy(graph));
    launches += nodes * times;
}

static void *work(void *argument) {
    struct worker *w = argument;
    HIP(hipSetDevice(0));
    begin(w);
    while (!ending) {
        if (resetting) {
            end(w);
            pthread_barrier_wait(&stopped);
            pthread_barrier_wait(&resumed);
            begin(w);
        }
        switch (below(w, 16)) {
        case 0:
            end(w);
            begin(w);
            break;
        case 1:
        case 2:
            graph(w);
            break;
        case 3:
        case 4:
        case 5:
            events(w);
            break;
        case 6:
        case 7:
        case 8:
            checked_copy(w);
            break;
        case 9:
        case 10:
        case 11:
            checked_launch(w);
            break;
        default:
            burst(w);
        }
    }
    end(w);
    return NULL;
}

static void add_line(int file) {
    struct timespec now;
    char line[80];
    /* Before the time: what is counted had been waited for by then. */
    unsigned long done = launches, copied = copies;
    clock_gettime(CLOCK_BOOTTIME, &now);
    int length = snprintf(line, sizeof line, "%lld %lu %lu\n", now.tv_sec * 1000000000LL + now.tv_nsec, done, copied);
    if (write(file, line, (size_t)length) != length)
        FAIL("cannot write the progress");
}

int main(int argc, char **argv) {
    long seconds = number_argument(argc, argv, 1, 10), threads = number_argument(argc, argv, 2, 16);
    long seed = number_argument(argc, argv, 3, 1);
    int progress = -1, resets = 0;
    for (int i = 4; i < argc; ++i) {
        if (!strcmp(argv[i], "progress") && i + 1 < argc) {
            progress = open(argv[++i], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
            if (progress < 0)
                FAIL("cannot create %s", argv[i]);
        } else if (!strcmp(argv[i], "unexecuted")) {
            executed = 0;
        } else if (!strcmp(argv[i], "reset")) {
            resets = 1;
        } else {
            FAIL("what is `%s`?", argv[i]);
        }
    }
    struct worker *workers = calloc((size_t)threads, sizeof *workers);
    pthread_barrier_init(&stopped, NULL, (unsigned)threads + 1);
    pthread_barrier_init(&resumed, NULL, (unsigned)threads + 1);
    for (long i = 0; i < threads; ++i) {
        workers[i].random = (uint64_t)(seed * 7919 + i + 1) * 0x9e3779b97f4a7c15ull;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            FAIL("cannot start thread %ld", i);
    }
    double start = seconds_now(), next_reset = start + 1;
    while (seconds_now() < start + (double)seconds) {
        usleep(10000);
        if (progress >= 0)
            add_line(progress);
        if (resets && seconds_now() > next_reset) {
            next_reset += 1;
            resetting = 1;
            pthread_barrier_wait(&stopped);
            HIP(hipDeviceReset());
            resetting = 0;
            pthread_barrier_wait(&resumed);
        }
    }
    ending = 1;
    for (long i = 0; i < threads; ++i)
        pthread_join(workers[i].thread, NULL);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("%lu launches, %lu copies in %.1f s, at most %ld KiB\n", launches, copies, seconds_now() - start, used.ru_maxrss);
    return 0;
}
