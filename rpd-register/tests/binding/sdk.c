/* An SDK that says what is done with it. -DWITHOUT_FORCE: one that has no rocprofiler_force_configure; -DWITH_ATTACH: one
 * that processes can be attached to. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef NAME
#define NAME "sdk"
#endif
#define SAY(...) dprintf(1, NAME ": " __VA_ARGS__)

typedef struct { size_t size; const char* name; uint32_t handle; } client_t;
typedef struct { size_t size; int (*initialize)(void (*)(client_t), void*); void (*finalize)(void*); void* data; } result_t;
typedef result_t* (*configure_t)(uint32_t, const char*, uint32_t, client_t*);

static int initialized;
static configure_t clients[8];
static int count;

static void finalize(client_t client) { (void) client; }
static void add(configure_t configure) {
    for (int i = 0; i < count; ++i)
        if (clients[i] == configure) return;
    if (configure) clients[count++] = configure;
}

static void initialize(configure_t forced) {
    if (initialized) return;
    initialized = -1;
    add(forced);
    char list[4096];
    snprintf(list, sizeof list, "%s", getenv("ROCP_TOOL_LIBRARIES") ? getenv("ROCP_TOOL_LIBRARIES") : "");
    /* What follows the last colon is ignored. */
    if (strrchr(list, ':')) *strrchr(list, ':') = 0;
    for (char* path = strtok(list, ":"); path; path = strtok(NULL, ":")) {
        void* handle = dlopen(path, RTLD_LOCAL | RTLD_LAZY);
        if (!handle) abort();
        add((configure_t) dlsym(handle, "rocprofiler_configure"));
    }
    configure_t visible = (configure_t) dlsym(RTLD_DEFAULT, "rocprofiler_configure");
    if (visible) SAY("parses all libraries\n"), add(visible);
    result_t* results[8];
    static client_t ids[8];
    for (int i = 0; i < count; ++i) {
        ids[i] = (client_t){sizeof(client_t), NULL, (uint32_t) i};
        results[i] = clients[i](10000, "1.0.0", (uint32_t) i, &ids[i]);
    }
    for (int i = 0; i < count; ++i)
        if (results[i]) results[i]->initialize(finalize, results[i]->data);
    initialized = 1;
}

uint32_t rocprofiler_is_initialized(int* status) { *status = initialized; return 0; }

__attribute__((constructor)) static void constructor(void) {
    if (getenv("ROCPROFILER_LIBRARY_CTOR")) initialize(NULL);
}

#ifndef WITHOUT_FORCE
uint32_t rocprofiler_force_configure(configure_t configure) {
    SAY("forced%s\n", initialized ? " too late" : "");
    if (initialized) return 16;
    initialize(configure);
    return 0;
}
#endif

static void wrapper(void) { SAY("call\n"); }

int rocprofiler_set_api_table(const char* name, uint64_t version, uint64_t instance, void** tables, uint64_t number) {
    initialize(NULL);
    SAY("%s %d, version %d, %d table(s)\n", name, (int) instance, (int) version, (int) number);
    if (!strcmp(name, "rocjpeg")) return 19;
    ((void (**)(void)) tables[0])[1] = wrapper;
    return 0;
}

#ifdef WITH_ATTACH
int rocprofiler_attach(void) { SAY("attach\n"); return 7; }
int rocprofiler_detach(void) { SAY("detach\n"); return 8; }
int rocprofiler_load_attachment_tool(const char* path) { SAY("tool %s\n", path); return 9; }
#endif
