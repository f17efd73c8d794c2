/* regions: one launch in each of seven phases, the one in phase n with n waves, each finished before the next
 * begins; between them ROCTx resumes and pauses recording, once nested:
 *
 *   1  resume  2  pause  3  resume  4  resume  5  pause  6  pause  7
 */
#include "basic.h"
#include "roctx.h"

static void launch(uint32_t waves) {
    LAUNCH(empty_kernel, linear(waves), linear(64), 0, NULL);
    HIP(hipDeviceSynchronize());
}

int main(void) {
    HIP(hipSetDevice(0));
    launch(1);
    roctxProfilerResume(0);
    launch(2);
    roctxProfilerPause(0);
    launch(3);
    roctxProfilerResume(0);
    launch(4);
    roctxProfilerResume(0);
    launch(5);
    roctxProfilerPause(0);
    launch(6);
    roctxProfilerPause(0);
    launch(7);
    HIP(hipGetLastError());
    puts("ok");
    return 0;
}
