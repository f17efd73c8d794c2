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

# program NAME LIBRARY...
program() {
    name=$1
    shift
    "$cc" -std=gnu11 -O2 -g1 -Wall -Wextra -Werror -I "$src/include" -Wa,-I,"$src/kernels/prebuilt" \
        -L "$imports" -o "$out/$name" "$src/$name.c" "$@" -pthread
}
program vector-ops -lhip -lroctx -lm
