/* A tool and the program it watches, in one: it lists counters, makes configs within and beyond the limits, counts
 * dispatches and whole agents, and prints what it got, a line each. The ABI is declared here by hand. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    uint64_t size, agent, queue, kernel, dispatch;
    uint32_t private_size, group_size, workgroup[3], grid[3];
    uint8_t reserved[56];
} dispatch_info;
typedef struct {
    uint64_t size, internal, external, start, end;
    dispatch_info info;
} dispatch_data;
typedef struct {
    uint64_t size, count, internal, external, start, end;
    dispatch_info info;
} header_record;
typedef struct { uint64_t id; double value; uint64_t dispatch, user, agent; } value_record;
typedef struct { uint32_t category, kind; void *payload; } header;
typedef struct { const char *name; size_t extent; uint64_t id; } dimension;
typedef struct { uint64_t size; const char *name; size_t index; } place;
typedef struct { uint64_t size, id, counter, count; place **places; } instance;
typedef struct {
    uint64_t size, id;
    const char *name, *description, *block, *expression;
    uint8_t constant : 1, derived : 1;
    uint64_t dimension_count;
    dimension **dimensions;
    uint64_t instance_count;
    instance **instances;
} counter_info;
typedef struct {
    uint64_t context, thread, internal, external, ancestor;
    uint32_t kind;
    int32_t operation;
    uint32_t phase;
    void *payload;
} record;
typedef void (*choose_cb)(dispatch_data, id *, uint64_t *, void *);
typedef void (*record_cb)(dispatch_data, value_record *, size_t, uint64_t, void *);
typedef void (*buffer_cb)(id, id, header **, size_t, void *, uint64_t);
typedef void (*trace_cb)(record, uint64_t *, void *);
typedef int (*request_cb)(uint64_t, id, uint32_t, int32_t, uint64_t, uint64_t *, void *);
typedef void (*agent_cb)(id, id, int (*)(id, id), void *);

int rocprofiler_create_context(id *);
int rocprofiler_start_context(id);
int rocprofiler_stop_context(id);
int rocprofiler_create_buffer(id, size_t, size_t, uint32_t, buffer_cb, void *, id *);
int rocprofiler_flush_buffer(id);
int rocprofiler_configure_callback_tracing_service(id, uint32_t, const int32_t *, size_t, trace_cb, void *);
int rocprofiler_configure_external_correlation_id_request_service(id, const uint32_t *, size_t, request_cb, void *);
int rocprofiler_query_available_agents(uint32_t, int (*)(uint32_t, const void **, size_t, void *), size_t, void *);
int rocprofiler_iterate_agent_supported_counters(id, int (*)(id, id *, size_t, void *), void *);
int rocprofiler_query_counter_info(id, uint32_t, void *);
int rocprofiler_iterate_counter_dimensions(id, int (*)(id, const dimension *, size_t, void *), void *);
int rocprofiler_query_counter_instance_count(id, id, size_t *);
int rocprofiler_query_record_counter_id(uint64_t, id *);
int rocprofiler_query_record_dimension_position(uint64_t, uint64_t, size_t *);
int rocprofiler_create_counter_config(id, id *, size_t, id *);
int rocprofiler_destroy_counter_config(id);
int rocprofiler_load_counter_definition(const char *, size_t, uint32_t);
int rocprofiler_create_counter(const char *, size_t, const char *, size_t, const char *, size_t, id, id *);
int rocprofiler_configure_callback_dispatch_counting_service(id, choose_cb, void *, record_cb, void *);
int rocprofiler_configure_buffer_dispatch_counting_service(id, id, choose_cb, void *);
int rocprofiler_configure_device_counting_service(id, id, id, agent_cb, void *);
int rocprofiler_sample_device_counting_service(id, uint64_t, uint32_t, value_record *, size_t *);

int hipGetDeviceCount(int *);
int hipSetDevice(int);
int hipMalloc(void **, size_t);
int hipMemset(void *, int, size_t);
int hipDeviceSynchronize(void);
int hipModuleLoad(void **, const char *);
int hipModuleGetFunction(void **, void *, const char *);
int hipModuleLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

enum { CB_KERNEL_DISPATCH = 12, REQUEST_KERNEL_DISPATCH = 11, COUNTERS = 3, HEADER = 1, VALUE = 2, APPEND = 2 };

static id agent[9], cpu, called, buffered, whole, buffer, config, broken;
static int gpus;
static uint64_t traced_internal, traced_external, chosen_internal, chosen_external, chosen[1000];
static long choosing_thread, counting_thread;
static int in_order, awaited, told, quiet;

#define SAY(what) (printf("%s %d\n", #what, what), fflush(stdout))

static int agents(uint32_t version, const void **list, size_t count, void *data) {
    (void)version, (void)data;
    for (size_t i = 0; i < count; ++i) {
        uint32_t type;
        id handle;
        memcpy(&handle, (const char *)list[i] + 8, 8);
        memcpy(&type, (const char *)list[i] + 16, 4);
        if (type == 2)
            agent[gpus++] = handle;
        else
            cpu = handle;
    }
    return 0;
}

static counter_info info_of(uint64_t counter) {
    counter_info info = {0};
    if (rocprofiler_query_counter_info((id){counter}, 2, &info))
        printf("no info of %lu\n", counter), exit(1);
    return info;
}

struct search { const char *name; uint64_t found; size_t count, constants, derived; };

static int look(id which, id *list, size_t count, void *data) {
    struct search *search = data;
    (void)which;
    search->count = count;
    for (size_t i = 0; i < count; ++i) {
        counter_info info = info_of(list[i].handle);
        search->constants += info.constant;
        search->derived += info.derived;
        if (!strcmp(info.name, search->name))
            search->found = list[i].handle;
    }
    return 0;
}

static id counter_on(id which, const char *name) {
    struct search search = {name, 0, 0, 0, 0};
    if (rocprofiler_iterate_agent_supported_counters(which, look, &search) || !search.found)
        printf("no counter %s\n", name), exit(1);
    return (id){search.found};
}

static id counter(const char *name) { return counter_on(agent[0], name); }

/* A config of counters whose names stand in a text, between blanks. */
static int configure(const char *names, id *result) {
    char text[1000], *rest = text, *name;
    id list[64];
    size_t count = 0;
    snprintf(text, sizeof text, "%s", names);
    while ((name = strsep(&rest, " ")))
        list[count++] = counter(name);
    result->handle = 0;
    return rocprofiler_create_counter_config(agent[0], list, count, result);
}

static int try(const char *names) {
    id result;
    int status = configure(names, &result);
    printf("config of %s: %d\n", names, status);
    return status;
}

static int show_dimensions(id which, const dimension *list, size_t count, void *data) {
    (void)which, (void)data;
    for (size_t i = 0; i < count; ++i)
        printf("  %lu %s %zu\n", list[i].id, list[i].name, list[i].extent);
    return 77;
}

static void show(const char *name) {
    id which = counter(name), back;
    counter_info info = info_of(which.handle);
    size_t instances = 0, engine = 99, index = 99;
    rocprofiler_query_counter_instance_count(agent[0], which, &instances);
    printf("%s block '%s' expression '%s' constant %d derived %d instances %lu %zu\n", info.name, info.block,
           info.expression, info.constant, info.derived, info.instance_count, instances);
    rocprofiler_iterate_counter_dimensions(which, show_dimensions, NULL);
    instance *last = info.instances[info.instance_count - 1];
    rocprofiler_query_record_counter_id(last->id, &back);
    rocprofiler_query_record_dimension_position(last->id, 3, &engine);
    rocprofiler_query_record_dimension_position(last->id, 7, &index);
    printf("  last of counter %d at %zu %zu:", back.handle == which.handle && last->counter == which.handle, index, engine);
    for (size_t i = 0; i < last->count; ++i)
        printf(" %s %zu", last->places[i]->name, last->places[i]->index);
    printf("\n");
}

static void trace(record r, uint64_t *user, void *data) {
    (void)user, (void)data;
    if (r.phase == 1) {
        traced_internal = r.internal;
        traced_external = r.external;
        in_order = 1;
    } else if (r.phase == 2 && in_order == 2) {
        in_order = 3;
    }
}

static int request(uint64_t thread, id context, uint32_t kind, int32_t operation, uint64_t internal, uint64_t *value, void *data) {
    (void)thread, (void)context, (void)kind, (void)operation, (void)data;
    *value = internal + 1000;
    return 0;
}

static void choose(dispatch_data data, id *result, uint64_t *user, void *argument) {
    choosing_thread = gettid();
    chosen_internal = data.internal;
    chosen_external = data.external;
    chosen[data.info.dispatch] = data.internal;
    if (in_order == 1)
        in_order = 2;
    *user = 4711;
    *result = *(id *)argument;
    ++awaited;
    if (data.size != sizeof data || data.info.size != 72 || data.start || data.end)
        printf("bad dispatch data: %lu %lu %lu\n", data.size, data.info.size, data.start);
}

static void values(value_record *list, size_t count) {
    for (size_t i = 0; i < count;) {
        id which;
        double sum = 0;
        size_t first = i, filled = 0;
        rocprofiler_query_record_counter_id(list[i].id, &which);
        for (id same = which; i < count; ++i) {
            rocprofiler_query_record_counter_id(list[i].id, &same);
            if (same.handle != which.handle)
                break;
            sum += list[i].value;
            filled += list[i].value != 0;
        }
        printf("  %s %g in %zu values, %s\n", info_of(which.handle).name, sum, i - first, filled ? "some not 0" : "all 0");
    }
}

static void receive(dispatch_data data, value_record *list, size_t count, uint64_t user, void *argument) {
    (void)argument;
    counting_thread = gettid();
    --awaited;
    if (quiet) {
        ++told;
        return;
    }
    printf("dispatch %lu of %u: ids %s, times %s, user %lu\n", data.info.dispatch, data.info.grid[0],
           data.internal == chosen[data.info.dispatch] && data.external == data.internal + 1000 ? "match" : "differ",
           data.start && data.start < data.end ? "set" : "not set", user);
    if (list[0].dispatch != data.info.dispatch || list[0].agent != data.info.agent)
        printf("bad record\n");
    values(list, count);
}

static void keep(id context, id from, header **headers, size_t count, void *data, uint64_t dropped) {
    (void)context, (void)from, (void)data;
    printf("buffer: %zu records, %lu lost\n", count, dropped);
    for (size_t i = 0; i < count; ++i) {
        if (headers[i]->category != COUNTERS)
            printf("category %u\n", headers[i]->category);
        if (headers[i]->kind == HEADER) {
            header_record *h = headers[i]->payload;
            value_record list[1000];
            size_t n = 0;
            for (; n < h->count && headers[i + 1 + n]->kind == VALUE; ++n)
                list[n] = *(value_record *)headers[i + 1 + n]->payload;
            printf("header of dispatch %lu, size %lu, %s\n", h->info.dispatch, h->size, n == h->count ? "complete" : "cut");
            printf("  user %lu\n", list[0].user);
            values(list, n);
            i += n;
        } else {
            value_record *v = headers[i]->payload;
            printf("single value %g user %lu\n", v->value, v->user);
        }
    }
}

static void choose_agent(id context, id which, int (*set)(id, id), void *data) {
    (void)data;
    printf("whole agent: unknown config %d, wrong context %d, config %d\n", set(context, (id){999}),
           set(called, config), set(context, config));
    (void)which;
}

static int initialize(void (*finalize)(client_id), void *data) {
    (void)finalize, (void)data;
    static const char definition[] = "rocprofiler-sdk:\n  counters:\n    - name: TWICE\n      description: two\n"
                                     "      definitions:\n        - architectures: [gfx90a]\n          expression: 2*SQ_WAVES\n";
    static const char unknown[] = "rocprofiler-sdk: {counters: [{name: X, description: x, definitions: "
                                  "[{architectures: [gfx90a], expression: 2*NO_SUCH}]}]}";
    uint32_t kind = REQUEST_KERNEL_DISPATCH;
    rocprofiler_query_available_agents(1, agents, 312, NULL);
    rocprofiler_create_context(&called);
    rocprofiler_create_context(&buffered);
    rocprofiler_create_context(&whole);
    rocprofiler_create_context(&broken);
    SAY(rocprofiler_load_counter_definition(NULL, 3, APPEND));
    SAY(rocprofiler_load_counter_definition(unknown, sizeof unknown - 1, APPEND));
    SAY(rocprofiler_load_counter_definition(definition, sizeof definition - 1, APPEND));
    rocprofiler_create_buffer(buffered, 1 << 20, 1 << 20, 2, keep, NULL, &buffer);
    rocprofiler_configure_callback_tracing_service(called, CB_KERNEL_DISPATCH, (int32_t[]){1}, 1, trace, NULL);
    rocprofiler_configure_external_correlation_id_request_service(called, &kind, 1, request, NULL);
    SAY(rocprofiler_configure_callback_dispatch_counting_service(broken, NULL, NULL, receive, NULL));
    SAY(rocprofiler_configure_callback_dispatch_counting_service((id){0}, choose, NULL, receive, NULL));
    SAY(rocprofiler_configure_callback_dispatch_counting_service(called, choose, &config, receive, NULL));
    SAY(rocprofiler_configure_callback_dispatch_counting_service(called, choose, &config, receive, NULL));
    SAY(rocprofiler_configure_device_counting_service(called, (id){0}, agent[0], choose_agent, NULL));
    SAY(rocprofiler_configure_buffer_dispatch_counting_service(buffered, (id){0}, choose, &config));
    SAY(rocprofiler_configure_buffer_dispatch_counting_service(buffered, buffer, choose, &config));
    SAY(rocprofiler_configure_device_counting_service(whole, (id){99}, agent[0], choose_agent, NULL));
    SAY(rocprofiler_configure_device_counting_service(whole, (id){0}, (id){0}, choose_agent, NULL));
    SAY(rocprofiler_configure_device_counting_service(whole, (id){0}, agent[0], choose_agent, NULL));
    SAY(rocprofiler_configure_device_counting_service(whole, (id){0}, agent[0], choose_agent, NULL));
    SAY(rocprofiler_configure_callback_dispatch_counting_service(whole, choose, &config, receive, NULL));
    SAY(rocprofiler_start_context(called));
    SAY(rocprofiler_start_context(buffered));
    return 0;
}

static void finalize(void *data) {
    (void)data;
    printf("finalised with %d results missing, %d told\n", awaited, told);
}

configure_result *rocprofiler_configure(uint32_t version, const char *text, uint32_t priority, client_id *client) {
    static configure_result result = {sizeof result, initialize, finalize, NULL};
    (void)version, (void)text, (void)priority;
    client->name = "counting";
    return &result;
}

static void launch(void *kernel, unsigned groups, unsigned size) {
    static void *memory;
    uint32_t n = groups * size;
    if (!memory)
        hipMalloc(&memory, 1 << 20);
    void *arguments[] = {&memory, &n};
    if (hipModuleLaunchKernel(kernel, groups, 1, 1, size, 1, 1, 0, NULL, arguments, NULL) || hipDeviceSynchronize())
        printf("launch failed\n"), exit(1);
}

int main(int argc, char **argv) {
    int devices = 0;
    void *module, *kernel;
    id which, merged;
    size_t room = 1000;
    static value_record sample[1000];
    (void)argc;
    setbuf(stdout, NULL);
    hipGetDeviceCount(&devices);
    printf("%d GPUs\n", gpus);

    struct search search = {"", 0, 0, 0, 0};
    SAY(rocprofiler_iterate_agent_supported_counters((id){0}, look, &search));
    SAY(rocprofiler_iterate_agent_supported_counters(cpu, look, &search));
    SAY(rocprofiler_iterate_agent_supported_counters(agent[0], look, &search));
    printf("%zu counters, %zu constant, %zu derived\n", search.count, search.constants, search.derived);
    counter_info info;
    SAY(rocprofiler_query_counter_info((id){0}, 2, &info));
    SAY(rocprofiler_query_counter_info((id){60000}, 1, &info));
    SAY(rocprofiler_query_counter_info(counter("SQ_WAVES"), 3, &info));
    SAY(rocprofiler_load_counter_definition("", 0, APPEND));
    show("SQ_WAVES");
    show("TCP_TOTAL_READ");
    show("TCC_HIT");
    show("FETCH_SIZE");
    show("CU_NUM");
    show("wave_front_size");
    show("TWICE");

#define COUNTER(name, expr, agent) rocprofiler_create_counter(name, strlen(name), expr, strlen(expr), "mine", 4, agent, &which)
    SAY(COUNTER("MINE", "reduce(TWICE,sum)*wave_front_size", agent[0]));
    SAY(COUNTER("MINE", "1", agent[0]));
    SAY(COUNTER("YOURS", "1+", agent[0]));
    SAY(COUNTER("YOURS", "YOURS", agent[0]));
    SAY(COUNTER("YOURS", "1", (id){0}));
    SAY(COUNTER("YOURS", "1", cpu));

    id list[2] = {{0}, {0}};
    merged.handle = 0;
    SAY(rocprofiler_create_counter_config((id){0}, list, 0, &merged));
    SAY(rocprofiler_create_counter_config(agent[0], list, 1, &merged));
    try("SQ_WAVES SQ_INSTS SQ_INSTS_VALU SQ_INSTS_SALU SQ_INSTS_SMEM SQ_INSTS_LDS SQ_INSTS_VMEM SQ_INSTS_BRANCH");
    try("SQ_WAVES SQ_INSTS SQ_INSTS_VALU SQ_INSTS_SALU SQ_INSTS_SMEM SQ_INSTS_LDS SQ_INSTS_VMEM SQ_INSTS_BRANCH SQ_WAVES");
    try("SQ_WAVES SQ_INSTS SQ_INSTS_VALU SQ_INSTS_SALU SQ_INSTS_SMEM SQ_INSTS_LDS SQ_INSTS_VMEM SQ_INSTS_BRANCH SQ_ITEMS");
    /* what derived counters are made of counts, once */
    try("SQ_INSTS SQ_INSTS_VALU SQ_INSTS_SALU SQ_INSTS_SMEM SQ_INSTS_LDS SQ_INSTS_VMEM SQ_INSTS_BRANCH VALUInsts Wavefronts");
    try("SQ_INSTS SQ_INSTS_FLAT SQ_INSTS_SALU SQ_INSTS_SMEM SQ_INSTS_LDS SQ_INSTS_VMEM SQ_INSTS_BRANCH VALUInsts");
    /* what adds up the level before it has none here */
    try("SQ_WAVES SQ_ACCUM_PREV_HIRES");
    try("SQ_LEVEL_WAVES");
    try("MeanOccupancyPerCU");
    try("SQ_WAVES EaRdDramStallRate");
    configure("SQ_INSTS SQ_INSTS_VALU SQ_INSTS_SALU SQ_INSTS_SMEM SQ_INSTS_LDS SQ_INSTS_VMEM SQ_INSTS_BRANCH", &merged);
    list[0] = counter("SQ_ITEMS");
    list[1] = counter("SQ_WAVES");
    SAY(rocprofiler_create_counter_config(agent[0], list, 1, &merged));
    SAY(rocprofiler_create_counter_config(agent[0], list, 2, &merged));
    SAY(rocprofiler_destroy_counter_config((id){12345}));
    if (gpus > 1) {
        list[0] = counter_on(agent[1], "SQ_WAVES");
        merged.handle = 0;
        SAY(rocprofiler_create_counter_config(agent[0], list, 1, &merged));
        SAY(rocprofiler_create_counter_config(agent[1], list, 1, &merged));
    }

    if (hipModuleLoad(&module, argv[1]) || hipModuleGetFunction(&kernel, module, "collatz"))
        printf("no kernel\n"), exit(1);
    launch(kernel, 3, 64);
    printf("not counted: %s\n", counting_thread ? "but told" : "silence");
    SAY(configure("MINE SQ_INSTS_VALU SQ_ITEMS SQ_WAVES TWICE VALUInsts CU_NUM", &config));
    awaited = 0;
    launch(kernel, 5, 96);
    launch(kernel, 16, 256);
    SAY(rocprofiler_stop_context(called)); /* what is there is told before it returns */
    printf("%d results missing\n", awaited);
    printf("external %s, traced %s, between the phases %d, chosen on the main thread %d, told on it %d\n",
           chosen_external == chosen_internal + 1000 ? "requested" : "not requested",
           traced_internal == chosen_internal && traced_external == chosen_external ? "alike" : "differently", in_order == 3,
           choosing_thread == getpid(), counting_thread == getpid());

    SAY(rocprofiler_start_context(buffered));
    SAY(rocprofiler_start_context(called));
    launch(kernel, 2, 64);
    SAY(rocprofiler_stop_context(buffered));
    awaited = 0;
    SAY(rocprofiler_flush_buffer(buffer));

    SAY(rocprofiler_sample_device_counting_service(whole, 7, 0, sample, &room));
    configure("SQ_WAVES Wavefronts", &config);
    SAY(rocprofiler_start_context(whole));
    launch(kernel, 3, 64);
    launch(kernel, 4, 128);
    room = 1;
    SAY(rocprofiler_sample_device_counting_service(whole, 7, 0, sample, &room));
    printf("needs %zu\n", room);
    SAY(rocprofiler_sample_device_counting_service(whole, 7, 1, sample, &room));
    SAY(rocprofiler_sample_device_counting_service(whole, 7, 0, sample, &room));
    printf("user %lu\n", sample[0].user);
    values(sample, room);
    SAY(rocprofiler_stop_context(whole));
    SAY(rocprofiler_sample_device_counting_service(whole, 7, 0, sample, &room));

    SAY(rocprofiler_start_context(called));
    /* work that is under way is counted and told before the end */
    configure("SQ_WAVES", &config);
    awaited = 0;
    quiet = 1;
    for (int i = 0; i < 300; ++i) {
        uint32_t n = 0;
        void *nowhere = NULL, *arguments[] = {&nowhere, &n};
        hipModuleLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL);
    }
    printf("%d in all\n", told + awaited);
    return 0;
}
