"""Frames for TorchScript functions, which the interpreter runs without Python frames."""

import re
import sys

# The place of a node in the text of a graph.
_PLACE = re.compile(r"# (\S.*?):(\d+):\d+\s*$", re.MULTILINE)


def script(scripted, source=None):
    """Wraps a TorchScript function or module, so that stacks of calls that it makes have a frame for it.

        step = rpd.script(torch.jit.script(step))

    The frame has the name of the function, and the file and line where its source begins: which statement was at work
    TorchScript does not tell. `source` is the Python function that it was made from, for those whose graph has no places.
    What is returned can be called as `scripted` can; `__wrapped__` is `scripted`.
    """
    name, file, line = _place(scripted, source)
    call = lambda *arguments, **named: scripted(*arguments, **named)  # noqa: E731
    code = call.__code__
    name += " [TorchScript]"
    changed = {"co_name": name, "co_filename": file, "co_firstlineno": line}
    if sys.version_info >= (3, 11):
        # A table of lines without columns: all code is of the first line.
        units = len(code.co_code) // 2
        sizes = [8] * (units // 8) + ([units % 8] if units % 8 else [])
        changed["co_qualname"] = name
        changed["co_linetable"] = b"".join(bytes((0xE8 | size - 1, 0)) for size in sizes)
    call.__code__ = code.replace(**changed)
    call.__wrapped__ = scripted
    call.__doc__ = getattr(scripted, "__doc__", None)
    return call


def _place(scripted, source):
    """Name, file and first line of what was scripted."""
    name = getattr(scripted, "name", None) or getattr(scripted, "original_name", None)
    source = source or getattr(scripted, "_torchdynamo_inline", None)
    code = getattr(source, "__code__", None)
    if code is not None:
        return name or code.co_name, code.co_filename, code.co_firstlineno
    found = _PLACE.search(str(getattr(scripted, "graph", "")))
    if found is not None:
        return name or "script", found.group(1), int(found.group(2))
    if not callable(scripted):
        raise TypeError("rpd.script: %r cannot be called" % (scripted,))
    return name or type(scripted).__name__, "<TorchScript>", 1
