/* ipc MODE: memory and events of one process that another opens.
 *   events   each process waits in a stream for what the other has put into one; contents are checked
 *   many     5,000 records of an event, to which the other process counts
 *   errors   calls that fail, with their statuses
 * The processes are a parent and a child that was forked before either used a GPU. */
#include "basic.h"

#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RECORDS = 5000, BYTES = BASIC_COUNT * sizeof(uint32_t) };

/* What the parent tells the child. */
struct offer {
    hipIpcMemHandle_t memory;
    hipIpcEventHandle_t filled, taken;
};

/* Messages to the processes, and to the functions that hold their streams. */
static int to_child[2], to_parent[2], to_child_stream[2], to_parent_stream[2];

static void send(int pipe[2], const void *data, size_t size) {
    if (write(pipe[1], data, size) != (ssize_t)size)
        FAIL("the other process is gone");
}

static void receive(int pipe[2], void *data, size_t size) {
    if (read(pipe[0], data, size) != (ssize_t)size)
        FAIL("the other process is gone");
}

/* Holds a stream until the other process has sent a byte. */
static void hold(void *pipe) {
    char byte;
    receive(pipe, &byte, 1);
}

static void expect(const char *what, hipError_t found, hipError_t expected) {
    if (found != expected)
        FAIL("%s: %s", what, hipGetErrorName(found));
}

static hipEvent_t shared_event(void) {
    hipEvent_t event;
    HIP(hipEventCreateWithFlags(&event, hipEventInterprocess | hipEventDisableTiming));
    expect("an event before its first record", hipEventQuery(event), hipSuccess);
    HIP(hipEventSynchronize(event));
    return event;
}

/* Memory of the host, copies to which need not be waited for. */
static uint32_t *pinned(void) {
    void *memory;
    HIP(hipHostMalloc(&memory, BYTES, hipHostMallocDefault));
    return memory;
}

static void check(const uint32_t *data, uint32_t value) {
    for (uint32_t i = 0; i < BASIC_COUNT; ++i) {
        if (data[i] != value + i)
            FAIL("element %u: %u instead of %u", i, data[i], value + i);
    }
}

static void fill(hipStream_t stream, uint32_t *data, uint32_t value) {
    LAUNCH(fill_kernel, linear(BASIC_COUNT / BASIC_BLOCK), linear(BASIC_BLOCK), 0, stream, data, value, BASIC_COUNT);
}

static void parent_events(void) {
    struct offer offer;
    uint32_t *data, *host = pinned();
    hipStream_t stream;
    hipEvent_t filled = shared_event(), taken = shared_event();
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    HIP(hipMalloc((void **)&data, BYTES));
    HIP(hipMemset(data, 0, BYTES));
    HIP(hipIpcGetMemHandle(&offer.memory, data));
    HIP(hipIpcGetEventHandle(&offer.filled, filled));
    HIP(hipIpcGetEventHandle(&offer.taken, taken));
    /* The child says when the kernel may run. */
    HIP(hipLaunchHostFunc(stream, hold, to_parent_stream));
    fill(stream, data, 100);
    HIP(hipEventRecord(filled, stream));
    send(to_child, &offer, sizeof offer);
    char byte;
    /* The child has recorded `taken` behind a kernel that it holds. */
    receive(to_parent, &byte, 1);
    expect("an event that the child has recorded", hipEventQuery(taken), hipErrorNotReady);
    HIP(hipStreamWaitEvent(stream, taken, 0));
    HIP(hipMemcpyAsync(host, data, BYTES, hipMemcpyDeviceToHost, stream));
    expect("a stream that waits for the child", hipStreamQuery(stream), hipErrorNotReady);
    send(to_child_stream, "", 1);
    HIP(hipStreamSynchronize(stream));
    check(host, 7000);
    HIP(hipEventSynchronize(taken));
    expect("an event that was passed", hipEventQuery(taken), hipSuccess);
    HIP(hipEventDestroy(filled));
    HIP(hipEventDestroy(taken));
    HIP(hipStreamDestroy(stream));
}

static void child_events(void) {
    struct offer offer;
    uint32_t *data, *host = pinned();
    hipStream_t stream;
    hipEvent_t filled, taken;
    receive(to_child, &offer, sizeof offer);
    HIP(hipIpcOpenMemHandle((void **)&data, offer.memory, hipIpcMemLazyEnablePeerAccess));
    HIP(hipIpcOpenEventHandle(&filled, offer.filled));
    HIP(hipIpcOpenEventHandle(&taken, offer.taken));
    expect("an event that the parent has recorded", hipEventQuery(filled), hipErrorNotReady);
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    HIP(hipStreamWaitEvent(stream, filled, 0));
    HIP(hipMemcpyAsync(host, data, BYTES, hipMemcpyDeviceToHost, stream));
    expect("a stream that waits for the parent", hipStreamQuery(stream), hipErrorNotReady);
    send(to_parent_stream, "", 1);
    HIP(hipEventSynchronize(filled));
    HIP(hipStreamSynchronize(stream));
    check(host, 100);
    HIP(hipLaunchHostFunc(stream, hold, to_child_stream));
    fill(stream, data, 7000);
    HIP(hipEventRecord(taken, stream));
    send(to_parent, "", 1);
    HIP(hipStreamSynchronize(stream));
    HIP(hipIpcCloseMemHandle(data));
    HIP(hipEventDestroy(filled));
    HIP(hipEventDestroy(taken));
}

static void parent_many(void) {
    hipEvent_t event = shared_event();
    hipIpcEventHandle_t handle;
    HIP(hipIpcGetEventHandle(&handle, event));
    send(to_child, &handle, sizeof handle);
    for (int n = 0; n < RECORDS; ++n)
        HIP(hipEventRecord(event, NULL));
    HIP(hipEventSynchronize(event));
    char byte;
    receive(to_parent, &byte, 1);
}

static void child_many(void) {
    hipEvent_t event;
    hipIpcEventHandle_t handle;
    receive(to_child, &handle, sizeof handle);
    HIP(hipIpcOpenEventHandle(&event, handle));
    for (int n = 0; n < RECORDS / 100; ++n) {
        HIP(hipStreamWaitEvent(NULL, event, 0));
        HIP(hipEventRecord(event, NULL));
        HIP(hipEventSynchronize(event));
    }
    HIP(hipDeviceSynchronize());
    send(to_parent, "", 1);
}

static void parent_errors(void) {
    hipEvent_t own, event;
    hipIpcEventHandle_t handle;
#define SAY(what, call) printf("%s: %s\n", what, hipGetErrorName(call))
    SAY("with times", hipEventCreateWithFlags(&own, hipEventInterprocess));
    HIP(hipEventCreate(&own));
    SAY("handle of an event of one process", hipIpcGetEventHandle(&handle, own));
    event = shared_event();
    SAY("no place for the handle", hipIpcGetEventHandle(NULL, event));
    SAY("no event", hipIpcGetEventHandle(&handle, NULL));
    HIP(hipIpcGetEventHandle(&handle, event));
    SAY("opened in the same process", hipIpcOpenEventHandle(&own, handle));
    SAY("no place for the event", hipIpcOpenEventHandle(NULL, handle));
    float time;
    HIP(hipEventRecord(event, NULL));
    HIP(hipEventSynchronize(event));
    SAY("elapsed time", hipEventElapsedTime(&time, event, event));
    send(to_child, &handle, sizeof handle);
    char byte;
    receive(to_parent, &byte, 1);
    HIP(hipEventDestroy(event));
    send(to_child, "", 1);
}

static void child_errors(void) {
    hipEvent_t event, again;
    hipIpcEventHandle_t handle, second, wrong;
    receive(to_child, &handle, sizeof handle);
    memset(&wrong, 0x5a, sizeof wrong);
    SAY("no handle", hipIpcOpenEventHandle(&event, wrong));
    HIP(hipIpcOpenEventHandle(&event, handle));
    SAY("handle of an opened event", hipIpcGetEventHandle(&second, event));
    send(to_parent, "", 1);
    char byte;
    receive(to_child, &byte, 1);
    /* What is open stays usable when its owner has destroyed it. */
    HIP(hipEventRecord(event, NULL));
    HIP(hipEventSynchronize(event));
    SAY("destroyed by its owner", hipIpcOpenEventHandle(&again, handle));
    HIP(hipEventDestroy(event));
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*parent)(void), (*child)(void);
    } modes[] = {
        {"events", parent_events, child_events},
        {"many", parent_many, child_many},
        {"errors", parent_errors, child_errors},
    };
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (pipe(to_child) || pipe(to_parent) || pipe(to_child_stream) || pipe(to_parent_stream))
        FAIL("no pipes");
    for (size_t n = 0; argc == 2 && n < sizeof modes / sizeof *modes; ++n) {
        if (strcmp(argv[1], modes[n].name))
            continue;
        pid_t child = fork();
        bool is_child = child == 0;
        close(is_child ? to_child[1] : to_child[0]);
        close(is_child ? to_parent[0] : to_parent[1]);
        close(is_child ? to_child_stream[1] : to_child_stream[0]);
        close(is_child ? to_parent_stream[0] : to_parent_stream[1]);
        if (is_child) {
            modes[n].child();
            return 0;
        }
        modes[n].parent();
        int status;
        if (waitpid(child, &status, 0) != child || status)
            FAIL("the child ended with status %d", status);
        printf("ok\n");
        return 0;
    }
    FAIL("usage: ipc events|many|errors");
}
