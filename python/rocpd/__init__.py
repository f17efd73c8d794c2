"""The database commands of rpd under the names of the original's package: `python3 -m rocpd convert ...`.

There is nothing to compute with here: each module replaces the interpreter by the program rpd, which does the work.
"""

import os
import shutil
import sys


def _program():
    """The path of rpd: what RPD_BIN names, the one that this package was installed with, or the one on PATH."""
    named = os.environ.get("RPD_BIN")
    if named:
        return named
    here = os.path.dirname(os.path.abspath(__file__))
    # share/rpd/python/rocpd of an unpacked archive.
    beside = os.path.join(here, *[os.pardir] * 4, "bin", "rpd")
    if os.access(beside, os.X_OK):
        return os.path.normpath(beside)
    found = shutil.which("rpd")
    if found is None:
        raise SystemExit("rocpd: there is no rpd on PATH: add its directory, or set RPD_BIN to its path")
    return found


def _become(name, arguments=None):
    """Replaces this process by rpd under the name of one of the original's programs."""
    program = _program()
    words = sys.argv[1:] if arguments is None else list(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(program, [name] + words)
    except OSError as error:
        raise SystemExit("rocpd: cannot run %s: %s" % (program, error.strerror))
