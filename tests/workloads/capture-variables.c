/* capture-variables MODE: variables of the device that are hard to capture. Each checks its results.
 *
 * managed    a managed variable, which the host writes between launches
 * list       a list in managed memory, whose links lie in several allocations
 * twins      two device variables with one name, in two code objects
 * library    a kernel of the library interface
 * module     a managed variable of a module that the program loads first of all */
#include "fatbin.h"
#include "workload.h"

#include <dlfcn.h>
#include <string.h>

enum { COUNT = 64, LINKS = 50 };

struct link {
    struct link *next;
    uint32_t value;
};

static void STUB(managed)(uint32_t *out, uint32_t count) { STUB_BODY(managed, &out, &count); }
static void STUB(list)(uint32_t *out, const struct link *first) { STUB_BODY(list, &out, &first); }
static void STUB(counting)(uint32_t *out) { STUB_BODY(counting, &out); }
static void STUB(other_counting)(uint32_t *out) { STUB_BODY(other_counting, &out); }

static uint32_t launches, other_launches;
static uint32_t initial[COUNT] = {5, 6, 7};
static uint32_t *managed_values;
/* Another code object with the same kernels and variables. */
static struct fatbin_wrapper other_wrapper;

EMBED_KERNELS("varying.hipfb") {
    REGISTER(managed, "managed_kernel");
    REGISTER(list, "list_kernel");
    REGISTER(counting, "counting_kernel");
    __hipRegisterVar(fatbin_handle, &launches, (char *)"launches", (char *)"launches", 0, sizeof launches, 0, 0);
    __hipRegisterManagedVar(fatbin_handle, (void **)&managed_values, initial, "managed_values", sizeof initial, 4);
    other_wrapper = fatbin_wrapper;
    void **other = __hipRegisterFatBinary(&other_wrapper);
    __hipRegisterFunction(other, (const void *)STUB(other_counting), (char *)"counting_kernel", "counting_kernel", ~0u, NULL,
                          NULL, NULL, NULL, NULL);
    __hipRegisterVar(other, &other_launches, (char *)"launches", (char *)"launches", 0, sizeof other_launches, 0, 0);
}

static void check(int ok, const char *what, long index) {
    if (!ok)
        FAIL("%s: element %ld is wrong", what, index);
}

static void run_managed(uint32_t *device) {
    uint32_t out[COUNT];
    for (uint32_t round = 0; round < 3; ++round) {
        managed_values[1] += round;
        const uint32_t expected = managed_values[1];
        LAUNCH(managed, linear(1), linear(COUNT), 0, NULL, device, COUNT);
        HIP(hipDeviceSynchronize());
        HIP(hipMemcpy(out, device, sizeof out, hipMemcpyDeviceToHost));
        check(out[0] == 5 + round && out[1] == expected && managed_values[1] == expected + 1, "managed", (long)round);
    }
}

static void run_list(uint32_t *device) {
    struct link *links[2];
    uint32_t out;
    for (int i = 0; i < 2; ++i)
        HIP(hipMallocManaged((void **)&links[i], LINKS * sizeof(struct link), 1));
    for (uint32_t round = 0; round < 3; ++round) {
        uint32_t expected = 0;
        for (uint32_t i = 0; i < 2 * LINKS; ++i) {
            const uint32_t next = i + 1;
            links[i & 1][i / 2].value = i + round;
            links[i & 1][i / 2].next = next < 2 * LINKS ? &links[next & 1][next / 2] : NULL;
            expected = expected * 3 + i + round;
        }
        LAUNCH(list, linear(1), linear(COUNT), 0, NULL, device, links[0]);
        HIP(hipMemcpy(&out, device, sizeof out, hipMemcpyDeviceToHost));
        check(out == expected, "list", (long)round);
        /* Only what is not pointed to by an argument. */
        links[1][3].value = 1000 + round;
        LAUNCH(list, linear(1), linear(COUNT), 0, NULL, device, links[0]);
        HIP(hipMemcpy(&out, device, sizeof out, hipMemcpyDeviceToHost));
        check(out != expected, "list", (long)round);
    }
    for (int i = 0; i < 2; ++i)
        HIP(hipFree(links[i]));
}

static void run_twins(uint32_t *device) {
    uint32_t out[2], value = 10;
    HIP(hipMemcpyToSymbol(&launches, &value, sizeof value, 0, hipMemcpyHostToDevice));
    value = 100;
    HIP(hipMemcpyToSymbol(&other_launches, &value, sizeof value, 0, hipMemcpyHostToDevice));
    LAUNCH(counting, linear(1), linear(COUNT), 0, NULL, device);
    LAUNCH(other_counting, linear(1), linear(COUNT), 0, NULL, device + 1);
    HIP(hipMemcpy(out, device, sizeof out, hipMemcpyDeviceToHost));
    check(out[0] == 11 && out[1] == 101, "twins", 0);
    HIP(hipMemcpyFromSymbol(&value, &other_launches, sizeof value, 0, hipMemcpyDeviceToHost));
    check(value == 101, "twins", 1);
}

static void run_library(uint32_t *device) {
    typedef hipError_t (*load)(void **, const void *, void *, void *, unsigned, void *, void *, unsigned);
    typedef hipError_t (*find)(void **, void *, const char *);
    typedef hipError_t (*function)(hipFunction_t *, void *);
    const load load_data = (load)dlsym(RTLD_DEFAULT, "hipLibraryLoadData");
    const find get_kernel = (find)dlsym(RTLD_DEFAULT, "hipLibraryGetKernel");
    const function get_function = (function)dlsym(RTLD_DEFAULT, "hipKernelGetFunction");
    void *library, *kernel, *arguments[] = {&device};
    hipFunction_t found;
    uint32_t out = 0;
    if (!load_data || !get_kernel || !get_function)
        FAIL("no function %s", "hipLibraryLoadData");
    HIP(load_data(&library, embedded_bundle, NULL, NULL, 0, NULL, NULL, 0));
    HIP(get_kernel(&kernel, library, "counting_kernel"));
    HIP(get_function(&found, kernel));
    for (int i = 0; i < 3; ++i)
        HIP(hipModuleLaunchKernel(found, 1, 1, 1, COUNT, 1, 1, 0, NULL, arguments, NULL));
    HIP(hipMemcpy(&out, device, sizeof out, hipMemcpyDeviceToHost));
    check(out == 3, "library", 0);
}

static void run_module(void) {
    hipModule_t module;
    hipFunction_t kernel;
    uint32_t *values, *device, out[COUNT], count = COUNT;
    size_t size = 0;
    HIP(hipModuleLoadData(&module, embedded_bundle));
    HIP(hipModuleGetFunction(&kernel, module, "managed_kernel"));
    HIP(hipModuleGetGlobal((void **)&values, &size, module, "managed_values"));
    check(size == sizeof initial, "module", (long)size);
    HIP(hipMemcpy(values, initial, sizeof initial, hipMemcpyHostToDevice));
    HIP(hipMalloc((void **)&device, sizeof out));
    void *arguments[] = {&device, &count};
    HIP(hipModuleLaunchKernel(kernel, 1, 1, 1, COUNT, 1, 1, 0, NULL, arguments, NULL));
    HIP(hipMemcpy(out, device, sizeof out, hipMemcpyDeviceToHost));
    check(out[0] == 5 && out[1] == 6, "module", 0);
    HIP(hipMemcpy(out, values, sizeof out, hipMemcpyDeviceToHost));
    check(out[1] == 7, "module", 1);
    HIP(hipFree(device));
    HIP(hipModuleUnload(module));
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    uint32_t *device;
    if (!strcmp(mode, "module")) {
        run_module();
        puts("ok");
        return 0;
    }
    HIP(hipMalloc((void **)&device, COUNT * sizeof *device));
    if (!strcmp(mode, "managed"))
        run_managed(device);
    else if (!strcmp(mode, "list"))
        run_list(device);
    else if (!strcmp(mode, "twins"))
        run_twins(device);
    else if (!strcmp(mode, "library"))
        run_library(device);
    else
        FAIL("no mode %s", mode);
    HIP(hipFree(device));
    puts("ok");
    return 0;
}
