/* The counting side of the small provider: two GPUs with different counters, and ids that follow no known encoding.
 * Everything that the collector asks for by name is printed, so that a test sees how often it is asked for. */

typedef struct { handle_t id; const char *name, *description, *block, *expression; uint8_t flags; } info_v0_t;
typedef struct { const char* name; size_t size; uint64_t id; } dimension_t;
typedef struct {
    uint64_t size;
    handle_t id;
    const char *name, *description, *block, *expression;
    uint8_t flags;
    uint64_t dimensions_count;
    const dimension_t** dimensions;
    uint64_t instances_count;
    const void** instances;
} info_v1_t;
typedef struct { uint64_t id; double value; uint64_t dispatch; user_data_t user_data; handle_t agent; } counter_record_t;
typedef struct {
    uint64_t size;
    struct { uint64_t internal; user_data_t external; } correlation;
    uint64_t start, end;
    struct { uint64_t size, agent, queue, kernel, dispatch; uint32_t scratch, lds, group[3], grid[3]; uint8_t pad[56]; } info;
} counting_data_t;
typedef void (*offer_t)(counting_data_t, handle_t*, user_data_t*, void*);
typedef void (*counted_t)(counting_data_t, counter_record_t*, size_t, user_data_t, void*);

#ifndef WITHOUT_COUNTING

enum { GPU0 = 77, GPU1 = 78 };

/* WAVES has one value, HITS two, and OLD is described by version 0 alone. BROKEN is listed and cannot be collected. */
static const struct { uint64_t agent, id; const char* name; int values; uint8_t flags; } counters[] = {
    {GPU0, 1, "WAVES", 1, 0}, {GPU0, 2, "HITS", 2, 2}, {GPU0, 3, "OLD", 2, 0},  {GPU0, 4, "BROKEN", 1, 0},
    {GPU0, 5, "BUSY", 1, 0},  {GPU1, 11, "WAVES", 1, 0}, {GPU1, 12, "ONLY1", 1, 1},
};
enum { COUNTERS = sizeof counters / sizeof *counters };

static int find_counter(uint64_t id) {
    for (int i = 0; i < COUNTERS; ++i)
        if (counters[i].id == id) return i;
    return -1;
}

static const dimension_t xcc = {"DIMENSION_XCC", 1, 1}, instance = {"DIMENSION_INSTANCE", 2, 7};
static const dimension_t* both[] = {&xcc, &instance};

static int asked, counting_config_slow;
static handle_t counting_context;
static offer_t offer;
static counted_t tell_counted_to;
static struct { uint64_t agent; size_t count; uint64_t ids[8]; int destroyed; } configs[64];
static uint64_t configs_made;

int rocprofiler_load_counter_definition(const char* text, size_t size, uint32_t flags) {
    if (asked) return 1;
    printf("definitions %u %.*s\n", flags, (int) size, text);
    return size > 6 ? 1 : 0;
}
int rocprofiler_iterate_agent_supported_counters(handle_t agent, int (*visit)(handle_t, handle_t*, size_t, void*), void* data) {
    handle_t ids[COUNTERS];
    size_t count = 0;
    asked = 1;
    for (int i = 0; i < COUNTERS; ++i)
        if (counters[i].agent == agent.handle) ids[count++].handle = counters[i].id;
    return visit(agent, ids, count, data);
}
int rocprofiler_query_counter_info(handle_t id, uint32_t version, void* to) {
    int i = find_counter(id.handle);
    asked = 1;
    if (i < 0) return 8;
    if (version == 1) {
        *(info_v0_t*) to = (info_v0_t){id, counters[i].name, "what it counts", "SQ", "", counters[i].flags};
        return 0;
    }
    if (version != 2 || counters[i].id == 3) return 18;
    info_v1_t* info = to;
    info->id = id;
    if (counters[i].values == 1) return 0;
    info->size = sizeof *info;
    info->dimensions_count = 2;
    info->dimensions = both;
    return 0;
}
int rocprofiler_iterate_counter_dimensions(handle_t id, int (*visit)(handle_t, const dimension_t*, size_t, void*), void* data) {
    return visit(id, &instance, 1, data);
}
static uint64_t value_id(uint64_t counter, uint64_t position) { return (counter * 1000 + position) * 7 + 3; }
int rocprofiler_query_record_counter_id(uint64_t id, handle_t* counter) {
    counter->handle = (id - 3) / 7 / 1000;
    return 0;
}
int rocprofiler_query_record_dimension_position(uint64_t id, uint64_t dimension, size_t* position) {
    *position = dimension == 7 ? (id - 3) / 7 % 1000 : 0;
    return 0;
}

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
int rocprofiler_create_counter_config(handle_t agent, handle_t* ids, size_t count, handle_t* config) {
    char line[256] = "";
    int broken = 0;
    for (size_t i = 0; i < count; ++i) {
        int found = find_counter(ids[i].handle);
        strcat(strcat(line, " "), counters[found].name);
        broken |= ids[i].handle == 4;
    }
    /* Like the SDK's hardware tables, this stands no second thread while one is in here. */
    static int inside;
    if (__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST)) exit(98);
    if (counting_config_slow) usleep(200000);
    __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
    printf("config %d%s\n", (int) agent.handle - GPU0, line);
    fflush(stdout);
    if (broken) return 20;
    if (config->handle) exit(99);
    pthread_mutex_lock(&making);
    configs[configs_made].agent = agent.handle;
    configs[configs_made].count = count;
    for (size_t i = 0; i < count; ++i) configs[configs_made].ids[i] = ids[i].handle;
    config->handle = ++configs_made;
    pthread_mutex_unlock(&making);
    return 0;
}
int rocprofiler_destroy_counter_config(handle_t config) {
    configs[config.handle - 1].destroyed = 1;
    return 0;
}
int rocprofiler_configure_callback_dispatch_counting_service(handle_t context, offer_t dispatch_callback, void* dispatch_data,
                                                             counted_t record_callback, void* record_data) {
    (void) dispatch_data, (void) record_data;
    if (offer) return 15;
    counting_context = context;
    never_to_stop = context.handle;
    offer = dispatch_callback;
    tell_counted_to = record_callback;
    return 0;
}

typedef struct { counting_data_t data; handle_t config; user_data_t user_data; } counted_dispatch_t;

/* Before the kernel runs, on the thread that submits it. */
static void offer_dispatch(counted_dispatch_t* it) {
    memset(&it->config, 0, sizeof it->config);
    it->user_data.value = 0;
    if (offer && active[counting_context.handle]) offer(it->data, &it->config, &it->user_data, NULL);
    if (it->config.handle && configs[it->config.handle - 1].destroyed) exit(89);
    if (it->config.handle && configs[it->config.handle - 1].agent != it->data.info.agent) exit(88);
}
/* When it is complete: value number p of counter c in dispatch d is 1000 c + 100 p + d. */
static void tell_counted(void* argument) {
    counted_dispatch_t* it = argument;
    counter_record_t records[16];
    size_t count = 0;
    if (!it->config.handle) return;
    for (size_t i = 0; i < configs[it->config.handle - 1].count; ++i) {
        uint64_t counter = configs[it->config.handle - 1].ids[i];
        for (int position = 0; position < counters[find_counter(counter)].values; ++position) {
            double value = (double) (1000 * counter + 100 * (uint64_t) position + it->data.info.dispatch);
            records[count++] = (counter_record_t){value_id(counter, (uint64_t) position), value, it->data.info.dispatch,
                                                  it->user_data, {it->data.info.agent}};
        }
    }
    tell_counted_to(it->data, records, count, it->user_data, NULL);
}

#endif
