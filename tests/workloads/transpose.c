/* transpose [ROUNDS]: a 250 x 130 matrix through local memory and back, and sums of blocks with
 * local memory whose size the launch gives; both need barriers across waves. */
#include "fatbin.h"
#include "workload.h"

enum { WIDTH = 250, HEIGHT = 130, TILE = 16, BLOCKS = 37, BLOCK = 256 };

static void STUB(transpose)(const float *in, float *out, uint32_t width, uint32_t height) {
    STUB_BODY(transpose, &in, &out, &width, &height);
}

static void STUB(block_sum)(const uint32_t *in, uint32_t *sums) {
    STUB_BODY(block_sum, &in, &sums);
}

EMBED_KERNELS("transpose.hipfb") {
    REGISTER(transpose, "_Z16transpose_kernelPKfPfjj");
    REGISTER(block_sum, "_Z16block_sum_kernelPKjPj");
}

static dim3 tiles(uint32_t width, uint32_t height) {
    dim3 grid = {(width + TILE - 1) / TILE, (height + TILE - 1) / TILE, 1};
    return grid;
}

static void check_transpose(void) {
    static float in[HEIGHT * WIDTH], turned[WIDTH * HEIGHT], back[HEIGHT * WIDTH];
    dim3 block = {TILE, TILE, 1};
    float *a, *b;
    for (int i = 0; i < HEIGHT * WIDTH; ++i)
        in[i] = (float)i * 0.25f;
    HIP(hipMalloc((void **)&a, sizeof in));
    HIP(hipMalloc((void **)&b, sizeof in));
    HIP(hipMemcpy(a, in, sizeof in, hipMemcpyHostToDevice));
    LAUNCH(transpose, tiles(WIDTH, HEIGHT), block, 0, NULL, a, b, WIDTH, HEIGHT);
    HIP(hipMemcpy(turned, b, sizeof in, hipMemcpyDeviceToHost));
    HIP(hipMemset(a, 0, sizeof in));
    LAUNCH(transpose, tiles(HEIGHT, WIDTH), block, 0, NULL, b, a, HEIGHT, WIDTH);
    HIP(hipMemcpy(back, a, sizeof in, hipMemcpyDeviceToHost));
    for (int y = 0; y < HEIGHT; ++y) {
        for (int x = 0; x < WIDTH; ++x) {
            if (turned[x * HEIGHT + y] != in[y * WIDTH + x])
                FAIL("row %d, column %d: %g instead of %g", y, x, turned[x * HEIGHT + y], in[y * WIDTH + x]);
            if (back[y * WIDTH + x] != in[y * WIDTH + x])
                FAIL("and back: row %d, column %d: %g instead of %g", y, x, back[y * WIDTH + x], in[y * WIDTH + x]);
        }
    }
    HIP(hipFree(a));
    HIP(hipFree(b));
}

static void check_sums(void) {
    static uint32_t in[BLOCKS * BLOCK], sums[BLOCKS];
    uint32_t *device_in, *device_sums;
    for (uint32_t i = 0; i < BLOCKS * BLOCK; ++i)
        in[i] = i * 2654435761u;
    HIP(hipMalloc((void **)&device_in, sizeof in));
    HIP(hipMalloc((void **)&device_sums, sizeof sums));
    HIP(hipMemcpy(device_in, in, sizeof in, hipMemcpyHostToDevice));
    LAUNCH(block_sum, linear(BLOCKS), linear(BLOCK), BLOCK * sizeof(uint32_t), NULL, device_in, device_sums);
    HIP(hipMemcpy(sums, device_sums, sizeof sums, hipMemcpyDeviceToHost));
    for (uint32_t block = 0; block < BLOCKS; ++block) {
        uint32_t expected = 0;
        for (uint32_t i = 0; i < BLOCK; ++i)
            expected += in[block * BLOCK + i];
        if (sums[block] != expected)
            FAIL("block %u: %u instead of %u", block, sums[block], expected);
    }
    HIP(hipFree(device_in));
    HIP(hipFree(device_sums));
}

int main(int argc, char **argv) {
    long rounds = number_argument(argc, argv, 1, 1);
    HIP(hipSetDevice(0));
    for (long i = 0; i < rounds; ++i) {
        check_transpose();
        check_sums();
    }
    HIP(hipGetLastError());
    puts("ok");
    return 0;
}
