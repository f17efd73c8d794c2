/* call-cost WHAT N ROUNDS: processor time of calls that give the device work, without the time that the work takes: the best of
 * ROUNDS rounds, each waited for. WHAT:
 *
 *   launch  N launches of an empty kernel
 *   copy    N copies of 64 bytes to the device
 *   graph   a launch of a graph with N nodes, each an empty kernel
 *
 * Prints ns per call; of a graph that is one call. */
#include "basic.h"

#include <string.h>

static hipStream_t stream;
static char *host, *device;

static double processor_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void launches(long count) {
    for (long i = 0; i < count; ++i)
        LAUNCH(empty_kernel, linear(1), linear(64), 0, stream);
}

static void copies(long count) {
    for (long i = 0; i < count; ++i)
        HIP(hipMemcpyAsync(device, host, 64, hipMemcpyHostToDevice, stream));
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "launch";
    long count = number_argument(argc, argv, 2, 1000), rounds = number_argument(argc, argv, 3, 50);
    hipGraph_t graph;
    hipGraphExec_t exec = NULL;
    HIP(hipSetDevice(0));
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    HIP(hipMalloc((void **)&device, 64));
    HIP(hipHostMalloc((void **)&host, 64, hipHostMallocDefault));
    if (!strcmp(what, "graph")) {
        HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal));
        launches(count);
        HIP(hipStreamEndCapture(stream, &graph));
        HIP(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    } else if (strcmp(what, "launch") && strcmp(what, "copy")) {
        FAIL("what is `%s`?", what);
    }
    double best = 0;
    /* The first round warms up. */
    for (long round = 0; round <= rounds; ++round) {
        double begin = processor_time();
        if (exec)
            HIP(hipGraphLaunch(exec, stream));
        else if (what[0] == 'c')
            copies(count);
        else
            launches(count);
        double took = processor_time() - begin;
        HIP(hipStreamSynchronize(stream));
        if (round == 1 || (round > 1 && took < best))
            best = took;
    }
    long calls = exec ? 1 : count;
    printf("%.1f ns per call, %ld calls\n", best / (double)calls, calls);
    if (exec) {
        HIP(hipGraphExecDestroy(exec));
        HIP(hipGraphDestroy(graph));
    }
    HIP(hipHostFree(host));
    HIP(hipFree(device));
    HIP(hipStreamDestroy(stream));
    return 0;
}
