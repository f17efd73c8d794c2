"""Decodes every packet of a trace with Perfetto's published descriptors and checks it.

perfetto_check.py TRACE [RESULTS_JSON]

Prints what was found as JSON. With a results.json of the same session, slices are held against its records.
Needs the packages `perfetto` (it carries the descriptors) and `protobuf`.
"""

import json
import sys
from collections import Counter, defaultdict

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

BOOTTIME = 6
BEGIN, END, COUNTER = 1, 2, 4
ARRAYS = {
    "hsa_api": "hsa_api",
    "hip_api": "hip_api",
    "marker_api": "marker_api",
    "rccl_api": "rccl_api",
    "kernel_dispatch": "kernel_dispatch",
    "memory_copy": "memory_copy",
    "rocdecode_api": "rocdecode_api",
    "rocjpeg_api": "rocjpeg_api",
}


def no_unknown_fields(message):
    assert len(UnknownFieldSet(message)) == 0, f"fields that the schema lacks in {message}"
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            values = value if isinstance(value, (list, tuple)) or hasattr(value, "append") else [value]
            for inner in values:
                no_unknown_fields(inner)


def decode(path):
    trace = pb.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    assert trace.packet, "no packets"
    no_unknown_fields(trace)
    return trace


class Names:
    """Interned texts; an id must have been given before it is used, and stand for one text."""

    def __init__(self):
        self.texts = {}

    def take(self, entries):
        for entry in entries:
            assert entry.iid != 0
            assert self.texts.setdefault(entry.iid, entry.name) == entry.name

    def __getitem__(self, iid):
        return self.texts[iid]


def annotations(event, names):
    values = {}
    for annotation in event.debug_annotations:
        kind = annotation.WhichOneof("value")
        name = names[annotation.name_iid]
        assert name not in values, f"annotation {name} twice"
        values[name] = getattr(annotation, kind)
    return values


def read(trace):
    first = trace.packet[0]
    assert first.sequence_flags & 1, "the state is not cleared at the start"
    assert first.clock_snapshot.primary_trace_clock == BOOTTIME
    assert any(clock.clock_id == BOOTTIME and clock.timestamp for clock in first.clock_snapshot.clocks)
    assert first.trace_packet_defaults.timestamp_clock_id == BOOTTIME
    sequence = first.trusted_packet_sequence_id
    assert sequence != 0
    categories, event_names, annotation_names = Names(), Names(), Names()
    tracks, slices, counters, flow_bases = {}, [], defaultdict(list), set()
    events = defaultdict(list)
    for position, packet in enumerate(trace.packet):
        assert packet.trusted_packet_sequence_id == sequence
        assert position == 0 or packet.sequence_flags == 2
        assert not packet.HasField("timestamp_clock_id")
        categories.take(packet.interned_data.event_categories)
        event_names.take(packet.interned_data.event_names)
        annotation_names.take(packet.interned_data.debug_annotation_names)
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.uuid not in tracks, "a track is described twice"
            assert not track.parent_uuid or track.parent_uuid in tracks, "the parent comes later"
            tracks[track.uuid] = track
        if packet.HasField("track_event"):
            event = packet.track_event
            assert event.track_uuid in tracks, "an event is before its track"
            if event.type == COUNTER:
                assert tracks[event.track_uuid].HasField("counter")
                value = getattr(event, event.WhichOneof("counter_value_field"))
                counters[event.track_uuid].append((packet.timestamp, value))
                continue
            slice = None
            if event.type == BEGIN:
                slice = {
                    "category": categories[event.category_iids[0]],
                    "name": event_names[event.name_iid],
                    "start": packet.timestamp,
                    "values": annotations(event, annotation_names),
                    "track": event.track_uuid,
                    "flows": list(event.flow_ids),
                }
                assert len(event.category_iids) == 1
                slices.append(slice)
                correlation = slice["values"]["corr_id"]
                assert len(slice["flows"]) == (correlation != 0)
                flow_bases.update(flow ^ correlation for flow in slice["flows"])
            else:
                assert event.type == END
            events[event.track_uuid].append((packet.timestamp, position, slice))
    assert len(flow_bases) <= 1, "flows are not scoped by process"
    nest(events, tracks)
    count(counters)
    return tracks, slices, counters


def nest(events, tracks):
    """Ends close the innermost open slice: each must be closed at its own end."""
    for track, list_of_events in events.items():
        stack = []
        device = not tracks[track].HasField("thread") and tracks[track].name.startswith(("STREAM", "COMPUTE", "COPY"))
        for time, _, slice in sorted(list_of_events, key=lambda event: event[:2]):
            if slice is None:
                opened = stack.pop()
                opened["end"] = time
                values = opened["values"]
                assert (values["begin_ns"], values["end_ns"]) == (opened["start"], time), opened
                assert values["delta_ns"] == time - opened["start"]
                opened["depth"] = len(stack)
            else:
                assert not (device and stack), f"work inside work on {tracks[track].name}"
                stack.append(slice)
        assert not stack, f"{len(stack)} slices stay open"


def count(counters):
    for points in counters.values():
        times = [time for time, _ in points]
        assert times == sorted(set(times)), "points are not in order"
        assert points[0][1] == 0 and points[-1][1] == 0
        assert all(value >= 0 for _, value in points)


def compare(slices, path):
    """Every record is a slice with its times, name, thread and correlation id, and the other way round."""
    with open(path, encoding="utf-8") as file:
        process = json.load(file)["rocprofiler-sdk-tool"][0]
    strings = process["strings"]
    messages = {entry["key"]: entry["value"] for entry in strings["marker_api"]}
    renamed = {entry["key"]: entry["value"] for entry in strings["correlation_id"]["external"]}
    # The first place of the list stands for no kernel.
    symbols = process["kernel_symbols"][1:]
    kernels = {symbol["kernel_id"]: symbol["formatted_kernel_name"] for symbol in symbols}
    calls = set()
    for category, key in ARRAYS.items():
        expected, found = Counter(), Counter()
        for record in process["buffer_records"][key]:
            ids = record["correlation_id"]
            name = strings["buffer_records"][record["kind"]]["operations"][record["operation"]]
            if category == "marker_api":
                name = messages.get(ids["internal"], name)
            if category == "kernel_dispatch":
                kernel = record["dispatch_info"]["kernel_id"]
                name = renamed.get(ids["external"], kernels.get(kernel, f"kernel {kernel} (no symbol)"))
            stream = record.get("stream_id", {"handle": None})["handle"]
            times = (record["start_timestamp"], record["end_timestamp"])
            expected[times + (name, record["thread_id"], ids["internal"], stream, ids.get("ancestor"))] += 1
            if category not in ("kernel_dispatch", "memory_copy"):
                calls.add(ids["internal"])
        for slice in slices:
            if slice["category"] == category:
                values = slice["values"]
                found[(slice["start"], slice["end"], slice["name"], values["tid"], values["corr_id"],
                       values.get("stream_ID"), values.get("ancestor_id"))] += 1
        assert found == expected, (category, list((found - expected).items())[:2], list((expected - found).items())[:2])
    api = {flow for slice in slices if slice["category"].endswith("_api") for flow in slice["flows"]}
    for slice in slices:
        if not slice["category"].endswith("_api") and slice["values"]["corr_id"] in calls:
            assert slice["flows"][0] in api, "work is not tied to its call"


def main():
    trace = decode(sys.argv[1])
    tracks, slices, counters = read(trace)
    if len(sys.argv) > 2:
        compare(slices, sys.argv[2])
    shown = lambda track: track.name or track.thread.thread_name or track.process.process_name
    print(json.dumps({
        "packets": len(trace.packet),
        "categories": Counter(slice["category"] for slice in slices),
        "tracks": [shown(track) for track in tracks.values()],
        "threads": [[track.thread.tid, track.thread.thread_name] for track in tracks.values() if track.HasField("thread")],
        "slices": [[shown(tracks[slice["track"]]), slice["name"], slice["start"], slice["end"], slice["depth"]]
                   for slice in slices[:200]],
        "annotations": slices[0]["values"] if slices else {},
        "kernels": [slice["values"] for slice in slices[:200] if slice["category"] == "kernel_dispatch"],
        "counters": {tracks[track].name: points[:200] for track, points in counters.items()},
    }))


main()
