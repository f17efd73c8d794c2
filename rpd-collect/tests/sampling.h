/* PC sampling of the provider: a buffer that is delivered when it is flushed, and records as a GPU makes them. */

typedef struct { uint64_t size; uint32_t method, unit; size_t min, max; uint64_t flags; } sampling_configuration_t;
typedef struct { uint32_t category, kind; void* payload; } sample_header_t;
typedef void (*samples_t)(handle_t, handle_t, sample_header_t**, size_t, void*, uint64_t);

static struct { handle_t context; size_t size, watermark; samples_t callback; void* data; uint64_t thread; } buffer;
static pthread_mutex_t sampling_lock = PTHREAD_MUTEX_INITIALIZER;
static struct { sample_header_t header; uint64_t words[13]; } taken[4096];
static size_t taken_count;
static uint64_t taken_lost;
static int flushes;
static int sampled;

int rocprofiler_create_buffer(handle_t context, size_t size, size_t watermark, int policy, samples_t callback, void* data,
                              handle_t* id) {
    /* Lossless, and one for all GPUs. */
    if (policy != 2 || buffer.callback) exit(70);
    buffer.context = context, buffer.size = size, buffer.watermark = watermark;
    buffer.callback = callback, buffer.data = data;
    id->handle = 9;
    return 0;
}
int rocprofiler_create_callback_thread(handle_t* thread) { thread->handle = 4; return 0; }
int rocprofiler_assign_callback_thread(handle_t id, handle_t thread) {
    if (id.handle != 9) return 3;
    buffer.thread = thread.handle;
    return 0;
}
/* The first GPU has both methods, the second host trap alone. */
int rocprofiler_query_pc_sampling_agent_configurations(handle_t agent, int (*visit)(const sampling_configuration_t*, size_t, void*),
                                                       void* data) {
    sampling_configuration_t all[] = {{40, 2, 3, 1, (size_t) -1, 0}, {40, 1, 2, 256, 1u << 31, 1}};
    if (!getenv("ROCPROFILER_PC_SAMPLING_BETA_ENABLED")) return 17;
    return visit(all, agent.handle == 77 ? 2 : 1, data);
}
int rocprofiler_configure_pc_sampling_service(handle_t context, handle_t agent, uint32_t method, uint32_t unit, uint64_t interval,
                                              handle_t id, int flags) {
    if (context.handle != buffer.context.handle || id.handle != 9 || flags) return 3;
    if (method == 1 && (interval & (interval - 1))) return 19;
    printf("sampled %d method %u unit %u interval %lu thread %lu\n", (int) agent.handle, method, unit, interval, buffer.thread);
    ++sampled;
    return 0;
}

static void deliver(void) {
    sample_header_t* headers[4096];
    for (size_t i = 0; i < taken_count; ++i) {
        taken[i].header.payload = taken[i].words;
        headers[i] = &taken[i].header;
    }
    size_t count = taken_count;
    uint64_t lost = taken_lost;
    taken_count = taken_lost = 0;
    if (count || lost) buffer.callback(buffer.context, (handle_t) {9}, headers, count, buffer.data, lost);
}
int rocprofiler_flush_buffer(handle_t id) {
    if (id.handle != 9) return 3;
    pthread_mutex_lock(&sampling_lock);
    ++flushes;
    deliver();
    pthread_mutex_unlock(&sampling_lock);
    return 0;
}

/* Takes samples while the context is started: `kind` 1 invalid, 2 host trap, 3 stochastic, 7 from the future. */
static void take_samples(uint32_t kind, long count, uint64_t object) {
    if (!sampled || !active[buffer.context.handle]) return;
    pthread_mutex_lock(&sampling_lock);
    for (long i = 0; i < count; ++i) {
        if (taken_count == 4096) { ++taken_lost; continue; }
        uint64_t* word = taken[taken_count].words;
        uint64_t at = (uint64_t) i * 4;
        memset(word, 0, sizeof taken[0].words);
        taken[taken_count].header.category = 2;
        taken[taken_count].header.kind = kind;
        ++taken_count;
        if (kind == 2) {
            uint64_t record[] = {88, 0x20c2, object, at, 0xff, now(), 5, 6, 7ul << 32, 1 | 2ul << 32, 3 | 4ul << 32};
            memcpy(word, record, sizeof record);
        } else if (kind == 3) {
            /* Wave 4 of its group issued a vector instruction, of nine waves; the arbiter chose one for the vector pipe. */
            uint64_t record[] = {104, 1 | 4 << 8 | 3 << 16, 0x20c2, object, at, ~0ul, 1 | 2ul << 32, 3 | 9ul << 32, now(), 5, 6, 7ul << 32,
                                 0x28 | 0x41ul << 32};
            memcpy(word, record, sizeof record);
        } else {
            word[0] = kind == 1 ? 8 : 16;
        }
    }
    pthread_mutex_unlock(&sampling_lock);
}
