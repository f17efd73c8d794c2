/* cooperative MODULE: grids on two streams whose workgroups exchange values round by round. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int hipMalloc(void **, size_t);
int hipMemcpy(void *, const void *, size_t, int);
int hipStreamCreate(void **);
int hipDeviceSynchronize(void);
int hipModuleLoad(void **, const char *);
int hipModuleGetFunction(void **, void *, const char *);
int hipModuleLaunchCooperativeKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                                     void **);

enum { GRIDS = 6, MOST = 200 };

int main(int argc, char **argv) {
    void *module, *kernel, *streams[2];
    if (argc != 2 || hipModuleLoad(&module, argv[1]) || hipModuleGetFunction(&kernel, module, "grid_rounds") ||
        hipStreamCreate(&streams[0]) || hipStreamCreate(&streams[1]))
        return 1;
    static uint32_t expected[GRIDS][MOST], host[MOST];
    uint32_t *values[GRIDS], *next[GRIDS];
    for (uint32_t grid = 0; grid < GRIDS; ++grid) {
        uint32_t groups = grid * 39 + 1, rounds = 2 * grid + 2;
        for (uint32_t n = 0; n < groups; ++n)
            expected[grid][n] = n * n + grid;
        if (hipMalloc((void **)&values[grid], sizeof host) || hipMalloc((void **)&next[grid], sizeof host) ||
            hipMemcpy(values[grid], expected[grid], 4 * groups, 1))
            return 2;
        for (uint32_t round = 0; round < rounds; ++round) {
            memcpy(host, expected[grid], sizeof host);
            for (uint32_t n = 0; n < groups; ++n)
                expected[grid][n] = host[n] + host[(n + 1) % groups];
        }
        void *args[] = {&values[grid], &next[grid], &groups, &rounds};
        if (hipModuleLaunchCooperativeKernel(kernel, groups, 1, 1, 128, 1, 1, 0, streams[grid % 2], args))
            return 3;
    }
    if (hipDeviceSynchronize())
        return 4;
    for (int grid = 0; grid < GRIDS; ++grid) {
        if (hipMemcpy(host, values[grid], sizeof host, 2))
            return 5;
        printf("%d: %s\n", grid, memcmp(host, expected[grid], 4 * (grid * 39 + 1)) ? "wrong" : "right");
    }
    return 0;
}
