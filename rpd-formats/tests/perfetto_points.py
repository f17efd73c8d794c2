"""Prints the points of all counter tracks of a trace, by track name, as JSON: perfetto_points.py TRACE

Reads traces of any writer; a point that is there several times (the original repeats them) is printed once. Needs the packages `perfetto` (it carries the descriptors) and `protobuf`.
"""

import json
import sys
from collections import defaultdict

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

trace = pb.Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())
names, points = {}, defaultdict(set)
# Tracks and times are those of a packet, or of the sequence's defaults and the packets before.
default_track, last_time = {}, {}
for packet in trace.packet:
    sequence = packet.trusted_packet_sequence_id
    if packet.HasField("track_descriptor") and packet.track_descriptor.HasField("counter"):
        names[packet.track_descriptor.uuid] = packet.track_descriptor.name
    if packet.HasField("trace_packet_defaults"):
        default_track[sequence] = packet.trace_packet_defaults.track_event_defaults.track_uuid
    for snapshot in packet.clock_snapshot.clocks:
        if snapshot.is_incremental:
            unit = snapshot.unit_multiplier_ns or 1
            last_time[sequence] = snapshot.timestamp * unit
    time = packet.timestamp
    if packet.timestamp_clock_id == 64 or (not packet.timestamp_clock_id and sequence in last_time):
        last_time[sequence] += packet.timestamp
        time = last_time[sequence]
    event = packet.track_event
    field = event.WhichOneof("counter_value_field")
    if event.type == 4 and field:
        points[event.track_uuid or default_track.get(sequence)].add((time, getattr(event, field)))
print(json.dumps({names[track]: sorted(values) for track, values in points.items()}))
