/* A decoder library that finds one instruction: the one at the address in the first words of the data. */
#include <stdint.h>
#include <stdio.h>

typedef struct { uint64_t address, object; } pc;
typedef uint64_t (*data_cb)(uint8_t **, uint64_t *, void *);
typedef int (*trace_cb)(uint32_t, void *, uint64_t, void *);
typedef int (*isa_cb)(char *, uint64_t *, uint64_t *, pc, void *);

#ifndef WRONG
int rocprof_trace_decoder_parse_data(data_cb data, trace_cb trace, isa_cb isa, void *user) {
    uint8_t *bytes;
    uint64_t size, length, room = 1;
    char text[256], line[300];
    if (data(&bytes, &size, user) < sizeof(pc))
        return 4;
    pc at = *(pc *)bytes;
    if (isa(text, &length, &room, at, user) != 2 || room >= sizeof text || isa(text, &length, &room, at, user) != 0)
        return 3;
    text[room] = 0;
    snprintf(line, sizeof line, "%s, %lu bytes", text, length);
    trace(0, (void *)9, 0, user);
    trace(5, line, 1, user);
    return data(&bytes, &size, user) == 0 ? 0 : 1;
}
#endif

const char *rocprof_trace_decoder_get_info_string(int info) { return info == 1 ? "lost" : "unknown"; }
const char *rocprof_trace_decoder_get_status_string(int status) { return status == 1 ? "went wrong" : "?"; }
