/* hsa-queues MODE [N]: N dispatches through HSA alone, whose packets and completion signals are used in the way named:
 *   plain    no completion signals; a barrier packet at the end of each 64
 *   signals  a signal for each, which is waited for and used again
 *   counting one signal counts 64 dispatches
 *   batch    64 packets are written, then the doorbell is rung once
 *   threads  as signals, by eight threads with a queue each, 16 signals in turn: the time is that of all threads together
 *   renew    a signal for each, made before it and destroyed after it
 *   cooperative  64 at a time in a queue for cooperative launches, which is made for them and destroyed
 *   busy     a queue is destroyed while its last dispatches are under way, and another one made
 *   copies   N copies instead, each waited for
 *   pairs    N pairs of copies, which one signal counts
 * Prints the time that one took, in nanoseconds. The values of signals are checked; what kernels compute is not. */
#include "hsa-program.h"

#include <pthread.h>

enum { RING = 1024, GROUP = 64 };

static hsa_queue_t *make_queue_of(uint32_t type) {
    hsa_queue_t *queue;
    HSA(hsa_queue_create(found.gpu, RING, type, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
    return queue;
}

static hsa_queue_t *make_queue(void) {
    return make_queue_of(HSA_QUEUE_TYPE_MULTI);
}

static hsa_signal_t make_signal(hsa_signal_value_t value) {
    hsa_signal_t signal;
    HSA(hsa_signal_create(value, 0, NULL, &signal));
    return signal;
}

static void wait_for(hsa_signal_t signal) {
    while (hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED) > 0)
        ;
    if (hsa_signal_load_relaxed(signal) != 0)
        FAIL("a signal has value %ld", (long)hsa_signal_load_relaxed(signal));
}

static void barrier(hsa_queue_t *queue, hsa_signal_t done) {
    uint64_t index;
    hsa_barrier_packet_t *packet = reserve(queue, &index);
    memset((char *)packet + 4, 0, sizeof *packet - 4);
    packet->completion_signal = done;
    submit(queue, index, packet, header(HSA_PACKET_TYPE_BARRIER_AND), 0);
}

/* Writes a dispatch; the doorbell is rung for the packet of `ring` alone. */
static void write_dispatch(hsa_queue_t *queue, const struct kernel *k, void *kernarg, hsa_signal_t done, int ring) {
    uint64_t index;
    hsa_kernel_dispatch_packet_t *packet = reserve(queue, &index);
    memset((char *)packet + 4, 0, sizeof *packet - 4);
    packet->workgroup_size_x = BLOCK;
    packet->workgroup_size_y = packet->workgroup_size_z = 1;
    packet->grid_size_x = BLOCK;
    packet->grid_size_y = packet->grid_size_z = 1;
    packet->private_segment_size = k->private_size;
    packet->group_segment_size = k->group_size;
    packet->kernel_object = k->object;
    packet->kernarg_address = kernarg;
    packet->completion_signal = done;
    uint16_t type = header(HSA_PACKET_TYPE_KERNEL_DISPATCH);
    __atomic_store_n((uint32_t *)packet, (uint32_t)1 << 16 | type, __ATOMIC_RELEASE);
    if (ring)
        hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)index);
}

enum { THREADS = 8, SIGNALS = 16 };

struct submitter {
    pthread_t thread;
    const struct kernel *kernel;
    void *kernarg;
    long count;
};

static void *submit_all(void *argument) {
    const struct submitter *mine = argument;
    hsa_queue_t *queue = make_queue();
    hsa_signal_t done[SIGNALS];
    for (int i = 0; i < SIGNALS; ++i)
        done[i] = make_signal(0);
    for (long i = 0; i < mine->count; ++i) {
        hsa_signal_t signal = done[i % SIGNALS];
        wait_for(signal);
        hsa_signal_store_relaxed(signal, 1);
        write_dispatch(queue, mine->kernel, mine->kernarg, signal, 1);
    }
    for (int i = 0; i < SIGNALS; ++i) {
        wait_for(done[i]);
        HSA(hsa_signal_destroy(done[i]));
    }
    HSA(hsa_queue_destroy(queue));
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 2)
        FAIL("usage: hsa-queues MODE [N]");
    const char *mode = argv[1];
    long count = number_argument(argc, argv, 2, 256);
    set_up();
    struct kernel weigh = kernel_named(executable, "weigh_kernel.kd");
    uint32_t *host = allocate(found.host, BYTES), *device = allocate(found.device, BYTES);
    struct {
        uint32_t *data;
        uint32_t count, block;
    } *args = allocate(found.kernarg, weigh.kernarg_size < 16 ? 16 : weigh.kernarg_size);
    args->data = device;
    args->count = BLOCK;
    args->block = BLOCK;
    const hsa_signal_t none = {0};
    hsa_queue_t *queue = make_queue();
    hsa_signal_t done = make_signal(1);

    double begin = seconds_now();
    if (!strcmp(mode, "plain") || !strcmp(mode, "batch")) {
        int batch = mode[0] == 'b';
        for (long i = 0; i < count; ++i) {
            int last = i + 1 == count || i % GROUP == GROUP - 1;
            write_dispatch(queue, &weigh, args, none, !batch || last);
            if (last) {
                barrier(queue, done);
                wait_for(done);
                hsa_signal_store_relaxed(done, 1);
            }
        }
    } else if (!strcmp(mode, "signals")) {
        for (long i = 0; i < count; ++i) {
            write_dispatch(queue, &weigh, args, done, 1);
            wait_for(done);
            hsa_signal_store_relaxed(done, 1);
        }
    } else if (!strcmp(mode, "threads")) {
        struct submitter all[THREADS];
        for (int i = 0; i < THREADS; ++i) {
            all[i] = (struct submitter){0, &weigh, args, count / THREADS};
            if (pthread_create(&all[i].thread, NULL, submit_all, &all[i]))
                FAIL("cannot start a thread");
        }
        for (int i = 0; i < THREADS; ++i)
            pthread_join(all[i].thread, NULL);
    } else if (!strcmp(mode, "counting")) {
        for (long i = 0; i < count; i += GROUP) {
            hsa_signal_store_relaxed(done, GROUP);
            for (long j = 0; j < GROUP; ++j)
                write_dispatch(queue, &weigh, args, done, 1);
            wait_for(done);
        }
    } else if (!strcmp(mode, "renew")) {
        for (long i = 0; i < count; ++i) {
            hsa_signal_t own = make_signal(1);
            write_dispatch(queue, &weigh, args, own, 1);
            wait_for(own);
            HSA(hsa_signal_destroy(own));
        }
    } else if (!strcmp(mode, "cooperative")) {
        for (long i = 0; i < count; i += GROUP) {
            hsa_queue_t *cooperative = make_queue_of(HSA_QUEUE_TYPE_COOPERATIVE);
            for (long j = 0; j < GROUP; ++j)
                write_dispatch(cooperative, &weigh, args, none, 1);
            barrier(cooperative, done);
            wait_for(done);
            hsa_signal_store_relaxed(done, 1);
            HSA(hsa_queue_destroy(cooperative));
        }
    } else if (!strcmp(mode, "busy")) {
        for (long i = 0; i < count; i += GROUP) {
            for (long j = 0; j < GROUP; ++j)
                write_dispatch(queue, &weigh, args, none, 1);
            hsa_queue_t *old = queue;
            queue = make_queue();
            HSA(hsa_queue_destroy(old));
        }
    } else if (!strcmp(mode, "copies") || !strcmp(mode, "pairs")) {
        int pairs = mode[0] == 'p';
        for (long i = 0; i < count; ++i) {
            hsa_signal_store_relaxed(done, pairs ? 2 : 1);
            HSA(hsa_amd_memory_async_copy(device, found.gpu, host, found.cpu, BYTES, 0, NULL, done));
            if (pairs)
                HSA(hsa_amd_memory_async_copy(device, found.gpu, host, found.cpu, BYTES, 0, NULL, done));
            wait_for(done);
        }
    } else {
        FAIL("there is no mode `%s`", mode);
    }
    double took = seconds_now() - begin;
    printf("%.1f ns per call, %ld calls\n", took * 1e9 / (double)count, count);

    HSA(hsa_queue_destroy(queue));
    HSA(hsa_signal_destroy(done));
    HSA(hsa_amd_memory_pool_free(host));
    HSA(hsa_amd_memory_pool_free(device));
    HSA(hsa_amd_memory_pool_free(args));
    HSA(hsa_executable_destroy(executable));
    HSA(hsa_code_object_reader_destroy(reader));
    HSA(hsa_shut_down());
    return 0;
}
