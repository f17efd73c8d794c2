/* capture-images MODE: arrays, and kernels that read and write images. Each checks its results.
 *
 * arrays     every kind of copy to and from arrays of one, two and three dimensions
 * textures   textures of arrays and of linear memory
 * reference  a texture whose object is in a variable of the device
 * references texture references of a module, and one that is registered, to which memory and arrays are bound
 * surfaces   a surface that a kernel writes
 * atomics    a surface to whose elements a kernel adds */
#include "fatbin.h"
#include "workload.h"

#include <string.h>

enum { WIDTH = 24, HEIGHT = 10, DEPTH = 3, COUNT = WIDTH * HEIGHT, BLOCK = 64, BLOCKS = (COUNT + BLOCK - 1) / BLOCK };
typedef float texel[4];
enum { ROW = WIDTH * sizeof(texel) };

EMBED(".rodata", image_kernels, "images-gfx90a.co");

static const hipChannelFormatDesc four_floats = {32, 32, 32, 32, hipChannelFormatKindFloat};
static texel in[DEPTH * COUNT], out[DEPTH * COUNT];

static void fill(float seed) {
    for (int i = 0; i < DEPTH * COUNT; ++i)
        for (int part = 0; part < 4; ++part)
            in[i][part] = seed + (float)(i * 4 + part);
    memset(out, 0, sizeof out);
}

static void check(const char *what, const void *found, const void *wanted, size_t size) {
    if (memcmp(found, wanted, size))
        FAIL("%s: wrong content", what);
}

static void run_arrays(void) {
    hipArray_t array, deep;
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    HIP(hipMallocArray(&array, &four_floats, WIDTH, HEIGHT, 0));

    fill(1);
    HIP(hipMemcpy2DToArray(array, 0, 0, in, ROW, ROW, HEIGHT, hipMemcpyHostToDevice));
    HIP(hipMemcpy2DFromArrayAsync(out, ROW, array, sizeof(texel), 1, ROW / 2, HEIGHT - 1, hipMemcpyDeviceToHost, stream));
    HIP(hipStreamSynchronize(stream));
    for (int row = 0; row < HEIGHT - 1; ++row)
        check("rows", out[row * WIDTH], in[(row + 1) * WIDTH + 1], ROW / 2);

    fill(2);
    HIP(hipMemcpyToArray(array, 0, 0, in, sizeof(texel) * COUNT, hipMemcpyHostToDevice));
    HIP(hipMemcpyFromArray(out, array, 0, 0, sizeof(texel) * COUNT, hipMemcpyDeviceToHost));
    check("all", out, in, sizeof(texel) * COUNT);

    fill(3);
    HIP(hipMemcpyHtoA(array, 0, in, ROW));
    HIP(hipMemcpyAtoH(out, array, 0, ROW));
    check("line", out, in, ROW);

    fill(4);
    const hip_Memcpy2D up = {.srcMemoryType = hipMemoryTypeHost,
                             .srcHost = in,
                             .srcPitch = ROW,
                             .dstMemoryType = hipMemoryTypeArray,
                             .dstArray = array,
                             .WidthInBytes = ROW,
                             .Height = HEIGHT};
    const hip_Memcpy2D down = {.srcMemoryType = hipMemoryTypeArray,
                               .srcArray = array,
                               .dstMemoryType = hipMemoryTypeHost,
                               .dstHost = out,
                               .dstPitch = ROW,
                               .WidthInBytes = ROW,
                               .Height = HEIGHT};
    HIP(hipMemcpyParam2D(&up));
    HIP(hipMemcpyParam2D(&down));
    check("rectangle", out, in, sizeof(texel) * COUNT);

    fill(5);
    const hipExtent extent = {WIDTH, HEIGHT, DEPTH};
    HIP(hipMalloc3DArray(&deep, &four_floats, extent, 0));
    const hipMemcpy3DParms to = {
        .srcPtr = {in, ROW, WIDTH, HEIGHT}, .dstArray = deep, .extent = extent, .kind = hipMemcpyHostToDevice};
    const hipMemcpy3DParms from = {
        .srcArray = deep, .dstPtr = {out, ROW, WIDTH, HEIGHT}, .extent = extent, .kind = hipMemcpyDeviceToHost};
    HIP(hipMemcpy3D(&to));
    HIP(hipMemcpy3D(&from));
    check("box", out, in, sizeof in);

    fill(6);
    const HIP_MEMCPY3D up_all = {.srcMemoryType = hipMemoryTypeHost,
                                 .srcHost = in,
                                 .srcPitch = ROW,
                                 .srcHeight = HEIGHT,
                                 .dstMemoryType = hipMemoryTypeArray,
                                 .dstArray = deep,
                                 .WidthInBytes = ROW,
                                 .Height = HEIGHT,
                                 .Depth = DEPTH};
    /* The upper rows of the last slices. */
    const HIP_MEMCPY3D down_part = {.srcZ = 1,
                                    .srcMemoryType = hipMemoryTypeArray,
                                    .srcArray = deep,
                                    .dstY = 1,
                                    .dstMemoryType = hipMemoryTypeHost,
                                    .dstHost = out,
                                    .dstPitch = ROW,
                                    .dstHeight = HEIGHT,
                                    .WidthInBytes = ROW,
                                    .Height = HEIGHT - 1,
                                    .Depth = DEPTH - 1};
    HIP(hipDrvMemcpy3D(&up_all));
    HIP(hipDrvMemcpy3DAsync(&down_part, stream));
    HIP(hipStreamSynchronize(stream));
    for (int slice = 0; slice < DEPTH - 1; ++slice)
        check("driver's box", out[slice * COUNT + WIDTH], in[(slice + 1) * COUNT], ROW * (HEIGHT - 1));
    HIP(hipDrvMemcpy2DUnaligned(&up));
    HIP(hipDrvMemcpy2DUnaligned(&down));
    check("driver's rectangle", out, in, sizeof(texel) * COUNT);

    HIP(hipFreeArray(deep));
    HIP(hipFreeArray(array));
    HIP(hipStreamDestroy(stream));
}

/* Launches a kernel with the bits of whole coordinates, or those of the centres of texels, of every texel of a plane. A kernel
 * that gets no object has the other arguments alone. */
static void launch(hipModule_t module, const char *name, void *object, texel *results, int centres) {
    static texel coordinates[COUNT];
    for (int i = 0; i < COUNT; ++i) {
        const int at[2] = {i % WIDTH, i / WIDTH};
        for (int axis = 0; axis < 2; ++axis) {
            const float centre = (float)at[axis] + 0.5f;
            memcpy(&coordinates[i][axis], centres ? (const void *)&centre : (const void *)&at[axis], sizeof(float));
        }
    }
    texel *places;
    unsigned count = COUNT;
    hipFunction_t function;
    HIP(hipMalloc((void **)&places, sizeof coordinates));
    HIP(hipMemcpy(places, coordinates, sizeof coordinates, hipMemcpyHostToDevice));
    HIP(hipModuleGetFunction(&function, module, name));
    void *arguments[] = {&object, &results, &places, &count};
    HIP(hipModuleLaunchKernel(function, BLOCKS, 1, 1, BLOCK, 1, 1, 0, NULL, arguments + !object, NULL));
    HIP(hipFree(places));
}

static void run_textures(hipModule_t module) {
    hipArray_t array;
    texel *device, *linear;
    hipTextureObject_t texture;
    const hipTextureDesc points = {.addressMode = {1, 1, 1}};
    HIP(hipMalloc((void **)&device, sizeof(texel) * COUNT));
    HIP(hipMallocArray(&array, &four_floats, WIDTH, HEIGHT, 0));
    fill(6);
    HIP(hipMemcpy2DToArray(array, 0, 0, in, ROW, ROW, HEIGHT, hipMemcpyHostToDevice));
    const hipResourceDesc of_array = {.resType = hipResourceTypeArray, .res.array = array};
    HIP(hipCreateTextureObject(&texture, &of_array, &points, NULL));
    launch(module, "sample_2d", texture, device, 1);
    HIP(hipMemcpy(out, device, sizeof(texel) * COUNT, hipMemcpyDeviceToHost));
    check("texture of an array", out, in, sizeof(texel) * COUNT);
    HIP(hipDestroyTextureObject(texture));
    HIP(hipFreeArray(array));

    fill(7);
    HIP(hipMalloc((void **)&linear, sizeof(texel) * COUNT));
    HIP(hipMemcpy(linear, in, sizeof(texel) * COUNT, hipMemcpyHostToDevice));
    const hipResourceDesc of_memory = {
        .resType = hipResourceTypeLinear,
        .res.linear = {.devPtr = linear, .desc = four_floats, .sizeInBytes = sizeof(texel) * COUNT}};
    HIP(hipCreateTextureObject(&texture, &of_memory, &points, NULL));
    launch(module, "fetch", texture, device, 0);
    HIP(hipMemcpy(out, device, sizeof(texel) * COUNT, hipMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; ++i)
        check("texture of memory", out[i], in[i % WIDTH], sizeof(texel));
    HIP(hipDestroyTextureObject(texture));
    HIP(hipFree(linear));
    HIP(hipFree(device));
}

static void run_reference(hipModule_t module) {
    struct {
        int description[18];
        hipTextureObject_t object;
        int format[2];
    } reference = {{0}, NULL, {0}};
    hipArray_t array;
    texel *device;
    void *variable;
    size_t size;
    const hipTextureDesc points = {.addressMode = {1, 1, 1}};
    fill(9);
    HIP(hipMalloc((void **)&device, sizeof(texel) * COUNT));
    HIP(hipMallocArray(&array, &four_floats, WIDTH, HEIGHT, 0));
    HIP(hipMemcpy2DToArray(array, 0, 0, in, ROW, ROW, HEIGHT, hipMemcpyHostToDevice));
    const hipResourceDesc of_array = {.resType = hipResourceTypeArray, .res.array = array};
    HIP(hipCreateTextureObject(&reference.object, &of_array, &points, NULL));
    HIP(hipModuleGetGlobal(&variable, &size, module, "reference"));
    HIP(hipMemcpyHtoD(variable, &reference, sizeof reference));
    launch(module, "sample_reference_2d", NULL, device, 1);
    HIP(hipMemcpy(out, device, sizeof(texel) * COUNT, hipMemcpyDeviceToHost));
    check("texture in a variable", out, in, sizeof(texel) * COUNT);
    HIP(hipDestroyTextureObject(reference.object));
    HIP(hipFreeArray(array));
    HIP(hipFree(device));
}

/* A texture reference that is registered, as compiled programs do. */
static textureReference registered_reference;

/* Registers the code as an offload bundle, which has it on a page of its own. */
static void **register_reference(void) {
    enum { PAGE = 4096 };
    extern const unsigned char image_kernels_end[] __attribute__((visibility("hidden")));
    static const char magic[] = "__CLANG_OFFLOAD_BUNDLE__", triple[] = "hipv4-amdgcn-amd-amdhsa--gfx90a";
    static struct fatbin_wrapper wrapper = {0x48495046, 1, NULL, NULL};
    const uint64_t size = (uint64_t)(image_kernels_end - image_kernels), head[] = {1, PAGE, size, sizeof triple - 1};
    char *bundle = aligned_alloc(PAGE, (size + 2 * PAGE) / PAGE * PAGE);
    if (!bundle)
        FAIL("no memory for %s", "a bundle");
    memcpy(bundle, magic, sizeof magic - 1);
    memcpy(bundle + sizeof magic - 1, head, sizeof head);
    memcpy(bundle + sizeof magic - 1 + sizeof head, triple, sizeof triple);
    memcpy(bundle + PAGE, image_kernels, size);
    wrapper.bundle = bundle;
    void **handle = __hipRegisterFatBinary(&wrapper);
    __hipRegisterTexture(handle, &registered_reference, (char *)"reference", (char *)"reference", 2, 0, 0);
    return handle;
}

static const char *const by_reference = "sample_reference_2d";
static void sample_registered(texel *results, const texel *places, unsigned count) {
    void *arguments[] = {&results, &places, &count};
    HIP(hipLaunchKernel((const void *)sample_registered, linear(BLOCKS), linear(BLOCK), arguments, 0, NULL));
}

static void run_references(hipModule_t module) {
    hipArray_t array;
    texel *device, *linear_memory, *places;
    textureReference *reference;
    size_t offset;
    int mode;
    const HIP_ARRAY_DESCRIPTOR rows = {WIDTH, HEIGHT, HIP_AD_FORMAT_FLOAT, 4};
    static texel coordinates[COUNT];
    HIP(hipMalloc((void **)&device, sizeof(texel) * COUNT));
    HIP(hipMalloc((void **)&places, sizeof coordinates));
    /* Rows of memory begin at multiples of 256 bytes. */
    const size_t pitch = 512;
    HIP(hipMalloc((void **)&linear_memory, pitch * HEIGHT));
    HIP(hipMallocArray(&array, &four_floats, WIDTH, HEIGHT, 0));
    for (int i = 0; i < COUNT; ++i) {
        coordinates[i][0] = (float)(i % WIDTH) + 0.5f;
        coordinates[i][1] = (float)(i / WIDTH) + 0.5f;
    }
    HIP(hipMemcpy(places, coordinates, sizeof coordinates, hipMemcpyHostToDevice));

    HIP(hipModuleGetTexRef(&reference, module, "reference"));
    HIP(hipTexRefSetFormat(reference, HIP_AD_FORMAT_FLOAT, 4));
    HIP(hipTexRefSetAddressMode(reference, 0, 1));
    HIP(hipTexRefSetAddressMode(reference, 1, 1));
    HIP(hipTexRefGetAddressMode(&mode, reference, 1));
    fill(10);
    HIP(hipMemcpy2D(linear_memory, pitch, in, ROW, ROW, HEIGHT, hipMemcpyHostToDevice));
    HIP(hipTexRefSetAddress2D(reference, &rows, linear_memory, pitch));
    launch(module, by_reference, NULL, device, 1);
    HIP(hipMemcpy(out, device, sizeof(texel) * COUNT, hipMemcpyDeviceToHost));
    check("rows of memory", out, in, sizeof(texel) * COUNT);

    fill(11);
    HIP(hipMemcpy2DToArray(array, 0, 0, in, ROW, ROW, HEIGHT, hipMemcpyHostToDevice));
    HIP(hipTexRefSetArray(reference, array, HIP_TRSA_OVERRIDE_FORMAT));
    launch(module, by_reference, NULL, device, 1);
    HIP(hipMemcpy(out, device, sizeof(texel) * COUNT, hipMemcpyDeviceToHost));
    check("array", out, in, sizeof(texel) * COUNT);

    fill(12);
    HIP(hipMemcpy(linear_memory, in, ROW, hipMemcpyHostToDevice));
    HIP(hipTexRefSetAddress(&offset, reference, linear_memory, ROW));
    launch(module, "fetch_reference", NULL, device, 0);
    HIP(hipMemcpy(out, device, ROW, hipMemcpyDeviceToHost));
    check("memory", out, in, ROW);
    HIP(hipUnbindTexture(reference));

    void **handle = register_reference();
    __hipRegisterFunction(handle, (const void *)sample_registered, (char *)by_reference, by_reference, ~0u, NULL, NULL, NULL,
                          NULL, NULL);
    registered_reference = (textureReference){.addressMode = {1, 1, 1}};
    for (int to_array = 0; to_array < 2; ++to_array) {
        fill(13 + (float)to_array);
        if (to_array) {
            HIP(hipMemcpy2DToArray(array, 0, 0, in, ROW, ROW, HEIGHT, hipMemcpyHostToDevice));
            HIP(hipBindTextureToArray(&registered_reference, array, &four_floats));
        } else {
            HIP(hipMemcpy2D(linear_memory, pitch, in, ROW, ROW, HEIGHT, hipMemcpyHostToDevice));
            HIP(hipBindTexture2D(&offset, &registered_reference, linear_memory, &four_floats, WIDTH, HEIGHT, pitch));
        }
        sample_registered(device, places, COUNT);
        HIP(hipMemcpy(out, device, sizeof(texel) * COUNT, hipMemcpyDeviceToHost));
        check("registered", out, in, sizeof(texel) * COUNT);
        HIP(hipUnbindTexture(&registered_reference));
    }
    HIP(hipBindTexture(&offset, &registered_reference, linear_memory, &four_floats, ROW));
    HIP(hipUnbindTexture(&registered_reference));
    HIP(hipFreeArray(array));
    HIP(hipFree(linear_memory));
    HIP(hipFree(places));
    HIP(hipFree(device));
    __hipUnregisterFatBinary(handle);
}

static void run_surfaces(hipModule_t module) {
    hipArray_t array;
    hipSurfaceObject_t surface;
    texel *device;
    fill(8);
    HIP(hipMallocArray(&array, &four_floats, WIDTH, HEIGHT, hipArraySurfaceLoadStore));
    HIP(hipMalloc((void **)&device, sizeof(texel) * COUNT));
    HIP(hipMemcpy(device, in, sizeof(texel) * COUNT, hipMemcpyHostToDevice));
    const hipResourceDesc of_array = {.resType = hipResourceTypeArray, .res.array = array};
    HIP(hipCreateSurfaceObject(&surface, &of_array));
    launch(module, "store_2d", surface, device, 0);
    HIP(hipMemcpyFromArray(out, array, 0, 0, sizeof(texel) * COUNT, hipMemcpyDeviceToHost));
    check("surface", out, in, sizeof(texel) * COUNT);
    HIP(hipDestroySurfaceObject(surface));
    HIP(hipFreeArray(array));
    HIP(hipFree(device));
}

static void run_atomics(hipModule_t module) {
    static uint32_t numbers[COUNT], sums[COUNT];
    const hipChannelFormatDesc integer = {.x = 32, .f = hipChannelFormatKindUnsigned};
    hipArray_t array;
    hipSurfaceObject_t surface;
    texel *device;
    for (uint32_t i = 0; i < COUNT; ++i) {
        numbers[i] = i;
        memcpy(&in[i][0], &numbers[i], sizeof numbers[i]);
    }
    HIP(hipMallocArray(&array, &integer, WIDTH, HEIGHT, hipArraySurfaceLoadStore));
    HIP(hipMemcpy2DToArray(array, 0, 0, numbers, WIDTH * 4, WIDTH * 4, HEIGHT, hipMemcpyHostToDevice));
    HIP(hipMalloc((void **)&device, sizeof(texel) * COUNT));
    const hipResourceDesc of_array = {.resType = hipResourceTypeArray, .res.array = array};
    HIP(hipCreateSurfaceObject(&surface, &of_array));
    for (int round = 0; round < 3; ++round) {
        HIP(hipMemcpy(device, in, sizeof(texel) * COUNT, hipMemcpyHostToDevice));
        launch(module, "atomic_add_2d", surface, device, 0);
    }
    HIP(hipMemcpyFromArray(sums, array, 0, 0, sizeof sums, hipMemcpyDeviceToHost));
    for (uint32_t i = 0; i < COUNT; ++i)
        if (sums[i] != 4 * i)
            FAIL("element %u is %u", i, sums[i]);
    HIP(hipDestroySurfaceObject(surface));
    HIP(hipFreeArray(array));
    HIP(hipFree(device));
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "arrays";
    if (!strcmp(mode, "arrays")) {
        run_arrays();
    } else {
        hipModule_t module;
        HIP(hipModuleLoadData(&module, image_kernels));
        if (!strcmp(mode, "textures"))
            run_textures(module);
        else if (!strcmp(mode, "reference"))
            run_reference(module);
        else if (!strcmp(mode, "references"))
            run_references(module);
        else if (!strcmp(mode, "surfaces"))
            run_surfaces(module);
        else if (!strcmp(mode, "atomics"))
            run_atomics(module);
        else
            FAIL("no mode %s", mode);
        HIP(hipModuleUnload(module));
    }
    puts("ok");
    return 0;
}
