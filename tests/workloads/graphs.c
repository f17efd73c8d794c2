/* graphs MODE: graphs of HIP, for records of which graph work belongs to. MODE:
 *
 *   launches   a graph of three kernels, launched five times, and one kernel outside of it
 *   instances  a graph made executable twice; both are launched and destroyed, and a third is made and launched
 *   failing    a launch that fails, then one that does not
 *   device     a graph on the null stream of device 1
 *   nested     a graph whose host function launches another graph
 *   threads    two threads, each with a graph of its own that it launches ten times
 *   copies     a graph of a copy to the device, a kernel and a copy back, launched twice
 *   events     events on two streams: recorded, waited for, waited for in vain, recorded in a capture
 *   unwaited   a wait for an event that is destroyed before the stream gets any work
 */
#include "basic.h"

#include <pthread.h>
#include <string.h>

static uint32_t *device;

/* Makes a graph of `count` kernels executable. */
static hipGraphExec_t executable(long count) {
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t exec;
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal));
    for (long i = 0; i < count; ++i)
        LAUNCH(empty_kernel, linear(1), linear(64), 0, stream);
    HIP(hipStreamEndCapture(stream, &graph));
    HIP(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    HIP(hipGraphDestroy(graph));
    HIP(hipStreamDestroy(stream));
    return exec;
}

static void launches(void) {
    hipStream_t stream;
    hipGraphExec_t exec = executable(3);
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    for (int i = 0; i < 5; ++i)
        HIP(hipGraphLaunch(exec, stream));
    LAUNCH(empty_kernel, linear(2), linear(64), 0, stream);
    HIP(hipStreamSynchronize(stream));
    HIP(hipGraphExecDestroy(exec));
    HIP(hipStreamDestroy(stream));
}

static void instances(void) {
    hipGraphExec_t first = executable(1), second = executable(1);
    HIP(hipGraphLaunch(first, NULL));
    HIP(hipGraphLaunch(second, NULL));
    HIP(hipStreamSynchronize(NULL));
    HIP(hipGraphExecDestroy(second));
    HIP(hipGraphExecDestroy(first));
    hipGraphExec_t third = executable(1);
    HIP(hipGraphLaunch(third, NULL));
    HIP(hipStreamSynchronize(NULL));
    HIP(hipGraphExecDestroy(third));
}

static void failing(void) {
    hipGraphExec_t exec = executable(1);
    if (hipGraphLaunch(NULL, NULL) == hipSuccess)
        FAIL("a launch of no graph succeeded%s", "");
    HIP(hipGraphLaunch(exec, NULL));
    HIP(hipStreamSynchronize(NULL));
    HIP(hipGraphExecDestroy(exec));
}

static void on_device(void) {
    HIP(hipSetDevice(1));
    hipGraphExec_t exec = executable(2);
    HIP(hipGraphLaunch(exec, NULL));
    HIP(hipStreamSynchronize(NULL));
    HIP(hipGraphExecDestroy(exec));
}

/* `hipStreamPerThread`. */
#define PER_THREAD ((hipStream_t)2)

static void launch_inner(void *exec) {
    if (hipGraphLaunch((hipGraphExec_t)exec, PER_THREAD) != hipSuccess ||
        hipStreamSynchronize(PER_THREAD) != hipSuccess)
        FAIL("the inner graph was not launched%s", "");
}

static void nested(void) {
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t inner = executable(2), outer;
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed));
    LAUNCH(empty_kernel, linear(1), linear(64), 0, stream);
    HIP(hipLaunchHostFunc(stream, launch_inner, inner));
    LAUNCH(empty_kernel, linear(1), linear(64), 0, stream);
    HIP(hipStreamEndCapture(stream, &graph));
    HIP(hipGraphInstantiate(&outer, graph, NULL, NULL, 0));
    HIP(hipGraphLaunch(outer, stream));
    HIP(hipStreamSynchronize(stream));
    HIP(hipGraphExecDestroy(outer));
    HIP(hipGraphExecDestroy(inner));
    HIP(hipGraphDestroy(graph));
    HIP(hipStreamDestroy(stream));
}

static void *launch_own(void *count) {
    hipStream_t stream;
    hipGraphExec_t exec = executable((long)count);
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    for (int i = 0; i < 10; ++i)
        HIP(hipGraphLaunch(exec, stream));
    HIP(hipStreamSynchronize(stream));
    HIP(hipGraphExecDestroy(exec));
    HIP(hipStreamDestroy(stream));
    return NULL;
}

static void threads(void) {
    pthread_t both[2];
    for (long i = 0; i < 2; ++i)
        if (pthread_create(&both[i], NULL, launch_own, (void *)(2 + i)))
            FAIL("thread %ld was not made", i);
    for (int i = 0; i < 2; ++i)
        pthread_join(both[i], NULL);
}

static void copies(void) {
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t exec;
    uint32_t *host;
    HIP(hipHostMalloc((void **)&host, 4096, hipHostMallocDefault));
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal));
    HIP(hipMemcpyAsync(device, host, 4096, hipMemcpyHostToDevice, stream));
    LAUNCH(fill_kernel, linear(BASIC_COUNT / BASIC_BLOCK), linear(BASIC_BLOCK), 0, stream, device, 7, BASIC_COUNT);
    HIP(hipMemcpyAsync(host, device, 4096, hipMemcpyDeviceToHost, stream));
    HIP(hipStreamEndCapture(stream, &graph));
    HIP(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    for (int i = 0; i < 2; ++i)
        HIP(hipGraphLaunch(exec, stream));
    HIP(hipStreamSynchronize(stream));
    if (host[3] != 10)
        FAIL("%u instead of 10", host[3]);
    HIP(hipGraphExecDestroy(exec));
    HIP(hipGraphDestroy(graph));
    HIP(hipStreamDestroy(stream));
    HIP(hipHostFree(host));
}

static void events(void) {
    hipStream_t one, other;
    hipEvent_t event, untimed;
    hipGraph_t graph;
    HIP(hipStreamCreateWithFlags(&one, hipStreamNonBlocking));
    HIP(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
    HIP(hipEventCreate(&event));
    /* A wait on the other stream, for a kernel that takes its time. */
    LAUNCH(churn_kernel, linear(BASIC_COUNT / BASIC_BLOCK), linear(BASIC_BLOCK), 0, one, device, 20000, BASIC_COUNT);
    HIP(hipEventRecord(event, one));
    HIP(hipStreamWaitEvent(other, event, 0));
    LAUNCH(empty_kernel, linear(1), linear(64), 0, other);
    /* On its own stream there is nothing to wait for. */
    HIP(hipStreamWaitEvent(one, event, 0));
    HIP(hipStreamSynchronize(other));
    HIP(hipStreamSynchronize(one));
    /* Nor for an event that is complete. */
    HIP(hipStreamWaitEvent(other, event, 0));
    HIP(hipStreamSynchronize(other));
    HIP(hipEventCreateWithFlags(&untimed, hipEventDisableTiming));
    for (int i = 0; i < 3; ++i)
        HIP(hipEventRecord(untimed, one));
    HIP(hipStreamSynchronize(one));
    HIP(hipStreamBeginCapture(one, hipStreamCaptureModeThreadLocal));
    HIP(hipEventRecord(event, one));
    HIP(hipStreamEndCapture(one, &graph));
    HIP(hipGraphDestroy(graph));
    HIP(hipEventDestroy(untimed));
    HIP(hipEventDestroy(event));
    HIP(hipStreamDestroy(other));
    HIP(hipStreamDestroy(one));
}

static void unwaited(void) {
    hipStream_t one, other;
    hipEvent_t event;
    HIP(hipStreamCreateWithFlags(&one, hipStreamNonBlocking));
    HIP(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
    HIP(hipEventCreate(&event));
    LAUNCH(churn_kernel, linear(BASIC_COUNT / BASIC_BLOCK), linear(BASIC_BLOCK), 0, one, device, 20000, BASIC_COUNT);
    HIP(hipEventRecord(event, one));
    HIP(hipStreamWaitEvent(other, event, 0));
    HIP(hipEventDestroy(event));
    HIP(hipStreamSynchronize(one));
    HIP(hipStreamDestroy(other));
    HIP(hipStreamDestroy(one));
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {{"launches", launches}, {"instances", instances}, {"failing", failing}, {"device", on_device},
                 {"nested", nested},     {"threads", threads},     {"copies", copies},   {"events", events},
                 {"unwaited", unwaited}};
    const char *mode = argc > 1 ? argv[1] : "launches";
    HIP(hipSetDevice(0));
    HIP(hipMalloc((void **)&device, BASIC_COUNT * sizeof *device));
    for (size_t i = 0; i < sizeof modes / sizeof *modes; ++i) {
        if (strcmp(mode, modes[i].name))
            continue;
        modes[i].run();
        HIP(hipFree(device));
        return 0;
    }
    FAIL("what is `%s`?", mode);
}
