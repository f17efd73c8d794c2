// The least code object: one kernel and one variable, for the tests of bundles.
#include "device.h"
__device__ u32 variable = 42;
KERNEL tiny(u32 *out) { out[lane_x()] = variable; }
