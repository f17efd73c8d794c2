// A CUDA program for tests: it opens the libraries at run time, and needs neither headers nor a toolkit.
//
// cuda [STEP...]: steps are made one after the other; see `steps` below.

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

typedef struct { unsigned x, y, z; } dim3;
typedef void *handle;

#define FUNCTIONS(F) \
    F(cuInit, unsigned, (unsigned)) \
    F(cuDeviceGet, unsigned, (int *, int)) \
    F(cuDevicePrimaryCtxRetain, unsigned, (handle *, int)) \
    F(cuCtxSetCurrent, unsigned, (handle)) \
    F(cuModuleLoadData, unsigned, (handle *, const void *)) \
    F(cuModuleGetFunction, unsigned, (handle *, handle, const char *)) \
    F(cuMemAlloc_v2, unsigned, (uintptr_t *, size_t)) \
    F(cuMemFree_v2, unsigned, (uintptr_t)) \
    F(cuMemcpyHtoDAsync_v2, unsigned, (uintptr_t, const void *, size_t, handle)) \
    F(cuMemcpyDtoHAsync_v2, unsigned, (void *, uintptr_t, size_t, handle)) \
    F(cuMemsetD32Async, unsigned, (uintptr_t, unsigned, size_t, handle)) \
    F(cuStreamCreate, unsigned, (handle *, unsigned)) \
    F(cuStreamSynchronize, unsigned, (handle)) \
    F(cuLaunchKernel, unsigned, (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **)) \
    F(cudaGetDevice, unsigned, (int *)) \
    F(cudaGetLastError, unsigned, (void)) \
    F(cudaMalloc, unsigned, (void **, size_t)) \
    F(cudaFree, unsigned, (void *)) \
    F(cudaMemcpyAsync, unsigned, (void *, const void *, size_t, int, handle)) \
    F(cudaMemsetAsync, unsigned, (void *, int, size_t, handle)) \
    F(cudaStreamCreate, unsigned, (handle *)) \
    F(cudaStreamSynchronize, unsigned, (handle)) \
    F(cudaDeviceSynchronize, unsigned, (void)) \
    F(cudaLaunchKernel, unsigned, (const void *, dim3, dim3, void **, size_t, handle)) \
    F(cudaStreamBeginCapture, unsigned, (handle, int)) \
    F(cudaStreamEndCapture, unsigned, (handle, handle *)) \
    F(cudaGraphInstantiate, unsigned, (handle *, handle, unsigned long long)) \
    F(cudaGraphLaunch, unsigned, (handle, handle)) \
    F(cuDevicePrimaryCtxRelease_v2, unsigned, (int)) \
    F(cudaFromTheFuture, unsigned, (void)) \
    F(rpd_cuda_sim_replay, int, (const char *)) \
    F(rpd_cuda_sim_register, int, (const void *, const char *))

#define DECLARE(name, result, arguments) static result(*name) arguments;
FUNCTIONS(DECLARE)

#define CHECK(call) \
    do { \
        unsigned status_ = (call); \
        if (status_ != 0) { \
            fprintf(stderr, "%s: status %u\n", #call, status_); \
            exit(9); \
        } \
    } while (0)

static char scale_stub, add_stub, spin_stub, empty_stub;

static void open_cuda(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(8);
    }
#define LOOK_UP(name, result, arguments) *(void **)&name = dlsym(library, #name);
    FUNCTIONS(LOOK_UP)
    rpd_cuda_sim_register(&scale_stub, "scale");
    rpd_cuda_sim_register(&add_stub, "_Z3addIfEvPT_PKS0_i");
    rpd_cuda_sim_register(&spin_stub, "spin");
    rpd_cuda_sim_register(&empty_stub, "empty");
}

// --- NVTX, as its headers do it ---

typedef struct { uint16_t version, size; uint32_t category; int32_t color_type; uint32_t color; int32_t payload_type, reserved;
    uint64_t payload; int32_t message_type; const void *message; } attributes;

static void *core[16], *core2[16], *cudart[7];
static void **core_places[16], **core2_places[16], **cudart_places[7];
static uint32_t nvtx_version;

static int module_table(int module, void ****table, unsigned *count) {
    if (module != 1 && module != 4 && module != 5)
        return 0;
    *table = module == 1 ? core_places : module == 4 ? cudart_places : core2_places;
    *count = module == 4 ? 7 : 16;
    return 1;
}

static void set_version(uint32_t version) { nvtx_version = version; }

static const void *export_table(uint32_t id) {
    static struct { size_t size; int (*module)(int, void ****, unsigned *); } callbacks = {16, module_table};
    static struct { size_t size; uint32_t version, reserved; void (*set)(uint32_t); } version = {24, 3, 0, set_version};
    return id == 1 ? (void *)&callbacks : id == 3 ? (void *)&version : 0;
}

static void open_nvtx(void) {
    static int done;
    if (done++)
        return;
    for (int i = 0; i < 16; i++) {
        core_places[i] = &core[i];
        core2_places[i] = &core2[i];
    }
    for (int i = 0; i < 7; i++)
        cudart_places[i] = &cudart[i];
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_LAZY) : 0;
    int (*start)(const void *(*)(uint32_t)) = library ? dlsym(library, "InitializeInjectionNvtx2") : 0;
    if (start && !start(export_table)) {
        memset(core, 0, sizeof core);
        memset(core2, 0, sizeof core2);
    }
}

static void mark(const char *text) { if (core[2]) ((void (*)(const char *))core[2])(text); }
static int push(const char *text) { return core[9] ? ((int (*)(const char *))core[9])(text) : -2; }
static int pop(void) { return core[11] ? ((int (*)(void))core[11])() : -2; }

static void nvtx(void) {
    open_nvtx();
    int first = push("outer"), second = push("inner"), third = pop(), fourth = pop(), fifth = pop();
    if (core[9] && (first != 0 || second != 1 || third != 1 || fourth != 0 || fifth >= 0)) {
        fprintf(stderr, "levels %d %d %d %d %d\n", first, second, third, fourth, fifth);
        exit(7);
    }
    mark("a mark");
    if (!core[5])
        return;
    uint64_t range = ((uint64_t(*)(const char *))core[5])("any thread");
    ((void (*)(uint64_t))core[7])(range);
    void *domain = ((void *(*)(const char *))core2[12])("library");
    void *text = ((void *(*)(void *, const char *))core2[10])(domain, "registered");
    attributes given = {3, 48, 0, 0, 0, 0, 0, 0, 3, text};
    ((int (*)(void *, attributes *))core2[4])(domain, &given);
    static const uint32_t wide[] = {'w', 0xe4, 0x4e2d, 0};
    attributes other = {3, 48, 0, 0, 0, 0, 0, 0, 2, wide};
    ((int (*)(attributes *))core[8])(&other);
    ((int (*)(void *))core2[5])(domain);
    pop();
}

// Payloads, categories and colors of all forms, on marks, pushed and started ranges.
static void payloads(void) {
    open_nvtx();
    if (!core[1])
        return;
    ((void (*)(uint32_t, const char *))core[12])(7, "loading");
    void *domain = ((void *(*)(const char *))core2[12])("library");
    ((void (*)(void *, uint32_t, const char *))core2[8])(domain, 7, "of the library");
    double real = 2.5;
    uint64_t bits;
    memcpy(&bits, &real, 8);
    attributes given[] = {
        {3, 48, 7, 0, 0, 1, 0, UINT64_MAX, 1, "unsigned"},
        {3, 48, 8, 1, 0xff00ff00, 2, 0, UINT64_MAX, 1, "signed"},
        {3, 48, 0, 0, 0, 3, 0, bits, 1, "real"},
    };
    for (int i = 0; i < 3; i++)
        ((void (*)(attributes *))core[1])(&given[i]);
    attributes pushed = {3, 48, 7, 0, 0, 5, 0, 0xffffffff, 1, "pushed"};
    ((int (*)(void *, attributes *))core2[4])(domain, &pushed);
    ((int (*)(void *))core2[5])(domain);
    attributes started = {3, 48, 0, 0, 0, 4, 0, 12, 1, "started"};
    uint64_t range = ((uint64_t(*)(attributes *))core[4])(&started);
    ((void (*)(uint64_t))core[7])(range);
}

// --- steps ---

enum { COUNT = 1 << 12 };

static void runtime(void) {
    size_t bytes = COUNT * sizeof(float);
    float *host = malloc(bytes), *device, *other;
    handle stream;
    int number, count = COUNT;
    for (int i = 0; i < COUNT; i++)
        host[i] = 1;
    CHECK(cudaGetDevice(&number));
    CHECK(cudaMalloc((void **)&device, bytes));
    CHECK(cudaMalloc((void **)&other, bytes));
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMemcpyAsync(device, host, bytes, 1, stream));
    CHECK(cudaMemsetAsync(other, 0, bytes, 0));
    float factor = 3;
    void *scale[] = {&device, &factor, &count}, *add[] = {&device, &device, &count};
    for (int i = 0; i < 3; i++) {
        CHECK(cudaLaunchKernel(&scale_stub, (dim3){COUNT / 256, 1, 1}, (dim3){256, 1, 1}, scale, 1024, stream));
        CHECK(cudaGetLastError());
    }
    CHECK(cudaLaunchKernel(&add_stub, (dim3){COUNT / 256, 1, 1}, (dim3){256, 1, 1}, add, 0, 0));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpyAsync(host, device, bytes, 2, stream));
    CHECK(cudaStreamSynchronize(stream));
    unsigned refused = cudaMemcpyAsync(host, device, bytes, 9, stream);
    CHECK(cudaFree(other));
    CHECK(cudaFree(device));
    printf("runtime: %g, refused with %u\n", host[COUNT - 1], refused);
    free(host);
}

static void driver(void) {
    int number;
    handle context, module, function, stream;
    uintptr_t device;
    size_t bytes = COUNT * sizeof(float);
    float *host = malloc(bytes), factor = 2;
    int count = COUNT;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&number, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, number));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, "code"));
    CHECK(cuModuleGetFunction(&function, module, "scale"));
    CHECK(cuMemAlloc_v2(&device, bytes));
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuMemsetD32Async(device, 0, COUNT, stream));
    void *arguments[] = {&device, &factor, &count};
    for (int i = 0; i < 4; i++)
        CHECK(cuLaunchKernel(function, COUNT / 256, 1, 1, 256, 1, 1, 0, stream, arguments, 0));
    CHECK(cuMemcpyDtoHAsync_v2(host, device, bytes, stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuMemFree_v2(device));
    printf("driver: %g\n", host[0]);
    free(host);
}

static void launches(long count) {
    for (long i = 0; i < count; i++)
        CHECK(cudaLaunchKernel(&empty_stub, (dim3){1, 1, 1}, (dim3){32, 1, 1}, 0, 0, 0));
    CHECK(cudaDeviceSynchronize());
}

static void graph(int nodes) {
    handle stream, graph, exec;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamBeginCapture(stream, 0));
    for (int i = 0; i < nodes; i++)
        CHECK(cudaLaunchKernel(&empty_stub, (dim3){1, 1, 1}, (dim3){32, 1, 1}, 0, 0, stream));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    // The recording of whole graphs begins a moment after that.
    usleep(200000);
    for (int i = 0; i < 2; i++)
        CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
}

static void spin(void) {
    uint64_t microseconds = 20000;
    void *arguments[] = {&microseconds};
    CHECK(cudaLaunchKernel(&spin_stub, (dim3){1, 1, 1}, (dim3){32, 1, 1}, arguments, 0, 0));
}

// A stream with a name, and work on it.
static void named(void) {
    handle stream;
    CHECK(cudaStreamCreate(&stream));
    open_nvtx();
    if (cudart[3])
        ((void (*)(handle, const char *))cudart[3])(stream, "the copies");
    CHECK(cudaLaunchKernel(&empty_stub, (dim3){1, 1, 1}, (dim3){32, 1, 1}, 0, 0, stream));
    CHECK(cudaStreamSynchronize(stream));
}

static void *thread(void *argument) {
    (void)argument;
    launches(100);
    return 0;
}

static void threads(void) {
    pthread_t ids[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&ids[i], 0, thread, 0);
    for (int i = 0; i < 4; i++)
        pthread_join(ids[i], 0);
}

// The child's CUDA does not work, and it ends by exit handlers all the same.
static void child(void) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        void *place;
        unsigned status = cudaMalloc(&place, 64);
        printf("child: status %u\n", status);
        exit(status == 0);
    }
    int status;
    waitpid(pid, &status, 0);
    if (status != 0)
        exit(6);
}

int main(int count, char **words) {
    // A process that forks first has CUDA in both.
    if (count > 1 && !strcmp(words[1], "fork-first")) {
        fflush(stdout);
        pid_t pid = fork();
        if (pid)
            waitpid(pid, 0, 0);
    }
    int uses_cuda = 0;
    for (int i = 1; i < count; i++)
        uses_cuda |= strcmp(words[i], "nvtx") != 0 && strcmp(words[i], "payloads") != 0;
    if (uses_cuda)
        open_cuda();
    for (int i = 1; i < count; i++) {
        const char *step = words[i];
        if (!strcmp(step, "runtime")) runtime();
        else if (!strcmp(step, "driver")) driver();
        else if (!strcmp(step, "nvtx")) nvtx();
        else if (!strcmp(step, "payloads")) payloads();
        else if (!strcmp(step, "named")) named();
        else if (!strcmp(step, "release")) CHECK(cuDevicePrimaryCtxRelease_v2(0));
        else if (!strcmp(step, "threads")) threads();
        else if (!strcmp(step, "child")) child();
        else if (!strcmp(step, "future")) cudaFromTheFuture();
        else if (!strcmp(step, "spin")) spin();
        else if (!strcmp(step, "fork-first")) launches(10);
        else if (!strcmp(step, "_exit")) { fflush(stdout); _exit(5); }
        else if (!strcmp(step, "abort")) abort();
        else if (!strcmp(step, "kill-later")) { fflush(stdout); sleep(1); kill(getpid(), SIGKILL); }
        else if (!strncmp(step, "graph=", 6)) graph(atoi(step + 6));
        else if (!strncmp(step, "replay=", 7)) { CHECK(cuInit(0)); CHECK(rpd_cuda_sim_replay(step + 7)); }
        else if (!strncmp(step, "launches=", 9)) launches(atol(step + 9));
        else { fprintf(stderr, "no step %s\n", step); return 2; }
    }
    return 0;
}
