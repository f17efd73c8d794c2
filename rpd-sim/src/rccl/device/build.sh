#!/bin/sh
# Rebuilds the code objects of collectives.hip, a bundle for all devices, with the distribution's clang and offload bundler.
set -e
cd "$(dirname "$0")"
clang-19 -x hip -nogpuinc -nogpulib --cuda-device-only --gpu-bundle-output --offload-arch=gfx90a --offload-arch=gfx942 \
  -mcode-object-version=5 -O2 -std=c++20 -fuse-cuid=none -Wall collectives.hip -o collectives.hipfb
