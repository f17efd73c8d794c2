/* Requests of a kernel to the host, as the device libraries make them: what the compiler's printf calls, and memory. The
 * runtime passes the buffer in the hidden argument `hidden_hostcall_buffer` (code object V5: 80 bytes behind the explicit ones). */
#ifndef RPD_HOSTCALL_H
#define RPD_HOSTCALL_H

#include "device.h"

typedef unsigned long u64;
typedef unsigned int u32;

struct hostcall_header {
    u64 next, lanes;
    u32 service, control;
};

struct hostcall_buffer {
    hostcall_header *headers;
    u64 (*payloads)[64][8];
    u64 doorbell, free, requests, index_mask;
};

enum { SERVICE_PRINTF = 2, SERVICE_DEVICE_MEMORY = 3 };

struct two { u64 first, second; };

static __device__ inline u64 first_lane(u64 value) {
    return (u64)(u32)__builtin_amdgcn_readfirstlane((int)(value >> 32)) << 32 | (u32)__builtin_amdgcn_readfirstlane((int)value);
}

/* Makes a request for each active lane; answers the first two words of the lane's slot. */
static __device__ __attribute__((noinline)) two hostcall(u32 service, const u64 words[8]) {
    hostcall_buffer *buffer = ((hostcall_buffer *const *)__builtin_amdgcn_implicitarg_ptr())[10];
    u32 lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
    bool leads = lane == (u32)__builtin_amdgcn_readfirstlane((int)lane);
    u64 packet = 0;
    if (leads) {
        packet = __atomic_load_n(&buffer->free, __ATOMIC_ACQUIRE);
        while (!__atomic_compare_exchange_n(&buffer->free, &packet, __atomic_load_n(&buffer->headers[packet & buffer->index_mask].next, __ATOMIC_RELAXED), false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            __builtin_amdgcn_s_sleep(1);
    }
    packet = first_lane(packet);
    hostcall_header *header = &buffer->headers[packet & buffer->index_mask];
    u64 *slot = buffer->payloads[packet & buffer->index_mask][lane];
    u64 lanes = __builtin_amdgcn_ballot_w64(true);
    if (leads) {
        header->service = service;
        header->lanes = lanes;
        header->control = 1;
    }
    for (int n = 0; n < 8; ++n)
        slot[n] = words[n];
    if (leads) {
        u64 top = __atomic_load_n(&buffer->requests, __ATOMIC_RELAXED);
        do
            header->next = top;
        while (!__atomic_compare_exchange_n(&buffer->requests, &top, packet, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
        __atomic_fetch_add((u64 *)(buffer->doorbell + 8), 1, __ATOMIC_RELEASE);
    }
    u32 waiting;
    do {
        __builtin_amdgcn_s_sleep(1);
        waiting = leads ? __atomic_load_n(&header->control, __ATOMIC_ACQUIRE) & 1 : 0;
    } while (__builtin_amdgcn_ballot_w64(waiting != 0));
    two answer = {slot[0], slot[1]};
    if (leads) {
        u64 tagged = packet + buffer->index_mask + 1;
        u64 top = __atomic_load_n(&buffer->free, __ATOMIC_RELAXED);
        do
            header->next = top;
        while (!__atomic_compare_exchange_n(&buffer->free, &top, tagged, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
    }
    return answer;
}

/* A part of a message: up to seven words. */
static __device__ u64 message_part(u64 descriptor, const u64 *words, u32 count, bool last) {
    u64 slot[8] = {(descriptor & ~0xfeul) | (last ? 2 : 0) | (u64)count << 5};
    for (u32 n = 0; n < 7; ++n)
        slot[1 + n] = n < count ? words[n] : 0;
    return hostcall(SERVICE_PRINTF, slot).first;
}

static __device__ u64 message_text(u64 descriptor, const char *text, u64 bytes, bool last) {
    u64 part[7];
    u64 at = 0;
    do {
        u32 count = 0;
        for (; count < 7 && at < bytes; ++count) {
            part[count] = 0;
            for (u32 n = 0; n < 8 && at < bytes; ++n, ++at)
                part[count] |= (u64)(unsigned char)text[at] << 8 * n;
        }
        descriptor = message_part(descriptor, part, count, last && at == bytes);
    } while (at < bytes);
    return descriptor;
}

static __device__ u64 message_begin(u64 control) { return message_part(1, &control, 1, false); }

/* What the compiler makes of printf in device code. */
extern "C" __device__ __attribute__((weak, used)) u64 __ockl_printf_begin(u64) { return message_begin(0); }

extern "C" __device__ __attribute__((weak, used)) u64
__ockl_printf_append_args(u64 message, u32 count, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u32 last) {
    u64 words[7] = {a, b, c, d, e, f, g};
    return message_part(message, words, count, last != 0);
}

extern "C" __device__ __attribute__((weak, used)) u64
__ockl_printf_append_string_n(u64 message, const char *text, u64 bytes, u32 last) {
    return message_text(message, text, text ? bytes : 0, last != 0);
}

extern "C" __device__ int printf(const char *, ...);

#endif
