/* What hipcc emits into a program with kernels, written in C: the offload bundle in its own
 * section, the wrapper that points to it, registration from a constructor, and host stubs. */
#ifndef RPD_FATBIN_H
#define RPD_FATBIN_H

#include "hip.h"

#include <stdlib.h>

struct fatbin_wrapper {
    uint32_t magic;
    uint32_t version;
    const void *bundle;
    void *reserved;
};

/* Puts a file into the program and names its first byte `symbol`, and the byte behind the last `symbol_end`. */
#define EMBED(section, symbol, file)                                                                                   \
    __asm__(".pushsection " section ",\"a\",@progbits\n"                                                               \
            ".p2align 12\n"                                                                                            \
            ".hidden " #symbol "\n"                                                                                    \
            ".globl " #symbol "\n" #symbol ":\n"                                                                       \
            ".incbin \"" file "\"\n"                                                                                   \
            ".hidden " #symbol "_end\n"                                                                                \
            ".globl " #symbol "_end\n" #symbol "_end:\n"                                                               \
            ".popsection\n");                                                                                          \
    extern const unsigned char symbol[] __attribute__((visibility("hidden")))

/* The name of the host stub of a kernel. */
#define STUB(kernel) __device_stub__##kernel

/* Registers the stub of a kernel under the kernel's name. */
#define REGISTER(kernel, name) register_stub((const void *)STUB(kernel), name)

/* Embeds the bundle, and opens the constructor that registers the kernels. Unregisters at exit as compiled programs do. */
#define EMBED_KERNELS(file)                                                                                            \
    EMBED(".hip_fatbin", embedded_bundle, file);                                                                       \
    static struct fatbin_wrapper fatbin_wrapper                                                                        \
        __attribute__((used, section(".hipFatBinSegment"))) = {0x48495046, 1, embedded_bundle, NULL};                  \
    static void **fatbin_handle;                                                                                       \
    static void unregister_kernels(void) {                                                                             \
        if (fatbin_handle) {                                                                                           \
            __hipUnregisterFatBinary(fatbin_handle);                                                                   \
            fatbin_handle = NULL;                                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
    static void register_stub(const void *stub, const char *name) {                                                    \
        __hipRegisterFunction(fatbin_handle, stub, (char *)name, name, ~0u, NULL, NULL, NULL, NULL, NULL);             \
    }                                                                                                                  \
    static void register_kernels(void);                                                                                \
    __attribute__((constructor)) static void register_fatbin(void) {                                                   \
        fatbin_handle = __hipRegisterFatBinary(&fatbin_wrapper);                                                       \
        register_kernels();                                                                                            \
        atexit(unregister_kernels);                                                                                    \
    }                                                                                                                  \
    static void register_kernels(void)

/* The body of a host stub: takes the configuration that the launch has pushed, and launches. */
#define STUB_BODY(kernel, ...)                                                                                         \
    dim3 grid, block;                                                                                                  \
    size_t shared;                                                                                                     \
    hipStream_t stream;                                                                                                \
    void *args[] = {__VA_ARGS__};                                                                                      \
    if (__hipPopCallConfiguration(&grid, &block, &shared, &stream) == hipSuccess)                                      \
        (void)hipLaunchKernel((const void *)STUB(kernel), grid, block, args, shared, stream)

/* kernel<<<grid, block, shared, stream>>>(...) */
#define LAUNCH(kernel, grid, block, shared, stream, ...)                                                               \
    do {                                                                                                               \
        if (__hipPushCallConfiguration(grid, block, shared, stream) == hipSuccess)                                     \
            STUB(kernel)(__VA_ARGS__);                                                                                 \
    } while (0)

static inline dim3 linear(uint32_t x) {
    dim3 size = {x, 1, 1};
    return size;
}

#endif
