"""Packs the package for pip: there is nothing to compile, so no build tool is needed, and no network.

The hooks are those of PEP 517.
"""

import base64
import hashlib
import io
import os
import re
import sys
import tarfile
import zipfile

_HERE = os.path.dirname(os.path.abspath(__file__))


def _project():
    """Name, version and the rest of the metadata from pyproject.toml, whose values are plain strings."""
    with open(os.path.join(_HERE, "pyproject.toml"), encoding="utf-8") as file:
        text = file.read().split("[project]", 1)[1]
    values = dict(re.findall(r'^([a-z-]+) = "(.*)"$', text, re.MULTILINE))
    metadata = "Metadata-Version: 2.1\nName: %s\nVersion: %s\nSummary: %s\nRequires-Python: %s\n" % (
        values["name"],
        values["version"],
        values["description"],
        values["requires-python"],
    )
    return "%s-%s" % (values["name"], values["version"]), metadata


def _sources():
    names = []
    for package in ("rocpd", "rpd"):
        for name in sorted(os.listdir(os.path.join(_HERE, package))):
            if name.endswith((".py", ".typed")):
                names.append(package + "/" + name)
    return names


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel and returns its name."""
    wheel = _project()[0] + "-py3-none-any.whl"
    _write_wheel(os.path.join(wheel_directory, wheel), "py3-none-any", {})
    return wheel


def _programs(tree):
    """The files of an installed rpd below the prefix of an environment, where its program finds its libraries."""
    for directory, directories, names in os.walk(tree):
        # The Python package is in the wheel itself; documentation is in the other packages.
        directories[:] = sorted(name for name in directories if name not in ("python", "doc"))
        for name in sorted(names):
            path = os.path.join(directory, name)
            # Wheels hold no links; rpd makes those of the simulator itself.
            if not os.path.islink(path):
                yield os.path.relpath(path, tree), path


def _write_wheel(path, tag, programs):
    """Writes a wheel of the package and of `programs`, whose names are relative to the prefix that it is installed into."""
    stem, metadata = _project()
    files = {}
    for name in _sources():
        with open(os.path.join(_HERE, name), "rb") as file:
            files[name] = file.read()
    for name, source in programs.items():
        with open(source, "rb") as file:
            files["%s.data/data/%s" % (stem, name)] = file.read()
    info = stem + ".dist-info/"
    files[info + "METADATA"] = metadata.encode()
    purelib = "false" if programs else "true"
    files[info + "WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: rpd\nRoot-Is-Purelib: %s\nTag: %s\n" % (purelib, tag)
    ).encode()
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += "%s,sha256=%s,%d\n" % (name, digest, len(content))
    files[info + "RECORD"] = (record + info + "RECORD,,\n").encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            is_program = name.endswith(".data/data/bin/rpd")
            entry.external_attr = (0o100755 if is_program else 0o100644) << 16
            archive.writestr(entry, content)


def build_sdist(sdist_directory, config_settings=None):
    """Writes the archive of the sources and returns its name."""
    stem, metadata = _project()
    name = stem + ".tar.gz"
    with tarfile.open(os.path.join(sdist_directory, name), "w:gz") as archive:
        for own in ["pyproject.toml", "build_backend.py"] + _sources():
            archive.add(os.path.join(_HERE, own), stem + "/" + own)
        entry = tarfile.TarInfo(stem + "/PKG-INFO")
        entry.size = len(metadata)
        archive.addfile(entry, io.BytesIO(metadata.encode()))
    return name


if __name__ == "__main__":
    # build_backend.py --programs TREE WHEEL: a wheel with the programs of an unpacked archive, whose tag is that of its name.
    option, tree, wheel = sys.argv[1:]
    if option != "--programs":
        sys.exit("build_backend.py: expected --programs TREE WHEEL")
    _write_wheel(wheel, os.path.basename(wheel)[: -len(".whl")].split("-", 2)[2], dict(_programs(tree)))
