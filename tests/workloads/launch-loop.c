/* launch-loop N: N launches of an empty kernel of one wave, waiting after every 64; prints what one costs. */
#include "basic.h"

int main(int argc, char **argv) {
    long count = number_argument(argc, argv, 1, 10000);
    hipStream_t stream;
    HIP(hipSetDevice(0));
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    checked_work(stream, 1, 1);
    for (int i = 0; i < 64; ++i)
        LAUNCH(empty_kernel, linear(1), linear(64), 0, stream);
    HIP(hipStreamSynchronize(stream));

    double start = seconds_now();
    for (long i = 0; i < count; ++i) {
        LAUNCH(empty_kernel, linear(1), linear(64), 0, stream);
        if (i % 64 == 63)
            HIP(hipStreamSynchronize(stream));
    }
    HIP(hipStreamSynchronize(stream));
    double elapsed = seconds_now() - start;
    HIP(hipGetLastError());
    HIP(hipStreamDestroy(stream));
    printf("%.1f ns per call, %ld calls\n", elapsed * 1e9 / (double)count, count);
    return 0;
}
