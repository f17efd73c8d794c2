/* hsa-direct: a GPU program without HIP. Finds the agents and their memory, loads a code object,
 * copies in, runs two dispatches with a barrier packet between them, copies out and checks. */
#include "hsa-program.h"

int main(void) {
    set_up();
    struct kernel scale = kernel_named(executable, "scale_kernel.kd");
    struct kernel weigh = kernel_named(executable, "weigh_kernel.kd");

    hsa_queue_t *queue;
    HSA(hsa_queue_create(found.gpu, 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
    hsa_signal_t copied, scaled, weighed;
    HSA(hsa_signal_create(1, 0, NULL, &copied));
    HSA(hsa_signal_create(1, 0, NULL, &scaled));
    HSA(hsa_signal_create(1, 0, NULL, &weighed));

    uint32_t *host = allocate(found.host, BYTES);
    uint32_t *in = allocate(found.device, BYTES), *out = allocate(found.device, BYTES);
    for (uint32_t i = 0; i < COUNT; ++i)
        host[i] = i;
    copy(in, found.gpu, host, found.cpu, copied);
    memset(host, 0, BYTES);

    struct {
        uint32_t *out, *in;
        uint32_t factor, count, block;
    } *scale_args = allocate(found.kernarg, scale.kernarg_size < 32 ? 32 : scale.kernarg_size);
    scale_args->out = out;
    scale_args->in = in;
    scale_args->factor = 7;
    scale_args->count = COUNT;
    scale_args->block = BLOCK;
    struct {
        uint32_t *data;
        uint32_t count, block;
    } *weigh_args = allocate(found.kernarg, weigh.kernarg_size < 16 ? 16 : weigh.kernarg_size);
    weigh_args->data = out;
    weigh_args->count = COUNT;
    weigh_args->block = BLOCK;

    dispatch(queue, &scale, scale_args, scaled);
    uint64_t index;
    hsa_barrier_packet_t *barrier = reserve(queue, &index);
    memset((char *)barrier + 4, 0, sizeof *barrier - 4);
    barrier->dep_signal[0] = scaled;
    submit(queue, index, barrier, header(HSA_PACKET_TYPE_BARRIER_AND), 0);
    dispatch(queue, &weigh, weigh_args, weighed);
    hsa_signal_wait_scacquire(weighed, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED);

    copy(host, found.cpu, out, found.gpu, copied);
    static const uint32_t weights[8] = {3, 1, 4, 1, 5, 9, 2, 6};
    for (uint32_t i = 0; i < COUNT; ++i) {
        if (host[i] != 7 * i + weights[i % 8])
            FAIL("element %u: %u instead of %u", i, host[i], 7 * i + weights[i % 8]);
    }

    HSA(hsa_queue_destroy(queue));
    HSA(hsa_signal_destroy(copied));
    HSA(hsa_signal_destroy(scaled));
    HSA(hsa_signal_destroy(weighed));
    HSA(hsa_amd_memory_pool_free(host));
    HSA(hsa_amd_memory_pool_free(in));
    HSA(hsa_amd_memory_pool_free(out));
    HSA(hsa_amd_memory_pool_free(scale_args));
    HSA(hsa_amd_memory_pool_free(weigh_args));
    HSA(hsa_executable_destroy(executable));
    HSA(hsa_code_object_reader_destroy(reader));
    HSA(hsa_shut_down());
    puts("ok");
    return 0;
}
