/* A tool that replays kernels and the program it watches, in one; it prints what the provider says and what the kernels left.
 * The ABI is declared here by hand.
 *
 * replay MODULE MODE, where MODE is
 *   none, one, three   no function for the number of passes, or 1 or 3 passes
 *   endless            as many as the function that is asked after each says; loose: without that function
 *   early              4 passes, of which the second is the last
 *   user               3 passes that change the tool's value
 *   stop               3 passes; the context with the records is left out from the second on
 *   outside            the functions for contexts are called outside of the begin of a pass
 *   memory             3 passes, with host memory for no copy of the device's */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

typedef struct { uint64_t handle; } id;
typedef struct { size_t size; const char *name; uint32_t handle; } client_id;
typedef struct {
    size_t size;
    int (*initialize)(void (*)(client_id), void *);
    void (*finalize)(void *);
    void *data;
} configure_result;
typedef struct {
    uint64_t size, agent, queue, kernel, dispatch;
    uint32_t private_size, group_size, workgroup[3], grid[3];
    uint8_t reserved[56];
} dispatch_info;
typedef struct {
    uint64_t context, thread, internal, external, ancestor;
    uint32_t kind;
    int32_t operation;
    uint32_t phase;
    void *payload;
} record;
typedef struct {
    uint64_t size;
    dispatch_info info;
    uint64_t current, total;
    uint64_t (*count)(dispatch_info, uint64_t);
    int (*proceed)(dispatch_info, uint64_t, uint64_t, uint64_t);
    int (*start)(id);
    int (*stop)(id);
} replay_data;
typedef struct {
    uint64_t size, start, end;
    dispatch_info info;
} dispatch_data;
typedef void (*trace_cb)(record, uint64_t *, void *);

int rocprofiler_create_context(id *);
int rocprofiler_start_context(id);
int rocprofiler_configure_callback_tracing_service(id, uint32_t, const int32_t *, size_t, trace_cb, void *);
int hipMalloc(void **, size_t);
int hipMemcpy(void *, const void *, size_t, int);
int hipDeviceSynchronize(void);
int hipModuleLoad(void **, const char *);
int hipModuleGetFunction(void **, void *, const char *);
int hipModuleLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

enum { KERNEL_DISPATCH = 12, KERNEL_REPLAY = 26, CONFIG = 1, PASS = 2, COMPLETE = 2, ENTER = 1 };

static id replays, others, traces;
static const char *mode;
static int (*start_context)(id), (*stop_context)(id);
static int records, dispatches;
static uint64_t last;

static int is(const char *name) { return strcmp(mode, name) == 0; }

static uint64_t passes(dispatch_info info, uint64_t user) {
    (void)info, (void)user;
    return is("one") ? 1 : is("endless") || is("loose") ? 0 : is("early") ? 4 : 3;
}

static int proceed(dispatch_info info, uint64_t current, uint64_t total, uint64_t user) {
    printf("    proceed %lu of %lu, user %lu, dispatch %lu\n", current, total, user, info.dispatch);
    return is("endless") ? current < 4 : is("early") ? current < 1 : 1;
}

static void on_replay(record event, uint64_t *user, void *data) {
    replay_data *replay = event.payload;
    (void)data;
    printf("%s %s size %lu, pass %lu of %lu, user %lu, functions %d%d%d%d\n", event.operation == CONFIG ? "config" : "  pass",
           event.phase == ENTER ? "begins" : "ends", replay->size, replay->current, replay->total, *user, !!replay->count,
           !!replay->proceed, !!replay->start, !!replay->stop);
    if (event.operation == CONFIG && event.phase == ENTER) {
        *user = 7;
        if (!is("none"))
            replay->count = passes;
        if (is("endless") || is("early") || is("user"))
            replay->proceed = proceed;
        if (is("outside") && start_context)
            printf("  outside: %s\n", stop_context(traces) ? "refused" : "accepted");
    }
    if (event.operation == PASS && event.phase == ENTER) {
        start_context = replay->start;
        stop_context = replay->stop;
        if (is("user"))
            *user += replay->current;
        if (is("stop") && replay->current == 1)
            printf("    stop: %d, of none: %s\n", stop_context(traces), stop_context((id){0}) ? "refused" : "accepted");
    }
    if (event.operation == PASS && event.phase != ENTER && is("outside"))
        printf("    outside: %s\n", stop_context(traces) ? "refused" : "accepted");
}

static void on_dispatch(record event, uint64_t *user, void *data) {
    (void)user, (void)data;
    dispatch_data *dispatch = event.payload;
    ++records;
    dispatches += dispatch->info.dispatch != last;
    last = dispatch->info.dispatch;
}

static int initialize(void (*finalize)(client_id), void *data) {
    (void)finalize, (void)data;
    int32_t complete = COMPLETE;
    rocprofiler_create_context(&replays);
    rocprofiler_create_context(&others);
    rocprofiler_create_context(&traces);
    printf("configured %d", rocprofiler_configure_callback_tracing_service(replays, KERNEL_REPLAY, NULL, 0, on_replay, NULL));
    printf(", again %d", rocprofiler_configure_callback_tracing_service(replays, KERNEL_REPLAY, NULL, 0, on_replay, NULL));
    printf(", by another %d\n", rocprofiler_configure_callback_tracing_service(others, KERNEL_REPLAY, NULL, 0, on_replay, NULL));
    rocprofiler_configure_callback_tracing_service(traces, KERNEL_DISPATCH, &complete, 1, on_dispatch, NULL);
    rocprofiler_start_context(replays);
    rocprofiler_start_context(traces);
    return 0;
}

configure_result *rocprofiler_configure(uint32_t version, const char *text, uint32_t priority, client_id *client) {
    static configure_result result = {sizeof result, initialize, NULL, NULL};
    (void)text, (void)priority;
    client->name = "replay";
    printf("version %u\n", version);
    return &result;
}

static void launch(void *function, void **arguments) {
    if (hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL) || hipDeviceSynchronize())
        printf("the launch failed\n"), exit(1);
}

int main(int count, char **words) {
    if (count != 3)
        return 2;
    mode = words[2];
    void *module, *counting, *increment, *device;
    uint32_t values[64] = {0}, length = 64;
    if (hipModuleLoad(&module, words[1]) || hipModuleGetFunction(&counting, module, "counting_kernel") ||
        hipModuleGetFunction(&increment, module, "increment_kernel") || hipMalloc(&device, is("memory") ? 64 << 20 : sizeof values))
        return 3;
    hipMemcpy(device, values, sizeof values, 1);
    if (is("memory")) {
        struct rlimit limit;
        FILE *file = fopen("/proc/self/statm", "r");
        unsigned long pages = 0;
        if (!file || fscanf(file, "%lu", &pages) != 1)
            return 4;
        fclose(file);
        limit.rlim_cur = limit.rlim_max = pages * 4096 + (32 << 20);
        if (setrlimit(RLIMIT_AS, &limit))
            return 5;
    }
    launch(increment, (void *[]){&device, &device, &length});
    hipMemcpy(values, device, sizeof values, 2);
    printf("incremented to %u and %u, %d records of %d dispatches\n", values[0], values[63], records, dispatches);
    records = dispatches = 0;
    launch(counting, (void *[]){&device});
    hipMemcpy(values, device, sizeof values, 2);
    printf("counted to %u\n", values[0]);
    return 0;
}
