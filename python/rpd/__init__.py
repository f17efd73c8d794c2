"""What a program passes to rpd, the profiler: markers, when to record, and the sources of generated code.

    import rpd

    with rpd.range("epoch"):
        rpd.mark("first batch")

Every function may be called without the profiler: it does nothing then.
"""

from ._generated import register_generated
from ._markers import mark, pause, range, range_pop, range_push, range_start, range_stop, resume
from ._script import script

__all__ = [
    "mark",
    "pause",
    "range",
    "range_pop",
    "range_push",
    "range_start",
    "range_stop",
    "register_generated",
    "resume",
    "script",
]
