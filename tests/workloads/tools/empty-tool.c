/* empty-tool.so: an SDK tool that subscribes to every callback of the services named in
 * RPD_EMPTY_TOOL (a comma-separated list of numbers of callback tracing kinds) and does nothing in
 * them: the floor under what any tool must cost. Its ABI is declared here by hand, from the SDK's
 * 1.0 layout; the SDK's functions are looked up in the process, so that nothing links to it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

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

/* rocprofiler_callback_tracing_record_t, passed by value: 64 bytes, so in memory */
typedef struct {
    uint64_t words[8];
} record;

_Static_assert(sizeof(client_id) == 24 && sizeof(configure_result) == 32 && sizeof(record) == 64, "the SDK's layout");

static void nothing(record r, uint64_t *user_data, void *data) {
    (void)r;
    (void)user_data;
    (void)data;
}

static void *function(const char *name) {
    void *address = dlsym(RTLD_DEFAULT, name);
    if (!address)
        fprintf(stderr, "empty-tool: no %s in this process\n", name);
    return address;
}

static int initialize(void (*finalize)(client_id), void *data) {
    (void)finalize;
    (void)data;
    uint32_t (*create)(context_id *) = function("rocprofiler_create_context");
    uint32_t (*start)(context_id) = function("rocprofiler_start_context");
    uint32_t (*configure)(context_id, uint32_t, const int32_t *, size_t, void (*)(record, uint64_t *, void *), void *) =
        function("rocprofiler_configure_callback_tracing_service");
    if (!create || !start || !configure)
        return -1;
    context_id context = {0};
    uint32_t status = create(&context);
    const char *kinds = getenv("RPD_EMPTY_TOOL");
    for (char *at = (char *)kinds; at && *at && !status;) {
        char *end;
        uint32_t kind = (uint32_t)strtoul(at, &end, 10);
        if (end == at)
            break;
        status = configure(context, kind, NULL, 0, nothing, NULL);
        at = *end == ',' ? end + 1 : end;
    }
    /* Without a service a context cannot start; the tool is then loaded and idle. */
    if (!status && kinds && *kinds)
        status = start(context);
    if (status)
        fprintf(stderr, "empty-tool: the SDK refused with status %u\n", status);
    return status ? -1 : 0;
}

static void finalize(void *data) { (void)data; }

__attribute__((visibility("default"))) configure_result *
rocprofiler_configure(uint32_t version, const char *runtime_version, uint32_t priority, client_id *id) {
    static configure_result result = {sizeof(configure_result), initialize, finalize, NULL};
    (void)version;
    (void)runtime_version;
    (void)priority;
    id->name = "empty";
    return &result;
}
