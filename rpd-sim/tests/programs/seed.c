/* seed MODULE: launches kernels that race and says what came of it. */
#include <stdint.h>
#include <stdio.h>

int hipMalloc(void **, size_t);
int hipMemset(void *, int, size_t);
int hipMemcpy(void *, const void *, size_t, int);
int hipModuleLoad(void **, const char *);
int hipModuleGetFunction(void **, void *, const char *);
int hipModuleLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

int main(int argc, char **argv) {
    void *module, *updates, *arrivals;
    uint32_t *place, *order, rounds = 50, host[128];
    if (argc != 2 || hipModuleLoad(&module, argv[1]) || hipModuleGetFunction(&updates, module, "lost_updates") ||
        hipModuleGetFunction(&arrivals, module, "arrivals") || hipMalloc((void **)&place, sizeof host) ||
        hipMalloc((void **)&order, sizeof host))
        return 1;
    for (int launch = 0; launch < 4; ++launch) {
        void *args[] = {&place, &rounds};
        if (hipMemset(place, 0, 4) || hipModuleLaunchKernel(updates, 1, 1, 1, 256, 1, 1, 0, NULL, args, NULL) ||
            hipMemcpy(host, place, 4, 2))
            return 2;
        printf("left %u\n", host[0]);
    }
    /* 40 workgroups of 192 work-items are enough for two threads. */
    void *args[] = {&order, &place};
    if (hipMemset(place, 0, 4) || hipModuleLaunchKernel(arrivals, 40, 1, 1, 192, 1, 1, 0, NULL, args, NULL) ||
        hipMemcpy(host, order, 4 * 120, 2))
        return 3;
    for (int n = 0; n < 120; ++n)
        printf("%u ", host[n]);
    return 0;
}
