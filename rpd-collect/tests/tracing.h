/* Thread traces of the provider: streams that a script names, in the form of SDK 1.0 or, from version 1.3 on, in that of later ones. */

typedef struct { uint64_t internal; user_data_t external; } async_correlation_t;
typedef struct { int32_t type; union { uint64_t value; struct { uint64_t id, simds; } counter; } data; } trace_parameter_t;
typedef struct {
    uint64_t size;
    const void* data;
    uint64_t data_size;
    int64_t engine;
    uint64_t chunk, offset;
    handle_t agent;
    int32_t flags;
    uint64_t clocks[4];
} trace_part_t;
typedef int (*trace_choice_t)(handle_t, handle_t, async_correlation_t, uint64_t kernel, uint64_t dispatch, void*, user_data_t*);
typedef void (*trace_bytes_t)(handle_t, int64_t engine, const void*, size_t, user_data_t);
typedef void (*trace_part_callback_t)(trace_part_t, user_data_t);

static struct { handle_t context; trace_choice_t choose; void* shader; void* data; } tracing;
static uint32_t tracing_version = 10000;

#ifndef WITHOUT_TRACING
static void print_parameters(const char* service, handle_t agent, const trace_parameter_t* all, size_t count) {
    printf("%s %d:", service, (int) agent.handle);
    for (size_t i = 0; i < count; ++i) {
        if (all[i].type == 5) printf(" 5=%lu/%lx", all[i].data.counter.id, all[i].data.counter.simds);
        else printf(" %d=%lu", all[i].type, all[i].data.value);
    }
    printf("\n");
}
int rocprofiler_configure_dispatch_thread_trace_service(handle_t context, handle_t agent, const trace_parameter_t* all, size_t count,
                                                        trace_choice_t choose, void* shader, void* data) {
    if (!choose || !shader) return 19;
    print_parameters("dispatches", agent, all, count);
    tracing.context = context, tracing.choose = choose, tracing.shader = shader, tracing.data = data;
    return agent.handle == 78 ? 19 : 0;
}
int rocprofiler_configure_device_thread_trace_service(handle_t context, handle_t agent, const trace_parameter_t* all, size_t count,
                                                      void* shader, user_data_t user) {
    if (!shader || user.value) return 19;
    print_parameters("device", agent, all, count);
    traces_gpus = context.handle;
    tracing.context = context, tracing.shader = shader;
    return 0;
}
#endif

/* A dispatch of a kernel: asks whether it is traced, and delivers `length` bytes from shader engine 4, a later provider as two parts of
 * which the second comes first. */
static void trace_dispatch(uint64_t dispatch, uint64_t kernel, size_t length) {
    handle_t agent = {77};
    user_data_t user = {0};
    async_correlation_t correlation = {dispatch, {0}};
    int chosen = tracing.choose && active[tracing.context.handle] &&
                 tracing.choose(agent, (handle_t) {1}, correlation, kernel, dispatch, tracing.data, &user) == 3;
    printf("dispatch %lu %s\n", dispatch, chosen ? "traced" : "not traced");
    if (!chosen) return;
    unsigned char* bytes = malloc(length);
    for (size_t i = 0; i < length; ++i) bytes[i] = (unsigned char) (i % 251);
    if (tracing_version < 10300) {
        ((trace_bytes_t) tracing.shader)(agent, 4, bytes, length, user);
    } else {
        size_t half = length / 2;
        trace_part_t last = {sizeof last, bytes + half, length - half, 4, 1, half, agent, 1 | 2, {0}};
        trace_part_t first = {sizeof first, bytes, half, 4, 0, 0, agent, 0, {0}};
        ((trace_part_callback_t) tracing.shader)(last, user);
        ((trace_part_callback_t) tracing.shader)(first, user);
    }
    free(bytes);
}
