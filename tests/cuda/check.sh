#!/bin/sh
# Checks of the provider `cuda` on a machine with an NVIDIA GPU, which the tests of the workspace do without.
#
# usage: check.sh DIRECTORY-OF-RPD [WORK-DIRECTORY]
#
# Needs nvcc for the programs in C++, and PyTorch for golden.py; a step whose tool is missing is left out, with a line.
set -u
bin=$(cd "$1" && pwd)
work=${2:-/tmp/rpd-cuda-check}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$work"
cd "$work" || exit 2
rpd=$bin/rpd
failed=0

say() { printf '\n=== %s\n' "$*"; }
expect() {
    if [ "$2" = "$3" ]; then echo "ok: $1: $2"; else echo "FAILED: $1: $2 instead of $3"; failed=1; fi
}
rows() { tail -n +2 "$1" 2>/dev/null | wc -l; }

if command -v nvcc >/dev/null; then
    say "programs"
    for name in plain bench kill; do
        nvcc -O2 -DNVTX -o $name "$here/$name.cu" -ldl 2>&1 | grep -v "^$" &
    done
    wait

    say "plain: calls, kernels, copies, marks"
    "$rpd" --runtime-trace -f csv json rocpd -d plain-out -o p --backend cuda -- ./plain
    expect kernels "$(rows plain-out/p_kernel_trace.csv)" 10
    expect "copies and fills" "$(rows plain-out/p_memory_copy_trace.csv)" 9
    head -3 plain-out/p_kernel_trace.csv plain-out/p_cuda_api_trace.csv plain-out/p_marker_api_trace.csv plain-out/p_agent_info.csv |
        cut -c1-400

    say "plain: all calls, and graphs as a whole"
    "$rpd" --sys-trace --cuda-api all --cuda-graph-trace graph -f csv -d graph-out -o g --backend cuda -- ./plain
    expect "kernels and graphs" "$(rows graph-out/g_kernel_trace.csv)" 8
    expect "runtime calls" "$(rows graph-out/g_cuda_api_trace.csv)" 42

    say "bench: bare, then with rpd"
    BENCH_CPU=2 ./bench bare getdev,launch,memcpy,graph,nvtx,mt 5
    BENCH_CPU=2 "$rpd" --cuda-trace --kernel-trace --memory-copy-trace --marker-trace --cuda-graph-trace node -f rocpd \
        -d bench-out -o b --backend cuda -- ./bench rpd getdev,launch,memcpy,graph,nvtx,mt 5
    ls -l bench-out

    say "a million kernels"
    time ./bench bare million 1
    time "$rpd" --kernel-trace --cuda-trace -f rocpd -d million-out -o m --backend cuda -- ./bench rpd million 1

    say "killed with SIGKILL"
    "$rpd" --kernel-trace --cuda-trace -f csv -d kill-out -o k --backend cuda -- \
        sh -c './kill state 1000 & pid=$!; sleep 2.5; kill -9 $pid; wait $pid' 2>&1 | tail -3
    python3 - "$(ls kill-out/*kernel_trace.csv | head -1)" <<'P'
import struct, sys
words = struct.unpack("4Q", open("state", "rb").read(32))
rows = sum(1 for _ in open(sys.argv[1])) - 1
print(f"launched {words[0]}, complete {words[1]}, recorded {rows}, lost {words[1] - rows}")
P
else
    echo "left out: programs in C++ (no nvcc)"
fi

if python3 -c 'import torch; torch.cuda.init()' 2>/dev/null; then
    say "golden.py beside torch.profiler"
    python3 "$here/golden.py" torch trace.json
    "$rpd" --cuda-trace --kernel-trace --memory-copy-trace --marker-trace --memory-allocation-trace --stacks merged \
        -f rocpd -d golden-out -o g --backend cuda -- python3 "$here/golden.py" rpd
    python3 "$here/compare.py" golden-out/g_results.db trace.json || failed=1
else
    echo "left out: golden.py (no PyTorch with CUDA)"
fi
exit $failed
