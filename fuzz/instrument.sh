#!/bin/sh
# RUSTC_WORKSPACE_WRAPPER of `cargo xtask fuzz`: compiles the workspace's crates with the edge counters and traced
# comparisons that libFuzzer reads. Programs that run during the build lack libFuzzer and stay as they are.
case " $* " in
*" --crate-name build_script_"* | *" --crate-name rpd_data "*) exec "$@" ;;
esac
exec "$@" -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares
