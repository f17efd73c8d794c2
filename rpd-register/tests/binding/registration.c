/* A registration library of ROCm as its protocol describes it: runtimes hand their tables over, and it looks for an SDK
 * to pass them to. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma weak rocprofiler_configure
#pragma weak rocprofiler_set_api_table
extern void* rocprofiler_configure(uint32_t, const char*, uint32_t, void*);
extern int rocprofiler_set_api_table(const char*, uint64_t, uint64_t, void**, uint64_t);
typedef int (*set_api_table_t)(const char*, uint64_t, uint64_t, void**, uint64_t);

enum { SUCCESS, NO_TOOLS, DEADLOCK, BAD_LENGTH, UNSUPPORTED, INVALID_ADDRESS, SDK_ERROR, EXCESS };

static const char* const known[] = {"hsa", "hip", "roctx", "hip_compiler", "rccl", "rocdecode", "rocjpeg"};
static uint64_t instances[7];
static struct { const char* name; uint32_t version; uint64_t instance; void** tables; uint64_t count; int passed; } stored[56];
static int stored_count;
static int active;

static int given(const char* name) { return getenv(name) && *getenv(name); }

static set_api_table_t sdk(void) {
    if (!rocprofiler_configure && !dlsym(RTLD_DEFAULT, "rocprofiler_configure") &&
        !given("ROCPROFILER_REGISTER_FORCE_LOAD") && !given("ROCPROFILER_REGISTER_LIBRARY") && !given("ROCP_TOOL_LIBRARIES"))
        return NULL;
    if (rocprofiler_set_api_table) return rocprofiler_set_api_table;
    set_api_table_t found = (set_api_table_t) dlsym(RTLD_DEFAULT, "rocprofiler_set_api_table");
    if (found) return found;
    const char* name = given("ROCPROFILER_REGISTER_LIBRARY") ? getenv("ROCPROFILER_REGISTER_LIBRARY") : "librocprofiler-sdk.so";
    void* handle = dlopen(name, RTLD_NOLOAD | RTLD_LAZY);
    if (!handle) handle = dlopen(name, RTLD_GLOBAL | RTLD_LAZY);
    if (handle) found = (set_api_table_t) dlsym(handle, "rocprofiler_set_api_table");
    if (!found) abort();
    return found;
}

int rocprofiler_register_library_api_table(const char* name, uint32_t (*import)(void), uint32_t version, void** tables,
                                           uint64_t count, uint64_t* id) {
    (void) import;
    if (count < 1) return BAD_LENGTH;
    if (++active > 1) return --active, DEADLOCK;
    int result = UNSUPPORTED;
    for (int i = 0; i < 7; ++i) {
        if (strcmp(known[i], name)) continue;
        if (instances[i] >= 8) { result = EXCESS; break; }
        uint64_t instance = instances[i]++;
        *id = 8 * (uint64_t) i + instance;
        int at = stored_count++;
        stored[at].name = name, stored[at].version = version, stored[at].instance = instance;
        stored[at].tables = tables, stored[at].count = count;
        set_api_table_t set = sdk();
        result = !set ? NO_TOOLS : set(name, version, instance, tables, count) ? SDK_ERROR : SUCCESS;
        stored[at].passed = result == SUCCESS;
        break;
    }
    --active;
    return result;
}

int rocprofiler_register_invoke_all_registrations(void) {
    if (++active > 1) return --active, DEADLOCK;
    for (int i = 0; i < stored_count; ++i) {
        set_api_table_t set = sdk();
        if (set && set(stored[i].name, stored[i].version, stored[i].instance, stored[i].tables, stored[i].count))
            return --active, SDK_ERROR;
    }
    --active;
    return SUCCESS;
}
