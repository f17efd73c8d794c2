/* A program with runtimes. Its arguments are what it does, in this order. -DOWN_TOOL: with a tool of its own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAY(...) dprintf(1, "program: " __VA_ARGS__)

int rocprofiler_register_library_api_table(const char*, uint32_t (*)(void), uint32_t, void**, uint64_t, uint64_t*);
int rocprofiler_register_invoke_all_registrations(void);

typedef struct { uint64_t size; void (*function)(void); } table_t;

static void original(void) { SAY("call\n"); }
static uint32_t import(void) { return 70000; }

#ifdef OWN_TOOL
#define NAME "own tool"
#undef SAY
#include "tool.c"
#undef SAY
#define SAY(...) dprintf(1, "program: " __VA_ARGS__)
#else
static void* rocprofiler_configure(uint32_t version, const char* text, uint32_t priority, void* client) {
    (void) text, (void) client;
    SAY("configured by %d as %d\n", (int) version, (int) priority);
    return NULL;
}
#endif

static void runtime(const char* name) {
    table_t* table = calloc(1, sizeof *table);
    void* tables[] = {table};
    uint64_t id = 0;
    *table = (table_t){sizeof *table, original};
    int result = rocprofiler_register_library_api_table(name, import, 70000, tables, 1, &id);
    if (result) SAY("%s is refused: %d\n", name, result);
    table->function();
}

static void* thread(void* name) { return runtime(name), NULL; }
static void after_main(void) { SAY("after main\n"); }

static void* function(const char* name) {
    void* address = dlsym(RTLD_DEFAULT, name);
    if (!address) SAY("no %s\n", name), exit(1);
    return address;
}

int main(int count, char** words) {
    atexit(after_main);
    for (int i = 1; i < count; ++i) {
        char* word = words[i];
        if (!strcmp(word, "replay")) {
            SAY("replay %d\n", rocprofiler_register_invoke_all_registrations());
        } else if (!strcmp(word, "force")) {
            uint32_t (*force)(void*) = (uint32_t(*)(void*)) function("rocprofiler_force_configure");
            SAY("force %d\n", (int) force((void*) rocprofiler_configure));
        } else if (!strcmp(word, "attach")) {
            SAY("attach %d\n", ((int (*)(void)) function("rocprofiler_attach"))());
            SAY("detach %d\n", ((int (*)(void)) function("rocprofiler_detach"))());
            SAY("load %d\n", ((int (*)(const char*)) function("rocprofiler_load_attachment_tool"))("/tool.so"));
        } else if (!strcmp(word, "fork")) {
            pid_t child = fork();
            if (child) {
                waitpid(child, NULL, 0);
                break;
            }
        } else if (!strcmp(word, "visible")) {
            SAY("%s rocprofiler_configure\n", dlsym(RTLD_DEFAULT, "rocprofiler_configure") ? "sees a" : "sees no");
        } else if (!strcmp(word, "list")) {
            SAY("tools %s\n", getenv("ROCP_TOOL_LIBRARIES") ? getenv("ROCP_TOOL_LIBRARIES") : "none");
        } else if (!strncmp(word, "open=", 5)) {
            if (!dlopen(word + 5, RTLD_LAZY | RTLD_GLOBAL)) SAY("%s\n", dlerror());
        } else if (!strcmp(word, "signals")) {
            struct sigaction before;
            signal(SIGUSR1, SIG_IGN);
            sigaction(SIGUSR1, NULL, &before);
            SAY("%s\n", before.sa_handler == SIG_IGN ? "ignores" : "does not ignore");
        } else if (!strcmp(word, "exit")) {
            exit(0);
        } else if (!strncmp(word, "thread=", 7)) {
            pthread_t other;
            pthread_create(&other, NULL, thread, word + 7);
            pthread_join(other, NULL);
        } else {
            runtime(word);
        }
    }
    return 5;
}
