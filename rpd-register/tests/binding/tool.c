/* A tool of the SDK that says what is done with it; with -DCOLLECTOR, with the functions of rpd's collector. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SAY(...) dprintf(1, NAME ": " __VA_ARGS__)

static void call(void) {}
static void* table[2] = {(void*) 16, (void*) call};
static void* tables[] = {table};

static int initialize(void (*finalize)(void), void* data) {
    (void) finalize, (void) data;
    SAY("initialized\n");
    /* A tool that uses a runtime: its table comes while the SDK is being configured. */
    if (getenv("NESTED")) {
        int (*set)(const char*, uint64_t, uint64_t, void**, uint64_t) =
            (int (*)(const char*, uint64_t, uint64_t, void**, uint64_t)) dlsym(RTLD_DEFAULT, "rocprofiler_set_api_table");
        SAY("nested %d\n", set("rccl", 20000, 0, tables, 1));
    }
    return 0;
}
static struct { size_t size; int (*initialize)(void (*)(void), void*); void (*finalize)(void*); void* data; } result = {32, initialize, NULL, NULL};

static int configured;
void* rocprofiler_configure(uint32_t version, const char* text, uint32_t priority, void* client) {
    (void) text, (void) client;
    configured = 1;
    SAY("configured by %d as %d\n", (int) version, (int) priority);
    return &result;
}

#ifdef COLLECTOR
__attribute__((constructor)) static void loaded(void) { SAY("loaded\n"); }
void (*signal(int number, void (*handler)(int)))(int) {
    (void) handler;
    SAY("signal %d\n", number);
    return SIG_DFL;
}
/* TAKES: what it answers, after saying what it was asked. */
int rpd_collect_takes(const char* name, uint64_t version, void** tables, uint64_t count, int other_tool) {
    (void) tables;
    const char* answer = getenv("TAKES");
    if (!answer) return 0;
    SAY("asked for %s, version %d, %d table(s)%s\n", name, (int) version, (int) count, other_tool ? ", other tool" : "");
    return atoi(answer);
}
int rpd_collect_set_api_table(const char* name, uint64_t version, uint64_t instance, void** tables, uint64_t count) {
    (void) tables, (void) version;
    SAY("takes %s %d, %d table(s)\n", name, (int) instance, (int) count);
    return 0;
}
void rpd_collect_end(void) { SAY("end\n"); }
void rpd_collect_note(const char* text) {
    if (!configured) SAY("note: %s\n", text);
}
#endif
