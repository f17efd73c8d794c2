/* A small provider of the rocprofiler-sdk ABI and the program that it watches, in one executable: enough of the ABI to
 * lead the collector into situations that a well-behaved provider and target do not produce on demand.
 *
 *   provider <scenario> [count]
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct { uint64_t handle; } handle_t;
typedef union { uint64_t value; void* ptr; } user_data_t;
typedef struct { uint64_t internal; user_data_t external; uint64_t ancestor; } correlation_t;
typedef struct {
    handle_t context;
    uint64_t thread;
    correlation_t correlation;
    uint32_t kind;
    int32_t operation;
    uint32_t phase;
    void* payload;
} callback_record_t;
typedef void (*callback_t)(callback_record_t, user_data_t*, void*);
typedef int (*request_t)(uint64_t, handle_t, uint32_t, int32_t, uint64_t, user_data_t*, void*);

enum { HSA = 1, HIP = 5, CONTROL = 8, OBJECT = 10, SCRATCH = 11, DISPATCH = 12, COPY = 13, ALLOCATION = 16, RUNTIME = 17, STREAM = 20, RANGE = 21, EVENTS = 22 };
/* The buffer service numbers some kinds differently. */
enum { DISPATCH_BUFFER = 11 };
enum { NONE = 0, ENTER = 1, EXIT = 2 };

/* ---- names ---- */

/* Whether runtimes are told of by name when they come up. */
static int tells_runtimes;

static const char* callback_kind_name(uint32_t kind) {
    switch (kind) {
        case HSA: return "HSA_CORE_API";
        case HIP: return "HIP_RUNTIME_API";
        case CONTROL: return "MARKER_CONTROL_API";
        case OBJECT: return "CODE_OBJECT";
        case SCRATCH: return "SCRATCH_MEMORY";
        case DISPATCH: return "KERNEL_DISPATCH";
        case COPY: return "MEMORY_COPY";
        case ALLOCATION: return "MEMORY_ALLOCATION";
        case RUNTIME: return "RUNTIME_INITIALIZATION";
        case STREAM: return "HIP_STREAM";
        case RANGE: return "MARKER_CORE_RANGE_API";
        /* A branch of the SDK has this kind where releases have HIP_GRAPH. */
        case EVENTS: return "GPU_EVENTS";
#ifdef NEWER
        case 23: return "ROCSHMEM_API";
        case 24: return "HIPFILE_API";
#endif
        default: return NULL;
    }
}
/* hipGetDeviceCount has one pointer argument, hipModuleGetFunction a text; hipFromTheFuture is in no table. */
static const char* hip_names[] = {"hipGetDeviceCount", "hipModuleGetFunction", "hipFromTheFuture"};
static const char* hsa_names[] = {"hsa_init", "hsa_shut_down"};
static const char* range_names[] = {"roctxMarkA", "roctxThreadRangeA", "roctxProcessRangeA", "roctxGetThreadId"};
static const char* control_names[] = {"roctxProfilerPause", "roctxProfilerResume"};
static const char* runtime_names[] = {NULL, "RUNTIME_INITIALIZATION_HSA"};
static const char* stream_names[] = {NULL, "HIP_STREAM_CREATE", "HIP_STREAM_DESTROY", "HIP_STREAM_SET"};
static const char* object_names[] = {NULL, "CODE_OBJECT_LOAD", "CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER"};
static const char* scratch_names[] = {NULL, "SCRATCH_MEMORY_ALLOC", "SCRATCH_MEMORY_FREE"};
static const char* dispatch_names[] = {NULL, "KERNEL_DISPATCH_ENQUEUE", "KERNEL_DISPATCH_COMPLETE"};
static const char* copy_names[] = {NULL, "MEMORY_COPY_HOST_TO_HOST", "MEMORY_COPY_HOST_TO_DEVICE"};
static const char* allocation_names[] = {NULL, "MEMORY_ALLOCATION_ALLOCATE", NULL, "MEMORY_ALLOCATION_FREE"};

#ifdef NEWER
#include "newer.h"
enum { LAST_KIND = HIPFILE, LAST_OPERATION = 9 };
#else
enum { LAST_KIND = EVENTS, LAST_OPERATION = 4 };
#endif

static const char* callback_operation_name(uint32_t kind, int op) {
#define PICK(table) (op >= 0 && op < (int) (sizeof table / sizeof *table) ? table[op] : NULL)
    switch (kind) {
        case HSA: return PICK(hsa_names);
        case HIP: return PICK(hip_names);
        case CONTROL: return PICK(control_names);
        case OBJECT: return PICK(object_names);
        case SCRATCH: return PICK(scratch_names);
        case DISPATCH: return PICK(dispatch_names);
        case COPY: return PICK(copy_names);
        case ALLOCATION: return PICK(allocation_names);
        case RUNTIME: return tells_runtimes ? PICK(runtime_names) : NULL;
        case STREAM: return PICK(stream_names);
        case RANGE: return PICK(range_names);
#ifdef NEWER
        case ROCSHMEM: case HIPFILE: return newer_operation_name(kind, op);
#endif
        default: return NULL;
    }
}

static int give(const char* text, const char** name, uint64_t* len) {
    if (!text) return 4;
    *name = text;
    if (len) *len = strlen(text);
    return 0;
}

int rocprofiler_query_callback_tracing_kind_name(uint32_t kind, const char** name, uint64_t* len) {
    return give(callback_kind_name(kind), name, len);
}
int rocprofiler_query_callback_tracing_kind_operation_name(uint32_t kind, int op, const char** name, uint64_t* len) {
    return give(callback_operation_name(kind, op), name, len);
}
int rocprofiler_iterate_callback_tracing_kinds(int (*visit)(uint32_t, void*), void* data) {
    for (uint32_t kind = 0; kind <= LAST_KIND; ++kind) visit(kind, data);
    return 0;
}
int rocprofiler_iterate_callback_tracing_kind_operations(uint32_t kind, int (*visit)(uint32_t, int, void*), void* data) {
    for (int op = 0; op < LAST_OPERATION; ++op)
        if (callback_operation_name(kind, op)) visit(kind, op, data);
    return 0;
}
int rocprofiler_query_buffer_tracing_kind_name(uint32_t kind, const char** name, uint64_t* len) {
#ifdef NEWER
    if (newer_buffer_name(kind)) return give(newer_buffer_name(kind), name, len);
#endif
    return give(kind == DISPATCH_BUFFER ? "KERNEL_DISPATCH" : NULL, name, len);
}
int rocprofiler_query_buffer_tracing_kind_operation_name(uint32_t kind, int op, const char** name, uint64_t* len) {
#ifdef NEWER
    if (newer_buffer_name(kind)) return give(newer_buffer_operation(kind, op), name, len);
#endif
    return give(kind == DISPATCH_BUFFER && op == 2 ? "KERNEL_DISPATCH_COMPLETE" : NULL, name, len);
}
int rocprofiler_iterate_buffer_tracing_kinds(int (*visit)(uint32_t, void*), void* data) {
    visit(DISPATCH_BUFFER, data);
#ifdef NEWER
    visit(DROPPED_BUFFER, data);
    visit(MIGRATE_BUFFER, data);
#endif
    return 0;
}
int rocprofiler_iterate_buffer_tracing_kind_operations(uint32_t kind, int (*visit)(uint32_t, int, void*), void* data) {
    visit(kind, kind == DISPATCH_BUFFER ? 2 : 0, data);
    return 0;
}
int rocprofiler_query_external_correlation_id_request_kind_name(uint32_t kind, const char** name, uint64_t* len) {
    return give(kind == 11 ? "KERNEL_DISPATCH" : NULL, name, len);
}
const char* rocprofiler_get_status_name(uint32_t status) { return status ? "ERROR" : "SUCCESS"; }
const char* rocprofiler_get_status_string(uint32_t status) { return status ? "some error" : "fine"; }
int rocprofiler_get_version(uint32_t* a, uint32_t* b, uint32_t* c) { *a = 1; *b = 0; *c = 0; return 0; }
/* Where it is stuck in the end, as a forked SDK that waits for a thread it left behind. */
static volatile int finalized;
static pid_t first_process;
static void stuck_in_children(void) {
    if (getpid() == first_process) return;
    finalized = -1;
    for (;;) pause();
}
/* Where it faults in the end, as a forked SDK that frees a queue of its parent's. */
static void faulting_in_children(void) {
    if (getpid() == first_process) return;
    finalized = -1;
    static int* volatile gone;
    *gone = 0;
}
/* Registered earlier, and so called after that. */
static void last_in_children(void) {
    if (getpid() != first_process) printf("and last ");
}
int rocprofiler_is_finalized(int* status) { *status = finalized; return 0; }
int rocprofiler_is_initialized(int* status) { *status = 1; return 0; }

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}
int rocprofiler_get_timestamp(uint64_t* time) { *time = now(); return 0; }

/* ---- services ---- */

static volatile int active[16];
static uint64_t contexts;
static struct { handle_t context; callback_t callback; void* data; uint32_t only; int used; } services[32][4];
static struct { handle_t context; request_t callback; } requests[2];
/* A context that counts must stay on. */
static uint64_t never_to_stop;
/* A context that traces whole GPUs, and the process whose queue has the packets that began it. */
static uint64_t traces_gpus;
static pid_t traced_by;
static uint64_t next_correlation = 1;

int rocprofiler_create_context(handle_t* context) { context->handle = ++contexts; return 0; }
int rocprofiler_start_context(handle_t context) {
    active[context.handle] = 1;
    if (context.handle == traces_gpus) traced_by = getpid();
    return 0;
}
/* The runtime was shut down, or the SDK's exit handler was called. */
static int gpus_gone;
static void lose_gpus(void) { gpus_gone = 1; }
int rocprofiler_stop_context(handle_t context) {
    int was = active[context.handle];
    if (context.handle == never_to_stop) exit(84);
    if (was && context.handle == traces_gpus) {
        if (traced_by != getpid()) printf("a child stops the trace of its parent\n");
        else printf(gpus_gone ? "the trace is lost\n" : "the trace is delivered\n");
    }
    active[context.handle] = 0;
    return was ? 0 : 2;
}
/* PC samples alone go through a buffer, which a sudden end empties. */
#include "sampling.h"
#include "tracing.h"
int rocprofiler_configure_buffer_tracing_service(handle_t context, uint32_t kind, const int* ops, size_t count, handle_t id) {
    (void) context, (void) ops, (void) count, (void) id;
#ifdef NEWER
    return newer_configure(kind);
#else
    (void) kind;
    return 1;
#endif
}
int rocprofiler_configure_callback_tracing_service(handle_t context, uint32_t kind, const int* ops, size_t count,
                                                   callback_t callback, void* data) {
    for (int i = 0; i < 4; ++i) {
        if (services[kind][i].used) continue;
        if (kind == ALLOCATION && count) return 5;
        services[kind][i].used = 1;
        services[kind][i].context = context;
        services[kind][i].callback = callback;
        services[kind][i].data = data;
        services[kind][i].only = count ? 0 : ~0u;
        for (size_t n = 0; n < count; ++n) services[kind][i].only |= 1u << ops[n];
        return 0;
    }
    return 15;
}
int rocprofiler_configure_external_correlation_id_request_service(handle_t context, const uint32_t* kinds, size_t count,
                                                                  request_t callback, void* data) {
    (void) kinds, (void) count, (void) data;
    int i = requests[0].callback != NULL;
    if (requests[i].callback || requests[0].context.handle == context.handle) return 15;
    requests[i].callback = callback;
    requests[i].context = context;
    return 0;
}
int rocprofiler_query_available_agents(uint32_t version, int (*visit)(uint32_t, const void**, size_t, void*), size_t size,
                                       void* data) {
    /* Of a release whose struct is shorter than anybody's. A CPU and two GPUs. */
    static uint64_t agent[3][3] = {{24, 1, 1}, {24, 77, 2}, {24, 78, 2}};
    const void* agents[] = {agent[0], agent[1], agent[2]};
    (void) size;
    return visit(version, agents, 3, data);
}

/* The id that a context wants to have with device work. */
static uint64_t external_id(uint64_t thread, handle_t context) {
    user_data_t id = {0};
    for (int i = 0; i < 2; ++i)
        if (requests[i].callback && requests[i].context.handle == context.handle && active[context.handle])
            requests[i].callback(thread, context, 11, 1, 0, &id, NULL);
    return id.value;
}

/* A thread like the runtime's own, on which callbacks about the end of device work come. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t change;
    pid_t process;
    void (*act)(void*);
    void* data;
    uint64_t given, done;
} handler = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, NULL, NULL, 0, 0};

static void* run_handler(void* unused) {
    pthread_mutex_lock(&handler.lock);
    for (;;) {
        while (!handler.act) pthread_cond_wait(&handler.change, &handler.lock);
        handler.act(handler.data);
        handler.act = NULL;
        ++handler.done;
        pthread_cond_broadcast(&handler.change);
    }
    return unused;
}
static void on_handler(void (*act)(void*), void* data) {
    pthread_mutex_lock(&handler.lock);
    if (handler.process != getpid()) {
        pthread_t thread;
        pthread_cond_init(&handler.change, NULL);
        pthread_create(&thread, NULL, run_handler, NULL);
        handler.process = getpid();
    }
    while (handler.act) pthread_cond_wait(&handler.change, &handler.lock);
    handler.act = act;
    handler.data = data;
    uint64_t mine = ++handler.given;
    pthread_cond_broadcast(&handler.change);
    while (handler.done < mine) pthread_cond_wait(&handler.change, &handler.lock);
    pthread_mutex_unlock(&handler.lock);
}

#include "counting.h"

#ifdef NEWER
/* Delivers a migration of two pages without agents, five dropped events, and a record of another kind. */
static void driver_events(void* unused) {
    struct { uint64_t size; uint32_t kind; int operation; uint64_t start, end; uint64_t pid, range[2], agents[4]; int64_t error; } migrate =
        {96, MIGRATE_BUFFER, 0, now(), now() + 50, 4711, {0x10000, 0x12000}, {0}, 0};
    struct { uint64_t size; uint32_t kind; int operation; uint64_t time; uint32_t pid, count; } dropped =
        {32, DROPPED_BUFFER, 0, now(), 4712, 5};
    struct { uint64_t size; uint32_t kind; int operation; } other = {16, 77, 0};
    sample_header_t headers[] = {{1, MIGRATE_BUFFER, &migrate}, {1, DROPPED_BUFFER, &dropped}, {1, 77, &other}};
    sample_header_t* all[] = {headers, headers + 1, NULL, headers + 2};
    if (newer_wanted) buffer.callback(buffer.context, (handle_t) {9}, all, 4, buffer.data, 0);
    (void) unused;
}
#endif

/* ---- what the program does ---- */

static __thread uint64_t enclosing;

typedef struct { user_data_t slots[4]; int open[4]; callback_record_t record; uint64_t outer; } call_t;

static void begin(call_t* call, uint32_t kind, int op, void* payload) {
    memset(call, 0, sizeof *call);
    call->outer = enclosing;
    call->record.thread = (uint64_t) gettid();
    call->record.correlation.internal = next_correlation++;
    call->record.correlation.ancestor = enclosing;
    call->record.kind = kind;
    call->record.operation = op;
    call->record.payload = payload;
    enclosing = call->record.correlation.internal;
    for (int i = 0; i < 4; ++i) {
        call->open[i] = services[kind][i].used && active[services[kind][i].context.handle] &&
                        (services[kind][i].only >> op & 1);
        if (!call->open[i]) continue;
        call->record.context = services[kind][i].context;
        call->record.phase = ENTER;
        services[kind][i].callback(call->record, &call->slots[i], services[kind][i].data);
    }
}
static void end(call_t* call) {
    for (int i = 0; i < 4; ++i) {
        if (!call->open[i]) continue;
        call->record.phase = EXIT;
        services[call->record.kind][i].callback(call->record, &call->slots[i], services[call->record.kind][i].data);
    }
    enclosing = call->outer;
}

typedef struct { uint64_t size; union { uint64_t words[11]; void* pointers[11]; } args; uint64_t result[3]; } hip_t;
typedef struct { uint64_t size; union { const char* message; uint64_t words[2]; } args; uint64_t result; } marker_t;

static void hip_call(int op, uint64_t result) {
    hip_t payload = {.size = sizeof payload};
    call_t call;
    payload.args.pointers[2] = "a name";
    begin(&call, HIP, op, &payload);
    payload.result[0] = result;
    end(&call);
}
static void mark(const char* message) {
    marker_t payload = {.size = sizeof payload, .args.message = message};
    call_t call;
    begin(&call, RANGE, 0, &payload);
    end(&call);
}
static void control(int op) {
    marker_t payload = {.size = sizeof payload};
    call_t call;
    begin(&call, CONTROL, op, &payload);
    end(&call);
}
static void end_on_handler(void* call) { end(call); }

typedef struct {
    uint64_t size, start, end;
    struct { uint64_t size, agent, queue, kernel, dispatch; uint32_t scratch, lds, group[3], grid[3]; uint8_t pad[56]; } info;
} dispatch_t;
static void tell_complete(void* data) {
    call_t* call = data;
    for (int i = 0; i < 4; ++i)
        if (call->open[i])
            services[DISPATCH][i].callback(call->record, &call->slots[i], services[DISPATCH][i].data);
}
static void tell_submitted(callback_record_t record) {
    user_data_t slot = {0};
    record.operation = 1;
    for (int i = 0; i < 4; ++i) {
        if (!services[DISPATCH][i].used || !active[services[DISPATCH][i].context.handle] ||
            !(services[DISPATCH][i].only >> 1 & 1))
            continue;
        record.phase = ENTER;
        services[DISPATCH][i].callback(record, &slot, services[DISPATCH][i].data);
        record.phase = EXIT;
        services[DISPATCH][i].callback(record, &slot, services[DISPATCH][i].data);
    }
}
static void launch(uint64_t agent, uint64_t kernel, uint64_t id, uint64_t started) {
    dispatch_t payload = {.size = sizeof payload, .start = started, .end = started + 1000};
    call_t call = {0};
    payload.info.size = 72;
    payload.info.agent = agent;
    payload.info.kernel = kernel;
    payload.info.dispatch = id;
    payload.info.grid[0] = 64;
    call.record.thread = (uint64_t) gettid();
    call.record.correlation.internal = enclosing;
    call.record.kind = DISPATCH;
    call.record.operation = 2;
    call.record.phase = NONE;
    call.record.payload = &payload;
    for (int i = 0; i < 4; ++i)
        call.open[i] = services[DISPATCH][i].used && active[services[DISPATCH][i].context.handle] &&
                       (services[DISPATCH][i].only >> 2 & 1);
    call.record.correlation.external.value = external_id(call.record.thread, services[DISPATCH][0].context);
    tell_submitted(call.record);
#ifndef WITHOUT_COUNTING
    counted_dispatch_t counted = {.data = {.size = sizeof counted.data}};
    counted.data.correlation.internal = call.record.correlation.internal;
    counted.data.correlation.external.value = external_id(call.record.thread, counting_context);
    memcpy(&counted.data.info, &payload.info, sizeof payload.info);
    offer_dispatch(&counted);
    counted.data.start = payload.start, counted.data.end = payload.end;
    on_handler(tell_counted, &counted);
#endif
    on_handler(tell_complete, &call);
}
static void dispatch(uint64_t id, uint64_t started) { launch(77, 3, id, started); }

/* One copy, an allocation with times, one without, a free; scratch memory twice, once as an older release would tell. */
static void memory(void) {
    call_t call;
    struct { uint64_t size, start, end, to, from, bytes, to_address, from_address; } copy = {64, 0, 0, 1, 2, 4096, 16, 32};
    begin(&call, COPY, 2, &copy);
    copy.start = now(), copy.end = copy.start + 500;
    call.record.correlation.external.value = 7;
    on_handler(end_on_handler, &call);
    struct { uint64_t size, start, end, agent, address, bytes; } block = {48, 0, 0, 77, 4096, 100};
    begin(&call, ALLOCATION, 1, &block);
    block.start = now(), block.end = block.start + 20;
    end(&call);
    block.start = block.end = 0;
    begin(&call, ALLOCATION, 1, &block);
    usleep(1000);
    end(&call);
    block.agent = block.bytes = 0;
    begin(&call, ALLOCATION, 3, &block);
    end(&call);
    struct { uint64_t size, agent, queue; uint32_t flags, what; uint64_t dispatch, bytes, slots; } scratch = {56, 77, 1, 2, 1, 1, 0, 0};
    begin(&call, SCRATCH, 1, &scratch);
    usleep(1000);
    scratch.what = 2, scratch.bytes = 65536, scratch.slots = 4;
    end(&call);
    scratch.size = 32, scratch.what = 4;
    begin(&call, SCRATCH, 2, &scratch);
    end(&call);
}

/* ROCTx, as far as the Kokkos connector needs it. */
static call_t pushed[8];
static marker_t pushed_payload[8];
static int depth;
void roctxMarkA(const char* message) { mark(message); }
int roctxRangePushA(const char* message) {
    pushed_payload[depth] = (marker_t){.size = sizeof(marker_t), .args.message = message};
    begin(&pushed[depth], RANGE, 1, &pushed_payload[depth]);
    return depth++;
}
int roctxRangePop(void) {
    if (!depth) return -1;
    end(&pushed[--depth]);
    return depth;
}
static call_t started[8];
static marker_t started_payload[8];
uint64_t roctxRangeStartA(const char* message) {
    static uint64_t next;
    started_payload[next] = (marker_t){.size = sizeof(marker_t), .args.message = message};
    begin(&started[next], RANGE, 2, &started_payload[next]);
    enclosing = started[next].outer;
    return ++next;
}
void roctxRangeStop(uint64_t id) {
    uint64_t inside = enclosing;
    end(&started[id - 1]);
    enclosing = inside;
}

typedef struct { char name[64]; } space_t;
#define KOKKOS(name, ...) ((void (*)(__VA_ARGS__)) dlsym(RTLD_DEFAULT, "kokkosp_" #name))
static void kokkos(void) {
    uint64_t id = 0;
    uint32_t section = 9;
    char fences[256];
    memset(fences, 1, sizeof fences);
    KOKKOS(init_library, int, uint64_t, uint32_t, void*)(0, 20240906, 0, NULL);
    KOKKOS(request_tool_settings, uint32_t, void*)(1, fences);
    if (fences[0]) exit(95);
    KOKKOS(begin_parallel_for, const char*, uint32_t, uint64_t*)("for", 0, &id);
    KOKKOS(begin_fence, const char*, uint32_t, uint64_t*)("fence", 0, &id);
    KOKKOS(end_fence, uint64_t)(id);
    KOKKOS(end_parallel_for, uint64_t)(0);
    KOKKOS(create_profile_section, const char*, uint32_t*)("section", &section);
    KOKKOS(start_profile_section, uint32_t)(section);
    KOKKOS(stop_profile_section, uint32_t)(section);
    KOKKOS(stop_profile_section, uint32_t)(section);
    KOKKOS(start_profile_section, uint32_t)(77);
    KOKKOS(destroy_profile_section, uint32_t)(section);
    KOKKOS(allocate_data, space_t, const char*, const void*, uint64_t)((space_t){"Host"}, "view", &id, 16);
    KOKKOS(begin_deep_copy, space_t, const char*, const void*, space_t, const char*, const void*, uint64_t)
    ((space_t){"HIP"}, "to", &id, (space_t){"Host"}, "from", &id, 8);
    KOKKOS(end_deep_copy, void)();
    KOKKOS(finalize_library, void)();
}

typedef struct { size_t size; int (*initialize)(void*, void*); void (*finalize)(void*); void* data; } tool_t;
typedef struct { size_t size; const char* name; uint32_t handle; } client_t;
static tool_t* tool;

/* What the tool may call to end by itself. */
static int ended;
static void end_client(client_t client) {
    if (client.size != 24 || client.handle != 1) exit(96);
    if (ended++) exit(97);
    tool->finalize(tool->data);
}
/* After main, where the runtime cleans up and would be traced no longer. */
static void after_main(void) {
    if (!ended) hip_call(0, 0);
}

static void attach(uint32_t version, void (*finalize)(client_t)) {
    client_t client = {24, NULL, 1};
    tool_t* (*configure)(uint32_t, const char*, uint32_t, void*) =
        (tool_t * (*) (uint32_t, const char*, uint32_t, void*)) dlsym(RTLD_DEFAULT, "rocprofiler_configure");
    if (!configure) exit(90);
    tool = configure(version, "test", 0, &client);
    if (!tool) exit(91);
    if (tool->size != sizeof *tool || !client.name) exit(92);
    tool->initialize((void*) finalize, tool->data);
}

static pthread_key_t late;
static void late_call(void* unused) {
    static __thread int rounds;
    (void) unused;
    hip_call(0, 0);
    if (++rounds < 6) pthread_setspecific(late, &late);
}
static void* late_thread(void* unused) {
    hip_call(0, 0);
    pthread_setspecific(late, &late);
    return unused;
}

static volatile int interrupted;
static void on_alarm(int signal) {
    (void) signal;
    ++interrupted;
    hip_call(0, 1);
}

static void* loop(void* count) {
    for (long i = 0; i < (long) count; ++i) hip_call(0, 0);
    return NULL;
}

static void empty(callback_record_t record, user_data_t* slot, void* data) { (void) record, (void) slot, (void) data; }

#include "script.h"

int main(int argc, char** argv) {
    const char* scenario = argc > 1 ? argv[1] : "";
    long count = argc > 2 ? atol(argv[2]) : 0;
    call_t outer;
    if (!strcmp(scenario, "unused")) return 0;
    if (!strcmp(scenario, "old")) attach(600, NULL);
    for (int i = 2; i < argc; ++i) tells_runtimes |= !strcmp(argv[i], "hsa");
    if (!strcmp(scenario, "stuck")) first_process = getpid(), atexit(last_in_children), atexit(stuck_in_children);
    if (!strcmp(scenario, "faulting")) first_process = getpid(), atexit(last_in_children), atexit(faulting_in_children);
    atexit(lose_gpus);
    if (getenv("PROVIDER_VERSION")) tracing_version = (uint32_t) atol(getenv("PROVIDER_VERSION"));
    attach(tracing_version, strncmp(scenario, "main", 4) ? NULL : end_client);

    if (!strcmp(scenario, "script")) {
        script(argv + 2);
    } else if (!strcmp(scenario, "calls")) {
        hip_t payload = {.size = sizeof payload};
        begin(&outer, HIP, 0, &payload);
        for (long i = 0; i < count; ++i) hip_call((int) (i % 3), (uint64_t) i);
        payload.result[0] = 7;
        end(&outer);
        payload.size += 8;
        begin(&outer, HIP, 0, &payload);
        end(&outer);
    } else if (!strcmp(scenario, "pause")) {
        mark("before");
        control(0), control(0);
        mark("paused"), hip_call(0, 0);
        control(1), control(1);
        mark("after");
    } else if (!strcmp(scenario, "dispatches")) {
        marker_t range = {.size = sizeof range, .args.message = "region"};
        struct { uint64_t size, id, value; } stream = {24, 5, 0x1000};
        call_t set;
        begin(&outer, RANGE, 1, &range);
        begin(&set, STREAM, 3, &stream);
        for (long i = 0; i < count; ++i) dispatch((uint64_t) i + 1, now());
        end(&set), end(&outer);
        dispatch((uint64_t) count + 1, now());
        if (argc > 3) raise(SIGKILL);
#ifdef NEWER
    } else if (!strcmp(scenario, "newer")) {
        uint64_t payload[4] = {sizeof payload};
        for (int op = 5; op < 7; ++op) begin(&outer, ROCSHMEM, op, payload), end(&outer);
        begin(&outer, HIPFILE, 5, payload), end(&outer);
        on_handler(driver_events, NULL);
#endif
    } else if (!strcmp(scenario, "memory")) {
        memory();
        if (argc > 2) raise(SIGKILL);
    } else if (!strcmp(scenario, "kokkos")) {
        kokkos();
    } else if (!strcmp(scenario, "late")) {
        pthread_t thread;
        pthread_key_create(&late, late_call);
        pthread_create(&thread, NULL, late_thread, NULL);
        pthread_join(thread, NULL);
    } else if (!strcmp(scenario, "signals")) {
        struct itimerval often = {{0, 50}, {0, 50}};
        signal(SIGALRM, on_alarm);
        setitimer(ITIMER_REAL, &often, NULL);
        for (long i = 0; i < count; ++i) hip_call(0, 0);
        memset(&often, 0, sizeof often);
        setitimer(ITIMER_REAL, &often, NULL);
        printf("%d\n", interrupted);
    } else if (!strcmp(scenario, "fork")) {
        hip_t payload = {.size = sizeof payload};
        begin(&outer, HIP, 0, &payload);
        uint64_t before = now();
        dispatch(1, before);
        if (fork() == 0) {
            /* The parent's open call ends here as well, and so does what it had started. */
            end(&outer);
            dispatch(1, before);
            hip_call(0, 55);
            dispatch(2, now());
            exit(0);
        }
        wait(NULL);
        payload.result[0] = 3;
        end(&outer);
    } else if (!strcmp(scenario, "stuck") || !strcmp(scenario, "faulting")) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            printf("kept ");
            exit(7);
        }
        waitpid(child, &status, 0);
        if (WIFSIGNALED(status)) printf("signal %d\n", WTERMSIG(status));
        else printf("%d\n", status >> 8);
    } else if (!strcmp(scenario, "forks")) {
        /* Threads record and begin streams while others fork. */
        pthread_t threads[2];
        for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, loop, (void*) count);
        for (int i = 0; i < 40; ++i) {
            pid_t child = fork();
            if (child == 0) {
                hip_call(0, 0);
                _exit(0);
            }
            int status = 0;
            waitpid(child, &status, 0);
            if (status) return 93;
        }
        for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
    } else if (!strcmp(scenario, "limit")) {
        struct rlimit limit = {32 << 10, 32 << 10};
        hip_call(0, 0);
        setrlimit(RLIMIT_FSIZE, &limit);
        for (long i = 0; i < count; ++i) hip_call(0, 0);
    } else if (!strcmp(scenario, "abort")) {
        for (long i = 0; i < count; ++i) hip_call(0, 0);
        hip_t payload = {.size = sizeof payload};
        begin(&outer, HIP, 1, &payload);
        abort();
    } else if (!strncmp(scenario, "main", 4)) {
        atexit(after_main);
        hip_call(0, 0);
        if (!strcmp(scenario, "main-exits")) exit(0);
        /* As librpd_register.so does where main returns. */
        void (*end)(void) = (void (*)(void)) dlsym(RTLD_DEFAULT, "rpd_collect_end");
        if (!end) return 98;
        end();
        return 0;
    } else if (!strcmp(scenario, "cost")) {
        /* Nanoseconds of a call with two empty callbacks, then with the collector's. */
        for (int round = 0; round < 2; ++round) {
            callback_t real = services[HIP][0].callback;
            services[HIP][0].callback = empty;
            uint64_t t0 = now();
            loop((void*) count);
            uint64_t t1 = now();
            services[HIP][0].callback = real;
            loop((void*) count);
            uint64_t t2 = now();
            if (round) printf("%.1f %.1f\n", (double) (t1 - t0) / (double) count, (double) (t2 - t1) / (double) count);
        }
    } else {
        return 94;
    }
    tool->finalize(tool->data);
    return 0;
}
