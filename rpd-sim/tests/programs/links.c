/* Prints what each library says of the links of the first GPU: to the second, and to the host. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    uint64_t handle;
} handle;
typedef struct {
    uint32_t latencies[2], bandwidths[2];
    bool atomics[2], coherent;
    uint32_t kind, distance;
} link_info;

int hipExtGetLinkTypeAndHopCount(int one, int other, uint32_t *kind, uint32_t *hops);
int hipDeviceGetP2PAttribute(int *value, int attribute, int source, int destination);
int hsa_init(void);
int hsa_iterate_agents(int (*callback)(handle agent, void *data), void *data);
int hsa_amd_agent_iterate_memory_pools(handle agent, int (*callback)(handle pool, void *data), void *data);
int hsa_amd_agent_memory_pool_get_info(handle agent, handle pool, int attribute, void *value);
int rsmi_init(uint64_t flags);
int rsmi_topo_get_link_type(uint32_t from, uint32_t to, uint64_t *hops, uint32_t *kind);
int rsmi_topo_get_link_weight(uint32_t from, uint32_t to, uint64_t *weight);

static handle agents[4];
static int count;

static int keep_agent(handle agent, void *data) {
    (void)data;
    agents[count++] = agent;
    return 0;
}

static int keep_first(handle pool, void *data) {
    memcpy(data, &pool, sizeof pool);
    return 1;
}

static void hsa_link(handle from, handle to) {
    handle pool = {0};
    link_info link;
    uint32_t hops;
    hsa_amd_agent_iterate_memory_pools(to, keep_first, &pool);
    int status = hsa_amd_agent_memory_pool_get_info(from, pool, 1, &hops);
    status |= hsa_amd_agent_memory_pool_get_info(from, pool, 2, &link);
    printf("hsa: %d, kind %u, %u hops, distance %u\n", status, link.kind, hops, link.distance);
}

int main(void) {
    uint32_t kind = 0, hops = 0;
    int rank = 0;
    int status = hipExtGetLinkTypeAndHopCount(0, 1, &kind, &hops) | hipDeviceGetP2PAttribute(&rank, 0, 0, 1);
    printf("hip: %d, kind %u, %u hops, rank %d\n", status, kind, hops, rank);
    hsa_init();
    hsa_iterate_agents(keep_agent, NULL);
    hsa_link(agents[1], agents[2]);
    hsa_link(agents[1], agents[0]);
    rsmi_init(0);
    uint32_t others[] = {1, UINT32_MAX};
    for (int n = 0; n < 2; ++n) {
        uint64_t far = 0, weight = 0;
        status = rsmi_topo_get_link_type(0, others[n], &far, &kind) | rsmi_topo_get_link_weight(0, others[n], &weight);
        printf("smi: %d, kind %u, %u hops, weight %u\n", status, kind, (unsigned)far, (unsigned)weight);
    }
    return 0;
}
