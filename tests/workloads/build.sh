#!/bin/sh
# Builds the workloads into the directory $1 with nothing but a C compiler ($CC, default cc).
#
# The programs name the ROCm libraries by soname alone, as any HIP program does; they are linked
# against empty import libraries made here from the declarations in include/, and find the real
# ones, or the simulator's, with the loader's usual rules. RPD_HIP_SONAME chooses the HIP library
# that they ask for (libamdhip64.so.6; or libamdhip64.so.7 for ROCm 7).
set -eu

src=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 1 ] || { echo "usage: $0 OUTPUT-DIRECTORY" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
cc=${CC:-cc}
hip=${RPD_HIP_SONAME:-libamdhip64.so.6}
imports=$(mktemp -d "${TMPDIR:-/tmp}/rpd-imports.XXXXXX")
trap 'rm -rf "$imports"' EXIT

# import_library NAME SONAME PATTERN HEADER: functions of HEADER whose names match PATTERN
import_library() {
    grep -v '^ \*\|^/\*' "$src/include/$4" | grep -o "\\b$3[A-Za-z0-9_]*(" | tr -d '(' | sort -u |
        sed 's/.*/.globl &\n.type &, %function\n&:/' >"$imports/$1.s"
    echo '.section .note.GNU-stack,"",%progbits' >>"$imports/$1.s"
    "$cc" -shared -nostdlib -Wl,-soname,"$2" -o "$imports/lib$1.so" "$imports/$1.s"
}
import_library hip "$hip" '\(__\)\?hip[A-Z]' hip.h
import_library roctx librocprofiler-sdk-roctx.so.1 roctx roctx.h
import_library hsa libhsa-runtime64.so.1 hsa_ hsa.h
import_library rccl librccl.so.1 nccl rccl.h

# program NAME SOURCE OPTION...: compiled to a temporary name first, so that an old one may be running
program() {
    name=$1
    source=$2
    shift 2
    "$cc" -std=gnu11 -O2 -g1 -Wall -Wextra -Werror -Wno-unused-function -I "$src/include" \
        -Wa,-I,"$src/kernels/prebuilt" -L "$imports" -o "$imports/$name" "$src/$source.c" "$@" -pthread
    mv -f "$imports/$name" "$out/$name"
}

program vector-ops vector-ops -lhip -lroctx -lm
program cuda cuda -rdynamic -ldl
program transpose transpose -lhip
program inside inside -lhip -lm
program copies copies -lhip
program api-loop api-loop -lhip
program launch-loop launch-loop -lhip
program call-cost call-cost -lhip
program allocations allocations -rdynamic -lhip -lroctx
program capture capture -lhip
program capture-limits capture-limits -lhip
program capture-memory capture-memory -lhip
program capture-order capture-order -lhip
program graphs graphs -lhip
program managed managed -lhip
program jit jit -rdynamic -lhip
program capture-graphs capture-graphs -lhip
program capture-images capture-images -lhip
program capture-nodes capture-nodes -lhip
program capture-region capture-region -lhip -lroctx
program capture-variables capture-variables -lhip
program spin spin -lhip
program stacks stacks -lhip -lroctx
program fork-exec fork-exec -lhip
program starts starts
program server server -lhip -lroctx
program steps steps -lhip -lroctx
program regions regions -lhip -lroctx
program ranks ranks -lhip -lroctx
program open-ranges open-ranges -lhip -lroctx
program results results -lhip
program replay replay -lhip
program streams streams -lhip
program devices devices -lhip
program many-threads many-threads -lhip -lroctx
program module-load module-load -lhip
program device-calls device-calls -lhip
program errors errors -lhip
program faults faults -lhip
program accesses accesses -lhip
program slow slow -lhip -lrccl
program abort-midway midway -DENDING='abort()' -lhip -lroctx
program segv-midway midway -DENDING='*(volatile int *)8 = 1' -Wno-array-bounds -lhip -lroctx
program segv-thread midway -DENDING='store_in_thread()' -lhip -lroctx -pthread
program exit-midway midway -DENDING='_exit(3)' -lhip -lroctx
program hsa-direct hsa-direct -lhsa
program hsa-images hsa-images -lhsa
program hsa-queues hsa-queues -lhsa
program collectives collectives -lhip -lrccl -lm
program ipc ipc -lhip
program grids grids -lhip
program odd odd -lhip -lroctx
program in-flight in-flight -lhip
program stress stress -lhip
program no-gpu no-gpu
program no-gpu-linked no-gpu -Wl,--no-as-needed -lhip
program static no-gpu -static
program empty-tool.so tools/empty-tool -shared -fPIC -ldl
program event-log.so tools/event-log -shared -fPIC -ldl
program kill-at.so tools/kill-at -shared -fPIC -ldl
program other-addresses.so tools/other-addresses -shared -fPIC -Wl,--no-as-needed -lhip -ldl
program exec-timer tools/exec-timer
program refuse tools/refuse

mkdir -p "$out/kernels"
cp "$src"/kernels/prebuilt/* "$out/kernels/"
cp "$src/ctypes-hip.py" "$out/"
