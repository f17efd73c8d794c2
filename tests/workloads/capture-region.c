/* capture-region: three steps that go on where the one before has ended, with what was made before the first: streams, events,
 * modules and their variables, pinned memory and that of a pool, an array, a surface and a texture. Each step is a ROCTx range
 * `step`; recording is resumed for the second alone, and the third is the range `last part #1` as well. */
#include "fatbin.h"
#include "roctx.h"
#include "workload.h"

#include <string.h>

enum { WIDTH = 16, HEIGHT = 8, COUNT = WIDTH * HEIGHT, HALF = COUNT / 2, BLOCK = 64, STEPS = 3 };
typedef float texel[4];
enum { ROW = WIDTH * sizeof(texel), TEXELS = COUNT * sizeof(texel), NUMBERS = COUNT * sizeof(uint32_t) };

EMBED(".rodata", image_kernels, "images-gfx90a.co");
EMBED(".rodata", module_kernels, "module.hipfb");

static void STUB(strided)(float *data, uint32_t stride, uint32_t count) { STUB_BODY(strided, &data, &stride, &count); }

EMBED_KERNELS("capture.hipfb") { REGISTER(strided, "strided_kernel"); }

/* Also added where weights are: their first is set by the program. */
static const uint32_t weights[8] = {7, 1, 4, 1, 5, 9, 2, 6};

static struct {
    hipStream_t draw, read;
    hipEvent_t drawn, done;
    hipFunction_t scale, weigh, store, sample;
    hipArray_t array;
    hipSurfaceObject_t surface;
    hipTextureObject_t texture;
    texel *texels, *sampled, *places, *centres, *image;
    uint32_t *numbers, *scaled, *results;
} s;

/* What the image, the texels and the numbers are to be. */
static texel image[COUNT], texels[COUNT];
static uint32_t numbers[COUNT];

static void make(void) {
    hipModule_t images, module;
    void *variable;
    size_t size;
    static texel places[COUNT], centres[COUNT];
    const hipChannelFormatDesc four_floats = {32, 32, 32, 32, hipChannelFormatKindFloat};
    const hipTextureDesc points = {.addressMode = {1, 1, 1}};
    HIP(hipStreamCreate(&s.draw));
    HIP(hipStreamCreateWithFlags(&s.read, hipStreamNonBlocking));
    HIP(hipEventCreate(&s.drawn));
    HIP(hipEventCreate(&s.done));
    HIP(hipModuleLoadData(&images, image_kernels));
    HIP(hipModuleLoadData(&module, module_kernels));
    HIP(hipModuleGetFunction(&s.store, images, "store_2d"));
    HIP(hipModuleGetFunction(&s.sample, images, "sample_2d"));
    HIP(hipModuleGetFunction(&s.scale, module, "scale_kernel"));
    HIP(hipModuleGetFunction(&s.weigh, module, "weigh_kernel"));
    HIP(hipModuleGetGlobal(&variable, &size, module, "weights"));
    HIP(hipMemcpyHtoD(variable, (void *)weights, sizeof weights[0]));
    for (int i = 0; i < COUNT; ++i) {
        const int at[2] = {i % WIDTH, i / WIDTH};
        numbers[i] = (uint32_t)i;
        for (int part = 0; part < 4; ++part) {
            image[i][part] = 1000 + (float)(i * 4 + part);
            texels[i][part] = (float)(i * 4 + part);
        }
        for (int axis = 0; axis < 2; ++axis) {
            memcpy(&places[i][axis], &at[axis], sizeof(float));
            centres[i][axis] = (float)at[axis] + 0.5f;
        }
    }
    HIP(hipHostMalloc((void **)&s.image, TEXELS, 0));
    HIP(hipHostMalloc((void **)&s.results, NUMBERS, 0));
    texel **buffers[] = {&s.texels, &s.sampled, &s.places, &s.centres};
    for (int i = 0; i < 4; ++i)
        HIP(hipMalloc((void **)buffers[i], TEXELS));
    HIP(hipMallocAsync((void **)&s.numbers, NUMBERS, s.read));
    HIP(hipMallocAsync((void **)&s.scaled, NUMBERS, s.read));
    HIP(hipMemcpy(s.texels, texels, TEXELS, hipMemcpyHostToDevice));
    HIP(hipMemcpy(s.places, places, TEXELS, hipMemcpyHostToDevice));
    HIP(hipMemcpy(s.centres, centres, TEXELS, hipMemcpyHostToDevice));
    memcpy(s.results, numbers, NUMBERS);
    HIP(hipMemcpyAsync(s.numbers, s.results, NUMBERS, hipMemcpyHostToDevice, s.read));
    HIP(hipMallocArray(&s.array, &four_floats, WIDTH, HEIGHT, hipArraySurfaceLoadStore));
    HIP(hipMemcpy2DToArray(s.array, 0, 0, image, ROW, ROW, HEIGHT, hipMemcpyHostToDevice));
    const hipResourceDesc of_array = {.resType = hipResourceTypeArray, .res.array = s.array};
    HIP(hipCreateSurfaceObject(&s.surface, &of_array));
    HIP(hipCreateTextureObject(&s.texture, &of_array, &points, NULL));
    HIP(hipEventRecord(s.done, s.read));
}

/* Draws every other half of the image. */
static void step(int number) {
    const int first = number % 2 * HALF;
    uint32_t half = HALF, count = COUNT, block = BLOCK, factor = 3;
    texel *part = s.texels + first, *places = s.places + first;
    for (int i = 0; i < COUNT; ++i) {
        for (int component = 0; component < 4; ++component)
            texels[i][component] = texels[i][component] * 2 + 1;
        numbers[i] = numbers[i] * factor + weights[i % 8];
    }
    memcpy(image + first, texels + first, TEXELS / 2);

    HIP(hipStreamWaitEvent(s.draw, s.done, 0));
    LAUNCH(strided, linear(COUNT * 4 / BLOCK), linear(BLOCK), 0, s.draw, *s.texels, 1, COUNT * 4);
    void *store[] = {&s.surface, &part, &places, &half};
    HIP(hipModuleLaunchKernel(s.store, HALF / BLOCK, 1, 1, BLOCK, 1, 1, 0, s.draw, store, NULL));
    HIP(hipEventRecord(s.drawn, s.draw));

    HIP(hipStreamWaitEvent(s.read, s.drawn, 0));
    void *sample[] = {&s.texture, &s.sampled, &s.centres, &count};
    HIP(hipModuleLaunchKernel(s.sample, COUNT / BLOCK, 1, 1, BLOCK, 1, 1, 0, s.read, sample, NULL));
    HIP(hipMemcpyAsync(s.image, s.sampled, TEXELS, hipMemcpyDeviceToHost, s.read));
    void *scale[] = {&s.scaled, &s.numbers, &factor, &count, &block};
    HIP(hipModuleLaunchKernel(s.scale, COUNT / BLOCK, 1, 1, BLOCK, 1, 1, 0, s.read, scale, NULL));
    void *weigh[] = {&s.scaled, &count, &block};
    HIP(hipModuleLaunchKernel(s.weigh, COUNT / BLOCK, 1, 1, BLOCK, 1, 1, 0, s.read, weigh, NULL));
    HIP(hipMemcpyAsync(s.numbers, s.scaled, NUMBERS, hipMemcpyDeviceToDevice, s.read));
    HIP(hipMemcpyAsync(s.results, s.numbers, NUMBERS, hipMemcpyDeviceToHost, s.read));
    HIP(hipEventRecord(s.done, s.read));
    HIP(hipStreamSynchronize(s.read));
    for (int i = 0; i < COUNT; ++i) {
        if (memcmp(s.image[i], image[i], sizeof(texel)))
            FAIL("step %d: texel %d is %g, not %g", number, i, s.image[i][0], image[i][0]);
        if (s.results[i] != numbers[i])
            FAIL("step %d: number %d is %u, not %u", number, i, s.results[i], numbers[i]);
    }
}

int main(void) {
    make();
    for (int number = 1; number <= STEPS; ++number) {
        roctx_range_id_t range = 0;
        if (number == 2)
            roctxProfilerResume(0);
        if (number == STEPS)
            range = roctxRangeStartA("last part #1");
        roctxRangePushA("step");
        step(number);
        roctxRangePop();
        if (number == STEPS)
            roctxRangeStop(range);
        if (number == 2)
            roctxProfilerPause(0);
    }
    HIP(hipDestroySurfaceObject(s.surface));
    HIP(hipDestroyTextureObject(s.texture));
    HIP(hipFreeArray(s.array));
    HIP(hipDeviceSynchronize());
    puts("ok");
    return 0;
}
