/* The part of ROCTx that the workloads use. build.sh takes the names of the import library from it. */
#ifndef RPD_ROCTX_H
#define RPD_ROCTX_H

#include <stdint.h>

typedef uint64_t roctx_range_id_t;
typedef uint64_t roctx_thread_id_t;

void roctxMarkA(const char *message);
int roctxRangePushA(const char *message);
int roctxRangePop(void);
roctx_range_id_t roctxRangeStartA(const char *message);
void roctxRangeStop(roctx_range_id_t id);
int roctxGetThreadId(roctx_thread_id_t *id);
int roctxProfilerPause(roctx_thread_id_t id);
int roctxProfilerResume(roctx_thread_id_t id);
int roctxNameOsThread(const char *name);
int roctxNameHipDevice(const char *name, int device);

#endif
