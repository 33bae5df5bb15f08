"""Completes a build of labextension/: install.json, and a hash of the sources that it was made of.

    python tools/labextension_hash.py

The build is kept in the repository, so that users need no node. Its files differ from one folder
and one machine to the next; whether it is of today's sources is told by their hash, which
tests/unit/test_labextension.py compares.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "labextension"
BUILT = ROOT / "sfm_kernel/install/data/share/jupyter/labextensions/@sfm/labextension"
HASH = "sources.sha256"

_FOLDERS = ("src", "style", "schema")
_FILES = ("package.json", "tsconfig.json", "yarn.lock", "install.json")


def sources() -> Iterator[Path]:
    """What a build depends on, in a fixed order."""
    yield from sorted(SOURCES / name for name in _FILES)
    for folder in _FOLDERS:
        yield from sorted(path for path in (SOURCES / folder).rglob("*") if path.is_file())


def digest() -> str:
    """The hash of the sources: their paths and what they hold."""
    sha = hashlib.sha256()
    for path in sources():
        sha.update(f"{path.relative_to(SOURCES).as_posix()}\0{path.stat().st_size}\0".encode())
        sha.update(path.read_bytes())
    return sha.hexdigest()


def main() -> None:
    """Put both files into the build."""
    if not (BUILT / "package.json").is_file():
        raise SystemExit(f"there is no build in {BUILT}: `make labextension` makes it")
    shutil.copy(SOURCES / "install.json", BUILT)  # the builder empties the folder
    (BUILT / HASH).write_text(digest() + "\n")


if __name__ == "__main__":
    main()
