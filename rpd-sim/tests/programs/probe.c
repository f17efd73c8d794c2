/* A tool and the program it watches, in one: it says what the SDK answers to proper and improper use,
 * one line a question, and counts what buffers deliver. The ABI is declared here by hand. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct { uint64_t handle; } id;
typedef struct { size_t size; const char *name; uint32_t handle; } client_id;
typedef struct {
    size_t size;
    int (*initialize)(void (*)(client_id), void *);
    void (*finalize)(void *);
    void *data;
} configure_result;
typedef struct {
    uint64_t context, thread, internal, external, ancestor;
    uint32_t kind;
    int32_t operation;
    uint32_t phase;
    void *payload;
} record;
typedef struct { uint32_t category, kind; void *payload; } header;
typedef void (*buffer_cb)(id, id, header **, size_t, void *, uint64_t);
typedef void (*trace_cb)(record, uint64_t *, void *);
typedef int (*request_cb)(uint64_t, id, uint32_t, int32_t, uint64_t, uint64_t *, void *);

int rocprofiler_is_initialized(int *);
int rocprofiler_is_finalized(int *);
int rocprofiler_create_context(id *);
int rocprofiler_start_context(id);
int rocprofiler_stop_context(id);
int rocprofiler_context_is_active(id, int *);
int rocprofiler_create_buffer(id, size_t, size_t, uint32_t, buffer_cb, void *, id *);
int rocprofiler_flush_buffer(id);
int rocprofiler_destroy_buffer(id);
int rocprofiler_create_callback_thread(id *);
int rocprofiler_assign_callback_thread(id, id);
int rocprofiler_configure_buffer_tracing_service(id, uint32_t, const int32_t *, size_t, id);
int rocprofiler_configure_callback_tracing_service(id, uint32_t, const int32_t *, size_t, trace_cb, void *);
int rocprofiler_push_external_correlation_id(id, uint64_t, uint64_t);
int rocprofiler_pop_external_correlation_id(id, uint64_t, uint64_t *);
int rocprofiler_configure_external_correlation_id_request_service(id, const uint32_t *, size_t, request_cb, void *);
int rocprofiler_at_intercept_table_registration(void *, int, void *);
int rocprofiler_force_configure(void *);
int rocprofiler_query_available_agents(uint32_t, int (*)(uint32_t, const void **, size_t, void *), size_t, void *);

int roctxRangePushA(const char *);
int roctxRangePop(void);
void roctxMarkA(const char *);
int roctxProfilerPause(uint64_t);

enum { MARKER_CORE = 7, MARKER_CONTROL = 8, RETIREMENT = 13, CB_MARKER_RANGE = 21 };

static id watched, asked, lossless, discarding, other_thread;
static size_t kept, batches, thrown, lost, retired;
static int on_own_thread, badly_headed;
static uint64_t seen_external, seen_requested;

#define SAY(what) (printf("%s %d\n", #what, what), fflush(stdout))

static void keep(id context, id buffer, header **headers, size_t count, void *data, uint64_t dropped) {
    (void)context, (void)buffer, (void)data;
    ++batches;
    lost += dropped;
    on_own_thread |= gettid() == getpid();
    for (size_t i = 0; i < count; ++i) {
        uint32_t kind;
        memcpy(&kind, (char *)headers[i]->payload + 8, 4);
        badly_headed |= headers[i]->category != 1 || headers[i]->kind != kind;
        if (kind == RETIREMENT)
            ++retired;
        else
            ++kept;
    }
}

static void throw_away(id context, id buffer, header **headers, size_t count, void *data, uint64_t dropped) {
    (void)context, (void)buffer, (void)headers, (void)data;
    thrown += count + dropped;
    printf("discarding buffer drops %s\n", dropped ? "some" : "none");
}

static void ranges(record r, uint64_t *user, void *data) {
    const char *message;
    memcpy(&message, (char *)r.payload + 8, sizeof message);
    if (r.phase == 1)
        *user = r.internal;
    if (data)
        seen_requested = r.external;
    else
        seen_external = r.external;
    if (!data && r.operation == 1)
        printf("%s %s external %lu user data %s\n", r.phase == 1 ? "enter" : "exit", message,
               (unsigned long)r.external, *user == r.internal ? "kept" : "lost");
}

static int request(uint64_t thread, id context, uint32_t kind, int32_t operation, uint64_t internal, uint64_t *value, void *data) {
    (void)thread, (void)context, (void)operation, (void)internal, (void)data;
    *value = 100 + kind;
    return 0;
}

static int agents(uint32_t version, const void **list, size_t count, void *data) {
    (void)version, (void)data;
    uint64_t size;
    uint32_t type;
    memcpy(&size, list[count - 1], 8);
    memcpy(&type, (const char *)list[count - 1] + 16, 4);
    printf("agents %zu, the last of type %u and size %lu\n", count, type, (unsigned long)size);
    return 0;
}

static int state(int (*query)(int *)) {
    int value = 99;
    query(&value);
    return value;
}

static int initialize(void (*finalize)(client_id), void *data) {
    (void)finalize, (void)data;
    id none = {0}, taken = {1}, unknown = {UINT64_MAX}, thread = {0}, far = {99};
    int32_t no_operation = 4711;
    uint32_t bad_kind = 77;
    SAY(state(rocprofiler_is_initialized));
    SAY(rocprofiler_create_context(&taken));
    SAY(rocprofiler_create_context(&watched));
    SAY(rocprofiler_create_context(&asked));
    SAY(rocprofiler_force_configure(NULL));
    SAY(rocprofiler_configure_callback_tracing_service(unknown, CB_MARKER_RANGE, NULL, 0, ranges, NULL));
    SAY(rocprofiler_configure_callback_tracing_service(watched, 0, NULL, 0, ranges, NULL));
    SAY(rocprofiler_configure_callback_tracing_service(watched, CB_MARKER_RANGE, &no_operation, 1, ranges, NULL));
    SAY(rocprofiler_configure_callback_tracing_service(watched, CB_MARKER_RANGE, NULL, 0, ranges, NULL));
    SAY(rocprofiler_configure_callback_tracing_service(watched, CB_MARKER_RANGE, NULL, 0, ranges, NULL));
    SAY(rocprofiler_configure_callback_tracing_service(asked, CB_MARKER_RANGE, NULL, 0, ranges, &asked));
    SAY(rocprofiler_create_buffer(watched, 4096, 2048, 2, keep, NULL, &lossless));
    SAY(rocprofiler_create_buffer(watched, 4096, 2048, 2, keep, NULL, &lossless));
    SAY(rocprofiler_create_buffer(watched, 1024, 4096, 1, throw_away, NULL, &discarding));
    SAY(rocprofiler_configure_buffer_tracing_service(watched, MARKER_CORE, NULL, 0, none));
    SAY(rocprofiler_configure_buffer_tracing_service(watched, 24, NULL, 0, lossless));
    SAY(rocprofiler_configure_buffer_tracing_service(watched, MARKER_CORE, NULL, 0, lossless));
    SAY(rocprofiler_configure_buffer_tracing_service(watched, RETIREMENT, NULL, 0, lossless));
    SAY(rocprofiler_configure_buffer_tracing_service(watched, MARKER_CONTROL, NULL, 0, discarding));
    SAY(rocprofiler_configure_buffer_tracing_service(watched, MARKER_CONTROL, NULL, 0, discarding));
    SAY(rocprofiler_create_callback_thread(&other_thread));
    SAY(rocprofiler_assign_callback_thread(lossless, far));
    SAY(rocprofiler_assign_callback_thread(unknown, thread));
    SAY(rocprofiler_assign_callback_thread(lossless, other_thread));
    SAY(rocprofiler_configure_external_correlation_id_request_service(asked, &bad_kind, 1, request, NULL));
    SAY(rocprofiler_configure_external_correlation_id_request_service(asked, NULL, 0, request, NULL));
    SAY(rocprofiler_configure_external_correlation_id_request_service(asked, NULL, 0, request, NULL));
    SAY(rocprofiler_start_context(watched));
    SAY(rocprofiler_start_context(watched));
    SAY(rocprofiler_start_context(asked));
    return 0;
}

static void finalize(void *data) {
    (void)data;
    SAY(state(rocprofiler_is_finalized));
    SAY(rocprofiler_start_context(watched));
    SAY(rocprofiler_stop_context(watched));
    SAY(rocprofiler_flush_buffer(lossless));
    SAY(rocprofiler_flush_buffer(discarding));
}

configure_result *rocprofiler_configure(uint32_t version, const char *text, uint32_t priority, client_id *client) {
    static configure_result result = {sizeof result, initialize, finalize, NULL};
    client->name = "probe";
    printf("configure %u %s %u\n", version, text, priority);
    return &result;
}

int main(int argc, char **argv) {
    id none = {0}, unknown = {UINT64_MAX};
    int active = -1;
    uint64_t popped = 0;
    (void)argv;
    SAY(state(rocprofiler_is_initialized));
    roctxMarkA("first");
    SAY(state(rocprofiler_is_initialized));
    SAY(rocprofiler_create_context(&none));
    SAY(rocprofiler_create_buffer(watched, 4096, 0, 2, keep, NULL, &none));
    SAY(rocprofiler_create_callback_thread(&none));
    SAY(rocprofiler_at_intercept_table_registration(keep, 0, NULL));
    SAY(rocprofiler_force_configure(NULL));
    SAY(rocprofiler_start_context(unknown));
    SAY(rocprofiler_stop_context(unknown));
    SAY(rocprofiler_flush_buffer(unknown));
    SAY(rocprofiler_query_available_agents(0, agents, 312, NULL));
    SAY(rocprofiler_query_available_agents(1, agents, 9999, NULL));
    SAY(rocprofiler_query_available_agents(1, agents, 312, NULL));

    SAY(rocprofiler_push_external_correlation_id(watched, 1, 7));
    SAY(rocprofiler_push_external_correlation_id(watched, gettid(), 7));
    roctxRangePushA("range");
    roctxRangePop();
    SAY(rocprofiler_pop_external_correlation_id(watched, gettid(), &popped));
    printf("popped %lu, seen %lu, requested %lu\n", (unsigned long)popped, (unsigned long)seen_external, (unsigned long)seen_requested);

    for (int i = 0; i < 1000; ++i)
        roctxMarkA("many");
    for (int i = 0; i < 100; ++i)
        roctxProfilerPause(0);
    rocprofiler_context_is_active(watched, &active);
    printf("active %d\n", active);
    SAY(rocprofiler_stop_context(asked));
    SAY(rocprofiler_stop_context(asked));
    roctxMarkA("while one is stopped");
    SAY(rocprofiler_flush_buffer(lossless));
    SAY(rocprofiler_flush_buffer(discarding));
    /* mark, push, pop, 1000 marks, mark; an id of a range and one of its calls each */
    printf("kept %zu, lost %zu, retired %zu, in several batches %d, on the main thread %d, badly headed %d\n", kept, lost,
           retired, batches > 10, on_own_thread, badly_headed);
    printf("thrown %zu\n", thrown);
    SAY(rocprofiler_destroy_buffer(unknown));

    if (argc > 1) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            size_t before = kept;
            roctxMarkA("in the child");
            rocprofiler_flush_buffer(lossless);
            printf("child keeps %zu\n", kept - before);
            fflush(stdout);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    return 0;
}
