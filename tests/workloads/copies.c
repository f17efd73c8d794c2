/* copies: memory copies and fills of every direction and flavour; the contents are checked after
 * each. Prints the number of copies that move data between different places. */
#include "hip.h"
#include "workload.h"

#include <string.h>

static int copies;

/* Bytes that differ with position and seed. */
static void pattern(unsigned char *bytes, size_t size, unsigned seed) {
    for (size_t i = 0; i < size; ++i)
        bytes[i] = (unsigned char)(i * 31 + (i >> 8) * 7 + seed);
}

static void expect_pattern(const char *what, const unsigned char *bytes, size_t size, unsigned seed) {
    for (size_t i = 0; i < size; ++i) {
        unsigned char expected = (unsigned char)(i * 31 + (i >> 8) * 7 + seed);
        if (bytes[i] != expected)
            FAIL("%s: byte %zu of %zu is 0x%02x instead of 0x%02x", what, i, size, bytes[i], expected);
    }
}

static void expect_value(const char *what, const unsigned char *bytes, size_t size, unsigned char value) {
    for (size_t i = 0; i < size; ++i) {
        if (bytes[i] != value)
            FAIL("%s: byte %zu of %zu is 0x%02x instead of 0x%02x", what, i, size, bytes[i], value);
    }
}

#define COPY(call)                                                                                                     \
    do {                                                                                                               \
        HIP(call);                                                                                                     \
        copies++;                                                                                                      \
    } while (0)

/* Host to device a, to device b, back to host; every function that can do it. */
static void round_trips(const char *what, unsigned char *host, size_t size, hipStream_t stream) {
    unsigned char *a, *b;
    HIP(hipMalloc((void **)&a, size));
    HIP(hipMalloc((void **)&b, size));

    pattern(host, size, 1);
    COPY(hipMemcpy(a, host, size, hipMemcpyHostToDevice));
    COPY(hipMemcpy(b, a, size, hipMemcpyDeviceToDevice));
    memset(host, 0, size);
    COPY(hipMemcpy(host, b, size, hipMemcpyDeviceToHost));
    HIP(hipDeviceSynchronize());
    expect_pattern(what, host, size, 1);

    pattern(host, size, 2);
    COPY(hipMemcpy(a, host, size, hipMemcpyDefault));
    COPY(hipMemcpy(b, a, size, hipMemcpyDefault));
    HIP(hipDeviceSynchronize());
    memset(host, 0, size);
    COPY(hipMemcpy(host, b, size, hipMemcpyDefault));
    expect_pattern(what, host, size, 2);

    pattern(host, size, 3);
    COPY(hipMemcpyAsync(a, host, size, hipMemcpyHostToDevice, stream));
    COPY(hipMemcpyAsync(b, a, size, hipMemcpyDeviceToDevice, stream));
    HIP(hipStreamSynchronize(stream));
    memset(host, 0, size);
    COPY(hipMemcpyAsync(host, b, size, hipMemcpyDeviceToHost, stream));
    HIP(hipStreamSynchronize(stream));
    expect_pattern(what, host, size, 3);

    pattern(host, size, 4);
    COPY(hipMemcpyWithStream(a, host, size, hipMemcpyHostToDevice, stream));
    COPY(hipMemcpyWithStream(b, a, size, hipMemcpyDeviceToDevice, stream));
    memset(host, 0, size);
    COPY(hipMemcpyWithStream(host, b, size, hipMemcpyDeviceToHost, stream));
    HIP(hipStreamSynchronize(stream));
    expect_pattern(what, host, size, 4);

    pattern(host, size, 5);
    COPY(hipMemcpyHtoD(a, host, size));
    COPY(hipMemcpyDtoD(b, a, size));
    HIP(hipDeviceSynchronize());
    memset(host, 0, size);
    COPY(hipMemcpyDtoH(host, b, size));
    expect_pattern(what, host, size, 5);

    HIP(hipFree(a));
    HIP(hipFree(b));
}

static void between_hosts(unsigned char *pinned, size_t size) {
    unsigned char *plain = malloc(size);
    pattern(plain, size, 6);
    HIP(hipMemcpy(pinned, plain, size, hipMemcpyHostToHost));
    expect_pattern("host to host", pinned, size, 6);
    free(plain);
}

/* Parts of a buffer at odd offsets leave the rest alone. */
static void parts(hipStream_t stream) {
    enum { SIZE = 4099, FROM = 13, PART = 1021 };
    static unsigned char host[SIZE], back[SIZE];
    unsigned char *device;
    HIP(hipMalloc((void **)&device, SIZE));
    HIP(hipMemset(device, 0xee, SIZE));
    pattern(host, SIZE, 7);
    COPY(hipMemcpyAsync(device + FROM, host, PART, hipMemcpyHostToDevice, stream));
    HIP(hipStreamSynchronize(stream));
    COPY(hipMemcpy(back, device, SIZE, hipMemcpyDeviceToHost));
    expect_value("before the part", back, FROM, 0xee);
    expect_pattern("the part", back + FROM, PART, 7);
    expect_value("after the part", back + FROM + PART, SIZE - FROM - PART, 0xee);
    HIP(hipFree(device));
}

static void rectangles(hipStream_t stream) {
    enum { WIDTH = 100, HEIGHT = 37, HOST_PITCH = 128 };
    static unsigned char host[HOST_PITCH * HEIGHT], back[HOST_PITCH * HEIGHT];
    unsigned char *device;
    size_t pitch;
    HIP(hipMallocPitch((void **)&device, &pitch, WIDTH, HEIGHT));
    if (pitch < WIDTH)
        FAIL("a pitch of %zu for rows of %d bytes", pitch, WIDTH);
    pattern(host, sizeof host, 8);
    for (int async = 0; async < 2; ++async) {
        HIP(hipMemset2D(device, pitch, 0x55, WIDTH, HEIGHT));
        memset(back, 0x11, sizeof back);
        if (async) {
            COPY(hipMemcpy2DAsync(device, pitch, host, HOST_PITCH, WIDTH, HEIGHT, hipMemcpyHostToDevice, stream));
            COPY(hipMemcpy2DAsync(back, HOST_PITCH, device, pitch, WIDTH, HEIGHT, hipMemcpyDeviceToHost, stream));
            HIP(hipStreamSynchronize(stream));
        } else {
            COPY(hipMemcpy2D(device, pitch, host, HOST_PITCH, WIDTH, HEIGHT, hipMemcpyHostToDevice));
            COPY(hipMemcpy2D(back, HOST_PITCH, device, pitch, WIDTH, HEIGHT, hipMemcpyDeviceToHost));
        }
        for (int y = 0; y < HEIGHT; ++y) {
            if (memcmp(back + y * HOST_PITCH, host + y * HOST_PITCH, WIDTH))
                FAIL("row %d of the rectangle differs", y);
            expect_value("between rows", back + y * HOST_PITCH + WIDTH, HOST_PITCH - WIDTH, 0x11);
        }
    }
    HIP(hipFree(device));
}

static void fills(hipStream_t stream) {
    enum { SIZE = 10000 };
    static unsigned char back[SIZE];
    unsigned char *device;
    HIP(hipMallocAsync((void **)&device, SIZE, stream));
    HIP(hipMemsetAsync(device, 0xa5, SIZE, stream));
    HIP(hipMemsetAsync(device + 1, 0x5a, 99, stream));
    COPY(hipMemcpyAsync(back, device, SIZE, hipMemcpyDeviceToHost, stream));
    HIP(hipStreamSynchronize(stream));
    expect_value("first byte", back, 1, 0xa5);
    expect_value("small fill", back + 1, 99, 0x5a);
    expect_value("large fill", back + 100, SIZE - 100, 0xa5);
    HIP(hipMemsetD32(device, 0x04030201, SIZE / 4));
    COPY(hipMemcpy(back, device, SIZE, hipMemcpyDeviceToHost));
    for (int i = 0; i < SIZE; ++i) {
        if (back[i] != i % 4 + 1)
            FAIL("32-bit fill: byte %d is 0x%02x", i, back[i]);
    }
    HIP(hipFreeAsync(device, stream));
    HIP(hipStreamSynchronize(stream));
}

static void managed(void) {
    enum { SIZE = 8192 };
    static unsigned char back[SIZE];
    unsigned char *both, *device;
    HIP(hipMallocManaged((void **)&both, SIZE, hipMemAttachGlobal));
    HIP(hipMalloc((void **)&device, SIZE));
    pattern(both, SIZE, 9);
    COPY(hipMemcpy(device, both, SIZE, hipMemcpyDefault));
    COPY(hipMemcpy(back, device, SIZE, hipMemcpyDeviceToHost));
    expect_pattern("managed memory", back, SIZE, 9);
    HIP(hipFree(device));
    HIP(hipFree(both));
}

int main(void) {
    static const size_t sizes[] = {1, 63, 4096, 65537, 3 << 20};
    HIP(hipSetDevice(0));
    hipStream_t stream;
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        unsigned char *plain = malloc(sizes[i]), *pinned;
        HIP(hipHostMalloc((void **)&pinned, sizes[i], hipHostMallocDefault));
        round_trips("pageable memory", plain, sizes[i], stream);
        round_trips("pinned memory", pinned, sizes[i], stream);
        between_hosts(pinned, sizes[i]);
        HIP(hipHostFree(pinned));
        free(plain);
    }
    parts(stream);
    rectangles(stream);
    fills(stream);
    managed();
    HIP(hipStreamDestroy(stream));
    HIP(hipGetLastError());
    printf("ok, %d copies\n", copies);
    return 0;
}
