/* What providers of newer SDKs have beside: calls of rocSHMEM and hipFile, and events of the kernel driver. */

enum { ROCSHMEM = 23, HIPFILE = 24, MIGRATE_BUFFER = 29, DROPPED_BUFFER = 28 };

static const char* rocshmem_names[] = {
    "rocshmem_barrier_all_on_stream", "rocshmem_quiet_on_stream", "rocshmem_sync_all_on_stream",
    "rocshmem_alltoallmem_on_stream", "rocshmem_broadcastmem_on_stream", "rocshmem_getmem_on_stream",
    "rocshmem_putmem_on_stream", "rocshmem_putmem_signal_on_stream", "rocshmem_signal_wait_until_on_stream"};
static const char* hipfile_names[] = {
    "hipFileGetOpErrorString", "hipFileHandleRegister", "hipFileHandleDeregister", "hipFileBufRegister",
    "hipFileBufDeregister", "hipFileRead", "hipFileWrite", "hipFileDriverOpen"};

static const char* newer_operation_name(uint32_t kind, int op) {
    if (kind == ROCSHMEM && op >= 0 && op < 9) return rocshmem_names[op];
    if (kind == HIPFILE && op >= 0 && op < 8) return hipfile_names[op];
    return NULL;
}
static const char* newer_buffer_name(uint32_t kind) {
    return kind == MIGRATE_BUFFER ? "KFD_PAGE_MIGRATE" : kind == DROPPED_BUFFER ? "KFD_EVENT_DROPPED_EVENTS" : NULL;
}
static const char* newer_buffer_operation(uint32_t kind, int op) {
    if (op) return NULL;
    return kind == MIGRATE_BUFFER ? "KFD_PAGE_MIGRATE_PREFETCH" : kind == DROPPED_BUFFER ? "KFD_EVENT_DROPPED_EVENTS" : NULL;
}

/* Bits of the buffer kinds that a tool wants. */
static uint64_t newer_wanted;

static int newer_configure(uint32_t kind) {
    /* A driver that reports no events. */
    if (getenv("DRIVER_TOO_OLD")) return 28;
    if (!newer_buffer_name(kind)) return 4;
    newer_wanted |= 1ul << kind;
    return 0;
}
