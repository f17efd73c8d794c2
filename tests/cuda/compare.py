"""Compares what rpd recorded of golden.py with a trace of torch.profiler of the same program.

usage: compare.py RECORDING.db [TRACE.json]

Kernels, copies and fills between the marks RPD-GOLDEN-BEGIN and RPD-GOLDEN-END are counted, by name. Ends with 1 where something
differs.
"""

import collections
import json
import re
import sqlite3
import sys


def short(name):
    """A kernel's name without arguments and without what demanglers spell differently."""
    return re.sub(r"\s+", "", name.replace("(anonymous namespace)", "").replace("unsigned long long", "ull"))


def main():
    database = sqlite3.connect(sys.argv[1])
    marks = dict(
        database.execute(
            "SELECT name, start FROM regions WHERE name LIKE 'RPD-GOLDEN-%' UNION "
            "SELECT json_extract(extdata, '$.message'), start FROM regions_and_samples WHERE extdata LIKE '%RPD-GOLDEN-%'"
        ).fetchall()
    )
    begin, end = marks["RPD-GOLDEN-BEGIN"], marks["RPD-GOLDEN-END"]
    between = (begin, end)
    kernels = [row[0] for row in database.execute("SELECT name FROM kernels WHERE start BETWEEN ? AND ?", between)]
    moved = [row[0] for row in database.execute("SELECT name FROM memory_copies WHERE start BETWEEN ? AND ?", between)]
    fills = [name for name in moved if name == "MEMORY_SET"]
    copies = [name for name in moved if name != "MEMORY_SET"]
    counts = (len(kernels), len(copies), len(fills))
    print("kernels, copies, fills:", counts)
    good = True
    if len(sys.argv) > 2:
        events = json.load(open(sys.argv[2]))["traceEvents"]
        of = lambda category: [event["name"] for event in events if event.get("cat") == category]
        theirs = (len(of("kernel")), len(of("gpu_memcpy")), len(of("gpu_memset")))
        print("torch.profiler:        ", theirs)
        ours, names = collections.Counter(map(short, kernels)), collections.Counter(map(short, of("kernel")))
        for name in sorted(set(ours) | set(names)):
            if ours[name] != names[name]:
                print("differs:", ours[name], names[name], name[:150])
                good = False
        good = good and counts == theirs
    for sql in [
        "SELECT count(*), count(DISTINCT stream), count(DISTINCT tid) FROM kernels WHERE start BETWEEN %d AND %d" % between,
        "SELECT category, count(*) FROM regions WHERE start BETWEEN %d AND %d GROUP BY 1" % between,
    ]:
        print(database.execute(sql).fetchall())
    print("same" if good else "NOT the same")
    sys.exit(not good)


main()
