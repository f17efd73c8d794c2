"""Packs the package for pip: there is nothing to compile, so no build tool is needed, and no network.

The hooks are those of PEP 517.
"""

import base64
import hashlib
import io
import os
import re
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
    stem, metadata = _project()
    files = {}
    for name in _sources():
        with open(os.path.join(_HERE, name), "rb") as file:
            files[name] = file.read()
    info = stem + ".dist-info/"
    files[info + "METADATA"] = metadata.encode()
    files[info + "WHEEL"] = b"Wheel-Version: 1.0\nGenerator: rpd\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += "%s,sha256=%s,%d\n" % (name, digest, len(content))
    files[info + "RECORD"] = (record + info + "RECORD,,\n").encode()
    wheel = stem + "-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return wheel


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
