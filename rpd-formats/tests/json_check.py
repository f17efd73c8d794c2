"""Compares a results.json with the one the original wrote of the same records: json_check.py OURS GOLDEN.

Keys and their order must be the same everywhere, and so must agents, code, names and every record. Deliberate
differences: types of arguments are readable (the original's are mangled), times of processes and settings of outputs
are this run's, and the summary is checked elsewhere.
"""

import json
import sys
from collections import Counter


def shape(value):
    """Keys in their order, all the way down; lists by their distinct elements."""
    if isinstance(value, dict):
        return tuple((key, shape(inner)) for key, inner in value.items())
    if isinstance(value, list):
        return ("list",) + tuple(sorted({repr(shape(inner)) for inner in value}))
    return "text" if isinstance(value, str) else "bool" if isinstance(value, bool) else "number"


def process(path):
    with open(path, encoding="utf-8") as file:
        root = json.load(file)
    assert list(root) == ["rocprofiler-sdk-tool"], list(root)
    assert len(root["rocprofiler-sdk-tool"]) == 1
    return root["rocprofiler-sdk-tool"][0]


def records(whole, key):
    kinds = whole["strings"]["buffer_records"]
    texts = Counter()
    for record in whole["buffer_records"][key]:
        kind = kinds[record["kind"]]
        named = dict(record, kind=kind["kind"], operation=kind["operations"][record["operation"]])
        # A database does not keep what calls returned.
        named.pop("retval", None)
        named["args"] = [(arg["name"], arg["value"]) for arg in record.get("args", [])]
        texts[repr(sorted(named.items()))] += 1
    return texts


def main():
    ours, golden = process(sys.argv[1]), process(sys.argv[2])
    assert list(ours) == list(golden), list(ours)
    for key in ("metadata", "agents", "code_objects", "kernel_symbols", "host_functions", "callback_records"):
        a, b = shape(ours[key]), shape(golden[key])
        if key == "metadata":
            # Groups and command are lists of texts, which may be empty.
            strip = lambda text: text.replace("('list', \"'text'\")", "('list',)")
            a, b = strip(repr(a)), strip(repr(b))
        assert a == b, f"{key}:\n{a}\n{b}"
    for key in ("agents", "code_objects", "kernel_symbols", "host_functions"):
        assert ours[key] == golden[key], key
    assert list(ours["strings"]) == list(golden["strings"]), list(ours["strings"])
    markers = [Counter(map(repr, whole["strings"]["marker_api"])) for whole in (ours, golden)]
    assert markers[0] == markers[1]
    assert list(ours["buffer_records"]) == list(golden["buffer_records"])
    for key, rows in ours["buffer_records"].items():
        expected = golden["buffer_records"][key]
        assert len(rows) == len(expected), f"{key}: {len(rows)} of {len(expected)}"
        assert shape(rows) == shape(expected), f"{key}: {shape(rows)}\n{shape(expected)}"
        difference = records(golden, key) - records(ours, key)
        assert not difference, f"{key}: {next(iter(difference))}"
    print("ok", sum(map(len, ours["buffer_records"].values())))


main()
