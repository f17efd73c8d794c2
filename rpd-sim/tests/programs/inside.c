/* A tool and the program it watches, in one: samples program counters or traces waves of a kernel, and prints what it got,
 * a line each. The ABI is declared here by hand. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { uint64_t handle; } id;
typedef struct { size_t size; const char *name; uint32_t handle; } client_id;
typedef struct {
    size_t size;
    int (*initialize)(void (*)(client_id), void *);
    void (*finalize)(void *);
    void *data;
} configure_result;
typedef struct { uint32_t category, kind; void *payload; } header;
typedef struct {
    uint64_t context, thread, internal, external, ancestor;
    uint32_t kind;
    int32_t operation;
    uint32_t phase;
    void *payload;
} record;
typedef struct { uint64_t size; uint32_t method, unit; size_t min, max; uint64_t flags; } configuration;
typedef struct { uint32_t type; union { uint64_t value; struct { id counter; uint64_t simds; }; }; } parameter;
typedef void (*buffer_cb)(id, id, header **, size_t, void *, uint64_t);
typedef void (*trace_cb)(record, uint64_t *, void *);
typedef uint32_t (*dispatch_cb)(id, id, uint64_t, uint64_t, uint64_t, uint64_t, void *, uint64_t *);
typedef void (*shader_cb)(id, int64_t, void *, size_t, uint64_t);

int rocprofiler_create_context(id *);
int rocprofiler_start_context(id);
int rocprofiler_stop_context(id);
int rocprofiler_create_buffer(id, size_t, size_t, uint32_t, buffer_cb, void *, id *);
int rocprofiler_flush_buffer(id);
int rocprofiler_configure_callback_tracing_service(id, uint32_t, const int32_t *, size_t, trace_cb, void *);
int rocprofiler_query_available_agents(uint32_t, int (*)(uint32_t, const void **, size_t, void *), size_t, void *);
int rocprofiler_query_pc_sampling_agent_configurations(id, int (*)(const configuration *, size_t, void *), void *);
int rocprofiler_configure_pc_sampling_service(id, id, uint32_t, uint32_t, uint64_t, id, int);
int rocprofiler_configure_device_counting_service(id, id, id, void (*)(void), void *);
int rocprofiler_configure_dispatch_thread_trace_service(id, id, parameter *, size_t, dispatch_cb, shader_cb, void *);
int rocprofiler_configure_device_thread_trace_service(id, id, parameter *, size_t, shader_cb, uint64_t);
int rocprofiler_iterate_agent_supported_counters(id, int (*)(id, id *, size_t, void *), void *);
int rocprofiler_query_counter_info(id, uint32_t, void *);

int rocprofiler_thread_trace_decoder_create(id *, const char *);
void rocprofiler_thread_trace_decoder_destroy(id);
int rocprofiler_thread_trace_decoder_codeobj_load(id, uint64_t, uint64_t, uint64_t, const void *, uint64_t);
int rocprofiler_thread_trace_decoder_codeobj_unload(id, uint64_t);
int rocprofiler_trace_decode(id, void (*)(uint32_t, void *, uint64_t, void *), void *, uint64_t, void *);
const char *rocprofiler_thread_trace_decoder_info_string(id, uint32_t);

int hipMalloc(void **, size_t);
int hipMemset(void *, int, size_t);
int hipDeviceSynchronize(void);
int hipModuleLoad(void **, const char *);
int hipModuleGetFunction(void **, void *, const char *);
int hipModuleLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

enum { CB_CODE_OBJECT = 10, CB_KERNEL_DISPATCH = 12, PC_SAMPLING = 2, HOST_TRAP = 2, STOCHASTIC = 1, TIME = 3, CYCLES = 2 };

static id gpu, cpu, context, other, counters, buffer;
static const char *mode;
static int traces;

#define SAY(what) (printf("%s %d\n", #what, what), fflush(stdout))

static int agents(uint32_t version, const void **list, size_t count, void *data) {
    (void)version, (void)data;
    for (size_t i = 0; i < count; ++i) {
        uint32_t type;
        memcpy(&type, (const char *)list[i] + 16, 4);
        memcpy(type == 2 ? &gpu : &cpu, (const char *)list[i] + 8, 8);
    }
    return 0;
}

static int configurations(const configuration *list, size_t count, void *data) {
    (void)data;
    for (size_t i = 0; i < count; ++i)
        printf("configuration %lu: method %u unit %u from %zu to %zu flags %lu\n", list[i].size, list[i].method, list[i].unit,
               list[i].min, list[i].max, list[i].flags);
    return 0;
}

static void samples(id c, id b, header **list, size_t count, void *data, uint64_t dropped) {
    (void)c, (void)b, (void)data, (void)dropped;
    for (size_t i = 0; i < count; ++i) {
        const uint64_t *words = list[i]->payload;
        const uint32_t *halves = list[i]->payload;
        if (list[i]->category != PC_SAMPLING || list[i]->kind != 2) {
            printf("record of category %u and kind %u\n", list[i]->category, list[i]->kind);
            continue;
        }
        printf("sample %lu hw %lx object %lu offset %lx exec %lx time %lu dispatch %lu correlation %lu group %u %u %u wave %u\n",
               words[0], words[1], words[2], words[3], words[4], words[5], words[6], words[7], halves[18], halves[19],
               halves[20], halves[21]);
    }
}

static void events(record r, uint64_t *user, void *data) {
    (void)user, (void)data;
    const uint64_t *payload = r.payload;
    if (r.kind == CB_KERNEL_DISPATCH && r.operation == 2)
        printf("dispatch %lu correlation %lu from %lu to %lu\n", payload[7], r.internal, payload[1], payload[2]);
    if (r.kind == CB_CODE_OBJECT && r.operation == 1 && r.phase == 1)
        printf("object %lu at %lx bytes %lx delta %lx\n", payload[1], payload[5], payload[6], payload[7]);
}

static uint32_t choose(id a, id q, uint64_t internal, uint64_t external, uint64_t kernel, uint64_t dispatch, void *config,
                       uint64_t *user) {
    (void)a, (void)q, (void)internal, (void)external, (void)kernel, (void)config;
    *user = dispatch;
    return dispatch == 2 ? 0 : 3;
}

static void shader(id a, int64_t engine, void *bytes, size_t size, uint64_t user) {
    printf("trace %d of agent %d engine %ld dispatch %lu bytes %zu\n", traces, a.handle == gpu.handle, engine, user, size);
    char name[64];
    snprintf(name, sizeof name, "trace-%d.att", traces++);
    FILE *file = fopen(name, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size)
        exit(7);
    fclose(file);
}

static int named(id a, id *list, size_t count, void *data) {
    (void)a;
    struct { uint64_t size, id; const char *name; uint64_t rest[32]; } info;
    for (size_t i = 0; i < count; ++i) {
        memset(&info, 0, sizeof info);
        if (rocprofiler_query_counter_info(list[i], 2, &info) == 0 && !strcmp(info.name, "SQ_INSTS_VALU"))
            *(id *)data = list[i];
    }
    return 0;
}

#define configure rocprofiler_configure_pc_sampling_service
#define query rocprofiler_query_pc_sampling_agent_configurations
#define trace rocprofiler_configure_dispatch_thread_trace_service
#define trace_device rocprofiler_configure_device_thread_trace_service

static void configure_sampling(void) {
    const char *interval = getenv("INTERVAL");
    id none = {0};
    unsetenv("ROCPROFILER_PC_SAMPLING_BETA_ENABLED");
    SAY(query(gpu, configurations, NULL));
    SAY(configure(none, none, 9, 9, 0, none, 0));
    setenv("ROCPROFILER_PC_SAMPLING_BETA_ENABLED", "0", 1);
    SAY(query(gpu, configurations, NULL));
    setenv("ROCPROFILER_PC_SAMPLING_BETA_ENABLED", "on", 1);
    SAY(query(none, configurations, NULL));
    SAY(query(gpu, configurations, NULL));
    SAY(configure(none, none, 9, 9, 0, none, 0));
    SAY(configure(none, gpu, 9, 9, 0, none, 0));
    SAY(configure(context, gpu, 9, 9, 0, none, 0));
    SAY(rocprofiler_configure_device_counting_service(counters, none, gpu, (void (*)(void))exit, NULL));
    SAY(configure(counters, gpu, HOST_TRAP, TIME, 1000, buffer, 0));
    SAY(configure(context, gpu, 0, TIME, 1000, buffer, 0));
    SAY(configure(context, gpu, STOCHASTIC, CYCLES, 1 << 20, buffer, 0));
    SAY(configure(context, gpu, HOST_TRAP, 0, 1000, buffer, 0));
    SAY(configure(context, gpu, HOST_TRAP, CYCLES, 1000, buffer, 0));
    SAY(configure(context, cpu, HOST_TRAP, TIME, 1000, buffer, 0));
    SAY(configure(context, gpu, HOST_TRAP, TIME, strtoul(interval ? interval : "10", NULL, 10), buffer, 0));
    SAY(configure(context, gpu, HOST_TRAP, TIME, 1000, buffer, 0));
    SAY(configure(other, gpu, HOST_TRAP, TIME, 1000, buffer, 0));
    SAY(query(gpu, configurations, NULL));
    SAY(rocprofiler_configure_device_counting_service(context, none, gpu, (void (*)(void))exit, NULL));
}

static void configure_trace(void) {
    enum { CU, ENGINES, SIZE, SIMDS, CONTROL, COUNTER, SERIALIZE };
    id counter = {0};
    parameter good[] = {{ENGINES, {0x3}}, {SIZE, {0x1000000}}, {CU, {1}}, {SIMDS, {0xf}}, {CONTROL, {0}}, {CONTROL, {0}}};
    const char *size = getenv("SIZE");
    rocprofiler_iterate_agent_supported_counters(gpu, named, &counter);
    if (size)
        good[1].value = strtoul(size, NULL, 0);
    if (!strcmp(mode, "counters")) {
        good[4].value = 3;
        good[5] = (parameter){COUNTER, {.counter = counter, .simds = 0xf}};
        good[5].simds = 0xf;
    }
    id none = {0};
    parameter bad[] = {{CU, {16}}, {ENGINES, {0}}, {SIZE, {0xfffff}}, {SIMDS, {16}}, {7, {0}}, {CONTROL, {33}}, {SERIALIZE, {1}}};
    SAY(trace(none, gpu, good, 4, choose, shader, NULL));
    SAY(trace(context, gpu, good, 4, NULL, shader, NULL));
    SAY(trace(context, gpu, good, 4, choose, NULL, NULL));
    for (size_t i = 0; i < 6; ++i)
        SAY(trace(context, gpu, &bad[i], 1, choose, shader, NULL));
    SAY(trace_device(other, gpu, &bad[6], 1, shader, 0));
    if (!strcmp(mode, "device")) {
        SAY(trace_device(context, gpu, good, 6, shader, 77));
        SAY(trace(context, gpu, good, 6, choose, shader, NULL));
        SAY(trace_device(counters, gpu, good, 6, shader, 78));
    } else {
        SAY(trace(context, gpu, good, 6, choose, shader, NULL));
        SAY(trace_device(context, gpu, good, 6, shader, 77));
    }
}

static int initialize(void (*finalize)(client_id), void *data) {
    (void)finalize, (void)data;
    SAY(rocprofiler_query_available_agents(1, agents, 312, NULL));
    SAY(rocprofiler_create_context(&context));
    SAY(rocprofiler_create_context(&other));
    SAY(rocprofiler_create_context(&counters));
    SAY(rocprofiler_create_buffer(context, 1 << 16, 60000, 2, samples, NULL, &buffer));
    SAY(rocprofiler_configure_callback_tracing_service(context, CB_KERNEL_DISPATCH, NULL, 0, events, NULL));
    SAY(rocprofiler_configure_callback_tracing_service(context, CB_CODE_OBJECT, NULL, 0, events, NULL));
    if (!strcmp(mode, "sample"))
        configure_sampling();
    else if (strcmp(mode, "decode"))
        configure_trace();
    SAY(rocprofiler_start_context(context));
    if (!strcmp(mode, "device"))
        SAY(rocprofiler_start_context(counters));
    return 0;
}

static void finalize(void *data) {
    (void)data;
    rocprofiler_flush_buffer(buffer);
}

configure_result *rocprofiler_configure(uint32_t version, const char *runtime, uint32_t priority, client_id *client) {
    (void)version, (void)runtime, (void)priority, (void)client;
    mode = getenv("MODE");
    static configure_result result = {sizeof result, initialize, finalize, NULL};
    return &result;
}

static void decoded(uint32_t type, void *records, uint64_t count, void *user) {
    printf("decoded type %u count %lu user %s: %s\n", type, count, (char *)user, type == 5 ? (char *)records : "");
}

/* Decodes with the library of decoder.c, which asks for the instruction at the address that the trace begins with. */
static int decode(const char *file, const char *folder) {
    static char code[1 << 20];
    uint64_t trace[2] = {strtoul(getenv("ADDRESS"), NULL, 16), 9};
    FILE *from = fopen(file, "rb");
    size_t size = from ? fread(code, 1, sizeof code, from) : 0;
    id decoder = {0}, none = {0};
    SAY(rocprofiler_thread_trace_decoder_create(&decoder, "/nowhere"));
    SAY(rocprofiler_thread_trace_decoder_create(&decoder, getenv("WRONG")));
    SAY(rocprofiler_thread_trace_decoder_create(&decoder, folder));
    SAY(rocprofiler_thread_trace_decoder_codeobj_load(none, 9, 0, 1, code, size));
    SAY(rocprofiler_thread_trace_decoder_codeobj_load(decoder, 9, 0, 1, "no ELF", 6));
    SAY(rocprofiler_thread_trace_decoder_codeobj_load(decoder, 9, 1 << 20, size, code, size));
    SAY(rocprofiler_trace_decode(none, decoded, trace, sizeof trace, "me"));
    SAY(rocprofiler_trace_decode(decoder, decoded, trace, sizeof trace, "me"));
    SAY(rocprofiler_trace_decode(decoder, decoded, trace, 4, "me"));
    puts(rocprofiler_thread_trace_decoder_info_string(decoder, 1));
    SAY(rocprofiler_thread_trace_decoder_codeobj_unload(decoder, 9));
    SAY(rocprofiler_thread_trace_decoder_codeobj_unload(decoder, 9));
    rocprofiler_thread_trace_decoder_destroy(decoder);
    SAY(rocprofiler_trace_decode(decoder, decoded, trace, sizeof trace, "me"));
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(getenv("MODE"), "decode"))
        return decode(argv[1], argv[2]);
    void *module, *function, *out;
    int rounds = argc > 3 ? atoi(argv[3]) : 100, more = 32;
    unsigned groups = argc > 4 ? (unsigned)atoi(argv[4]) : 8;
    if (argc < 3 || hipMalloc(&out, groups * 1024) || hipModuleLoad(&module, argv[1]) ||
        hipModuleGetFunction(&function, module, argv[2]))
        return 3;
    void *arguments[] = {&out, &rounds, &more};
    for (int i = 0; i < 3; ++i)
        if (hipModuleLaunchKernel(function, groups, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL) || hipDeviceSynchronize())
            return 4;
    SAY(rocprofiler_stop_context(context));
    SAY(rocprofiler_flush_buffer(buffer));
    SAY(configure(context, gpu, HOST_TRAP, TIME, 1000, buffer, 0));
    SAY(trace(context, gpu, NULL, 0, choose, shader, NULL));
    SAY(trace_device(context, gpu, NULL, 0, shader, 0));
    return 0;
}
