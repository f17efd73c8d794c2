/* event-log.so: an SDK tool that writes down every callback it gets, one line each, into the file
 * that RPD_EVENT_LOG names: running number, phase, kind, operation, thread (T0 is the first seen),
 * correlation id, ancestor, and what the payload says; pointers are masked. RPD_EVENT_KINDS, a
 * comma-separated list, replaces the kinds it subscribes to. With RPD_EVENT_NAMES set it reads the names of
 * kernels and the URIs of code objects once more when it finalises, as tools do that keep the pointers. Its ABI
 * is declared by hand, from the SDK's 1.0 layout; the SDK's functions are looked up in the process. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint64_t handle;
} context_id;

typedef struct {
    size_t size;
    const char *name;
    const uint32_t handle;
} client_id;

typedef struct {
    size_t size;
    int (*initialize)(void (*finalize)(client_id), void *data);
    void (*finalize)(void *data);
    void *data;
} configure_result;

typedef struct {
    context_id context;
    uint64_t thread;
    struct {
        uint64_t internal, external, ancestor;
    } correlation;
    uint32_t kind;
    int32_t operation;
    uint32_t phase;
    const void *payload;
} record;

struct dispatch {
    uint64_t size, start, end, info_size, agent, queue, kernel, dispatch;
    uint32_t private_size, group_size, workgroup[3], grid[3];
};

struct copy {
    uint64_t size, start, end, dst_agent, src_agent, bytes;
};

struct code_object {
    uint64_t size, id, rocp_agent, hsa_agent;
    const char *uri;
    uint64_t load_base, load_size;
    int64_t load_delta;
    uint32_t storage;
};

struct kernel_symbol {
    uint64_t size, kernel, code_object;
    const char *name;
    uint64_t object;
    uint32_t kernarg, align, group, private, sgpr, vgpr, accum;
};

_Static_assert(sizeof(record) == 64 && offsetof(record, kind) == 40 && offsetof(record, payload) == 56, "a record");
_Static_assert(offsetof(struct dispatch, private_size) == 64 && offsetof(struct dispatch, grid) == 84, "a dispatch");
_Static_assert(offsetof(struct code_object, storage) == 64, "a code object");
_Static_assert(offsetof(struct kernel_symbol, accum) == 64, "a kernel symbol");

typedef int (*argument_callback)(uint32_t kind, int32_t operation, uint32_t number, const void *value, int32_t indirection,
                                 const char *type, const char *name, const char *text, int32_t dereferenced, void *data);

static uint32_t (*kind_name)(uint32_t, const char **, uint64_t *);
static uint32_t (*operation_name)(uint32_t, int32_t, const char **, uint64_t *);
static uint32_t (*iterate_arguments)(record, argument_callback, int32_t, void *);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *out;
static unsigned number;
static uint64_t threads[256];
static const char *names[4096];
static unsigned name_count;

static int thread_number(uint64_t thread) {
    int i = 0;
    while (i < 255 && threads[i] && threads[i] != thread)
        ++i;
    threads[i] = thread;
    return i;
}

/* The text with the digits of every hexadecimal number left out. */
static void masked(const char *text) {
    for (; *text; ++text) {
        if (text[0] == '0' && text[1] == 'x') {
            fputs("0x..", out);
            text += 2;
            text += strspn(text, "0123456789abcdefABCDEF") - 1;
        } else {
            fputc(*text, out);
        }
    }
}

static int argument(uint32_t kind, int32_t operation, uint32_t index, const void *value, int32_t indirection,
                    const char *type, const char *name, const char *text, int32_t dereferenced, void *data) {
    (void)kind, (void)operation, (void)index, (void)value, (void)indirection, (void)dereferenced, (void)data;
    fprintf(out, " %s:%s=", name ? name : "?", type ? type : "?");
    masked(text ? text : "");
    return 0;
}

static void keep(const char *name) {
    if (name_count < sizeof names / sizeof *names)
        names[name_count++] = name;
}

static void payload(const char *kind, const char *operation, record r) {
    if (!strncmp(kind, "HIP_", 4) && strstr(kind, "_API")) {
        iterate_arguments(r, argument, 1, NULL);
    } else if (!strncmp(kind, "MARKER_", 7)) {
        const uint64_t *words = r.payload;
        const char *message = "-";
        if (r.phase == 1)
            memcpy(&message, &words[1], sizeof message);
        fprintf(out, " size %llu msg %s", (unsigned long long)words[0], message ? message : "");
    } else if (!strcmp(kind, "KERNEL_DISPATCH")) {
        const struct dispatch *d = r.payload;
        fprintf(out, " size %llu dispatch %llu kernel %llu grid %u wg %u dur_set %d", (unsigned long long)d->size,
                (unsigned long long)d->dispatch, (unsigned long long)d->kernel, d->grid[0], d->workgroup[0],
                d->start && d->end >= d->start);
    } else if (!strcmp(kind, "MEMORY_COPY")) {
        const struct copy *c = r.payload;
        fprintf(out, " size %llu bytes %llu dur_set %d", (unsigned long long)c->size, (unsigned long long)c->bytes,
                c->start && c->end >= c->start);
    } else if (!strcmp(operation, "CODE_OBJECT_LOAD")) {
        const struct code_object *c = r.payload;
        fprintf(out, " size %llu id %llu storage %u load_size %llu delta_is_base %d uri_scheme %.*s",
                (unsigned long long)c->size, (unsigned long long)c->id, c->storage, (unsigned long long)c->load_size,
                c->load_delta == (int64_t)c->load_base, 7, /* as long as "file://" and "memory:" */
                c->uri ? c->uri : "-");
        keep(c->uri);
    } else if (!strcmp(operation, "CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER")) {
        const struct kernel_symbol *k = r.payload;
        fprintf(out,
                " size %llu kernel %llu co %llu name %s kernarg %u align %u group %u private %u sgpr %u vgpr %u accum %u",
                (unsigned long long)k->size, (unsigned long long)k->kernel, (unsigned long long)k->code_object, k->name,
                k->kernarg, k->align, k->group, k->private, k->sgpr, k->vgpr, k->accum);
        keep(k->name);
    }
}

static void on_event(record r, uint64_t *user_data, void *data) {
    static const char *const phases[] = {"NONE", "ENTER", "EXIT"};
    (void)user_data, (void)data;
    const char *kind = "?", *operation = "?";
    kind_name(r.kind, &kind, NULL);
    operation_name(r.kind, r.operation, &operation, NULL);
    pthread_mutex_lock(&lock);
    if (out) {
        fprintf(out, "%u cb %s %s %s T%d corr %llu anc %llu", number++, phases[r.phase % 3], kind, operation,
                thread_number(r.thread), (unsigned long long)r.correlation.internal,
                (unsigned long long)r.correlation.ancestor);
        if (r.payload)
            payload(kind, operation, r);
        fputc('\n', out);
    }
    pthread_mutex_unlock(&lock);
}

static void *function(const char *name) {
    void *address = dlsym(RTLD_DEFAULT, name);
    if (!address) {
        fprintf(stderr, "event-log: no %s in this process\n", name);
        exit(1);
    }
    return address;
}

static void expect_success(uint32_t status, const char *what) {
    if (status) {
        fprintf(stderr, "event-log: %s: status %u\n", what, status);
        exit(1);
    }
}

static int initialize(void (*finalize)(client_id), void *data) {
    (void)finalize, (void)data;
    kind_name = function("rocprofiler_query_callback_tracing_kind_name");
    operation_name = function("rocprofiler_query_callback_tracing_kind_operation_name");
    iterate_arguments = function("rocprofiler_iterate_callback_tracing_kind_operation_args");
    uint32_t (*create)(context_id *) = function("rocprofiler_create_context");
    uint32_t (*start)(context_id) = function("rocprofiler_start_context");
    uint32_t (*thread)(uint64_t *) = function("rocprofiler_get_thread_id");
    uint32_t (*configure)(context_id, uint32_t, const int32_t *, size_t, void (*)(record, uint64_t *, void *), void *) =
        function("rocprofiler_configure_callback_tracing_service");

    const char *path = getenv("RPD_EVENT_LOG");
    out = path ? fopen(path, "w") : stderr;
    if (!out) {
        fprintf(stderr, "event-log: cannot write %s\n", path);
        exit(1);
    }
    const char *wanted = getenv("RPD_EVENT_KINDS");
    char list[512];
    snprintf(list, sizeof list, ",%s,",
             wanted ? wanted
                    : "HIP_RUNTIME_API,HIP_COMPILER_API,MARKER_CORE_RANGE_API,KERNEL_DISPATCH,MEMORY_COPY,"
                      "MEMORY_ALLOCATION,CODE_OBJECT,HIP_STREAM,RUNTIME_INITIALIZATION");
    context_id context = {0};
    expect_success(create(&context), "creating a context");
    const char *name;
    for (uint32_t kind = 1; kind_name(kind, &name, NULL) == 0; ++kind) {
        char entry[128];
        snprintf(entry, sizeof entry, ",%s,", name);
        if (strstr(list, entry))
            expect_success(configure(context, kind, NULL, 0, on_event, NULL), name);
    }
    uint64_t self = 0;
    expect_success(thread(&self), "the thread's id");
    fprintf(out, "%u tool initialize on T%d\n", number++, thread_number(self));
    expect_success(start(context), "starting the context");
    return 0;
}

static void finalize(void *data) {
    (void)data;
    pthread_mutex_lock(&lock);
    if (out) {
        for (unsigned i = 0; getenv("RPD_EVENT_NAMES") && i < name_count; ++i)
            fprintf(out, "%u name %s\n", number++, names[i]);
        fprintf(out, "%u tool finalize\n", number++);
        fflush(out);
    }
    out = NULL;
    pthread_mutex_unlock(&lock);
}

__attribute__((visibility("default"))) configure_result *
rocprofiler_configure(uint32_t version, const char *runtime_version, uint32_t priority, client_id *id) {
    static configure_result result = {sizeof(configure_result), initialize, finalize, NULL};
    (void)version, (void)runtime_version, (void)priority;
    id->name = "event-log";
    return &result;
}
