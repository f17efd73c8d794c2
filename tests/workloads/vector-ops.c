/* vector-ops THREADS ITERATIONS: the guide's program. Every thread has its own stream and buffers
 * and runs the four arithmetic kernels on 256 x 256 floats in each iteration; ROCTx marks it all.
 * Ends with 1 if a result is wrong. */
#include "fatbin.h"
#include "roctx.h"
#include "workload.h"

#include <math.h>
#include <pthread.h>

enum { WIDTH = 256, HEIGHT = 256, COUNT = WIDTH * HEIGHT, BLOCK = 64 };
static const size_t BYTES = COUNT * sizeof(float);

#define KERNEL(name)                                                                                                   \
    static void STUB(name)(float *out, const float *left, const float *right, int width, int height) {                 \
        STUB_BODY(name, &out, &left, &right, &width, &height);                                                         \
    }
KERNEL(addition)
KERNEL(subtract)
KERNEL(multiply)
KERNEL(divide)

EMBED_KERNELS("vector_ops.hipfb") {
    REGISTER(subtract, "_Z15subtract_kernelPfPKfS1_ii");
    REGISTER(multiply, "_Z15multiply_kernelPfPKfS1_ii");
    REGISTER(divide, "_Z13divide_kernelPfPKfS1_ii");
    REGISTER(addition, "_Z15addition_kernelIfEvPT_PKS0_S3_ii");
}

struct worker {
    pthread_t thread;
    int index;
    long iterations;
    long wrong;
};

static void *work(void *argument) {
    struct worker *self = argument;
    char name[32];
    snprintf(name, sizeof name, "worker %d", self->index);
    roctxRangePushA(name);

    hipStream_t stream;
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    float *host[3], *device[3];
    for (int i = 0; i < 3; ++i)
        HIP(hipHostMalloc((void **)&host[i], BYTES, hipHostMallocDefault));
    for (int i = 0; i < 3; ++i)
        HIP(hipMallocAsync((void **)&device[i], BYTES, stream));
    float *a = host[0], *b = host[1], *c = host[2];

    for (long n = 0; n < self->iterations; ++n) {
        /* a > b > 0 everywhere, other numbers in every iteration and thread. */
        for (int i = 0; i < COUNT; ++i) {
            a[i] = (float)(2 + (i + n + self->index) % 512);
            b[i] = (float)(1 + i % 2) * 0.5f;
            c[i] = -1.0f;
        }
        roctxRangePushA("iteration");
        HIP(hipMemcpyAsync(device[0], a, BYTES, hipMemcpyHostToDevice, stream));
        HIP(hipMemcpyAsync(device[1], b, BYTES, hipMemcpyHostToDevice, stream));
        /* 2 = a + b; 1 = a - b; 0 = (a + b) * (a - b); 2 = (a + b) / 0 */
        LAUNCH(addition, linear(COUNT / BLOCK), linear(BLOCK), 0, stream, device[2], device[0], device[1], COUNT, 1);
        LAUNCH(subtract, linear(COUNT / BLOCK), linear(BLOCK), 0, stream, device[1], device[0], device[1], COUNT, 1);
        LAUNCH(multiply, linear(COUNT / BLOCK), linear(BLOCK), 0, stream, device[0], device[2], device[1], COUNT, 1);
        LAUNCH(divide, linear(COUNT / BLOCK), linear(BLOCK), 0, stream, device[2], device[2], device[0], COUNT, 1);
        HIP(hipGetLastError());
        HIP(hipMemcpyAsync(c, device[2], BYTES, hipMemcpyDeviceToHost, stream));
        HIP(hipStreamSynchronize(stream));
        roctxRangePop();
        roctxMarkA("tick");

        for (int i = 0; i < COUNT; ++i) {
            float expected = (a[i] + b[i]) / ((a[i] + b[i]) * (a[i] - b[i]));
            if (!(fabsf(c[i] - expected) <= 1e-6f * expected)) {
                if (self->wrong++ == 0)
                    fprintf(stderr, "worker %d, iteration %ld, element %d: %g instead of %g\n", self->index, n, i,
                            c[i], expected);
            }
        }
    }

    for (int i = 0; i < 3; ++i)
        HIP(hipFree(device[i]));
    for (int i = 0; i < 3; ++i)
        HIP(hipHostFree(host[i]));
    HIP(hipStreamDestroy(stream));
    roctxRangePop();
    return NULL;
}

int main(int argc, char **argv) {
    long threads = number_argument(argc, argv, 1, 2);
    long iterations = number_argument(argc, argv, 2, 2);
    int devices = 0;
    HIP(hipGetDeviceCount(&devices));
    if (devices < 1)
        FAIL("no GPU");
    HIP(hipSetDevice(0));
    HIP(hipDeviceSynchronize());

    roctx_range_id_t all = roctxRangeStartA("all");
    struct worker *workers = calloc((size_t)threads, sizeof *workers);
    for (long i = 0; i < threads; ++i) {
        workers[i].index = (int)i;
        workers[i].iterations = iterations;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            FAIL("cannot start thread %ld", i);
    }
    long wrong = 0;
    for (long i = 0; i < threads; ++i) {
        pthread_join(workers[i].thread, NULL);
        wrong += workers[i].wrong;
    }
    roctxRangeStop(all);
    free(workers);
    if (wrong) {
        fprintf(stderr, "%ld wrong elements\n", wrong);
        return 1;
    }
    puts("ok");
    return 0;
}
