"""Cost of a merged stack with 30 Python frames: one line `NAME: NUMBER ns`."""

import sys

import probe

probe.open_probe()
probe.released.probe_capture(None)


def deep(depth):
    return deep(depth - 1) if depth else probe.released.probe_bench(400000)


version = "%d.%d" % sys.version_info[:2]
print("merged stack, 30 Python frames, CPython %s: %.0f ns" % (version, deep(28)))
