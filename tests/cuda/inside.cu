// Kernels whose instructions and waits are known, for PC samples. The time of each part is printed, to compare with and without.
#include <chrono>
#include <cstdio>
#include <cuda_runtime.h>

// Compiled as a function of its own, which the kernel calls.
__device__ __noinline__ float helper(float x, int n) {
    for (int i = 0; i < n; i++)
        x = x * 1.0001f + __sinf(x);
    return x;
}

// Each step waits for memory: the reason is long_scoreboard.
__global__ void chase(const int *next, int *out, int steps) {
    int at = threadIdx.x + blockIdx.x * blockDim.x;
    for (int i = 0; i < steps; i++)
        at = next[at];
    out[threadIdx.x + blockIdx.x * blockDim.x] = at;
}

template <typename T> __global__ void math(T *data, int n) {
    data[threadIdx.x] = helper(data[threadIdx.x], n);
}

__global__ void tiny(float *data, int n) {
    float x = data[threadIdx.x];
    for (int i = 0; i < n; i++)
        x = x * 1.5f + 2.f;
    data[threadIdx.x] = x;
}

static double now() {
    auto time = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(time).count();
}

int main() {
    const int count = 1 << 22;
    int *next, *out;
    float *data;
    cudaMalloc(&next, count * 4);
    cudaMalloc(&out, count * 4);
    cudaMalloc(&data, 4096 * 4);
    int *host = new int[count];
    for (int i = 0; i < count; i++)
        host[i] = (int)(((long)i * 40503 + 12345) % count);
    cudaMemcpy(next, host, count * 4, cudaMemcpyHostToDevice);
    cudaStream_t streams[8];
    for (auto &stream : streams)
        cudaStreamCreate(&stream);
    // The first round has the start of sampling.
    for (int round = 0; round < 4; round++) {
        double begin = now();
        for (int i = 0; i < 100; i++)
            chase<<<528, 256>>>(next, out, 200);
        cudaDeviceSynchronize();
        double chased = now();
        for (int i = 0; i < 100; i++)
            math<<<132, 256>>>(data, 2000);
        cudaDeviceSynchronize();
        double counted = now();
        for (int i = 0; i < 100; i++)
            for (int k = 0; k < 8; k++)
                tiny<<<1, 128, 0, streams[k]>>>(data + k * 128, 10000);
        cudaDeviceSynchronize();
        double streamed = now();
        for (int i = 0; i < 20000; i++)
            tiny<<<1, 32>>>(data, 1);
        cudaDeviceSynchronize();
        printf("chase %.1f ms, math %.1f ms, 8 streams %.1f ms, launch %.3f us\n", chased - begin, counted - chased,
               streamed - counted, (now() - streamed) / 20);
    }
    return 0;
}
