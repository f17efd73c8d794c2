/* A trace decoder with the three functions of the first interface, which reports one wave, and a record of a kind that does
 * not exist yet. */
#include <stdint.h>
#include <string.h>

typedef struct { uint64_t address, object; } pc_t;
typedef struct { uint32_t category_stall; int32_t duration; int64_t time; pc_t pc; } inst_t;
typedef struct { int32_t state, duration; } state_t;
typedef struct {
    uint8_t cu, simd, slot, contexts;
    uint32_t reserved[3];
    int64_t begin, end;
    uint64_t states, insts;
    const state_t* timeline;
    const inst_t* instructions;
} wave_t;

typedef int (*trace_t)(int, void*, uint64_t, void*);
typedef int (*isa_t)(char*, uint64_t*, uint64_t*, pc_t, void*);
typedef uint64_t (*data_t)(uint8_t**, uint64_t*, void*);

int rocprof_trace_decoder_parse_data(data_t data, trace_t trace, isa_t isa, void* user)
{
    uint8_t* bytes = 0;
    uint64_t size = 0;
    if(data(&bytes, &size, user) == 0 || size < 8) return 4;
    trace(0, (void*) 9, 0, user);
    trace(99, bytes, 1, user);

    pc_t     pc = {0x1000, 3};
    char     text[256];
    uint64_t length = 4, memory = 0;
    /* Too small first. */
    int status = isa(text, &memory, &length, pc, user);
    if(status == 2) status = isa(text, &memory, &length, pc, user);
    if(status != 0) memory = 0;

    state_t states[1] = {{2, 164}};
    inst_t  insts[1]  = {{1 | 3 << 8, (int32_t) memory, 64, pc}};
    wave_t  wave      = {1, 0, 0, 0, {0, 0, 0}, 44, 208, 1, 1, states, insts};
    trace(3, &wave, 1, user);
    while(data(&bytes, &size, user) != 0) {}
    return 0;
}

const char* rocprof_trace_decoder_get_info_string(int info) { return info ? "some" : "none"; }

const char* rocprof_trace_decoder_get_status_string(int status) { return status ? "failed" : "fine"; }
