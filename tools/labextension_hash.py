"""Completes a build of labextension/, and compares the build that is kept with the sources.

    python tools/labextension_hash.py              after `jlpm build`
    python tools/labextension_hash.py --compare    builds again, and compares with it; needs node

The build is in the repository, so that users need no node. Beside its files it has a hash of its
sources, and a hash of each file: tests/unit/test_labextension.py compares both without node. CI
builds it again, and every byte must be the same; for that, the build does not depend on the folder
(rspack.config.js).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "labextension"
BUILT = ROOT / "sfm_kernel/install/data/share/jupyter/labextensions/@sfm/labextension"
PAGES = {
    ROOT / "sfm_kernel/observe/record": ("page.css", "page.js", "states.json"),
    ROOT / "sfm_kernel/classroom": ("page.css", "page.js"),
}
"""The folders of the pages without JupyterLab, and what is built of each; the modules that serve or
write it are beside it."""
HASH = "sources.sha256"
HASHES = "built.sha256"

_FOLDERS = ("src", "style", "schema")
_FILES = ("package.json", "tsconfig.json", "yarn.lock", "install.json", "rspack.config.js",
          "pages.build.js")  # fmt: skip
_AGAIN = "run `make labextension`, and add the changed files"


def sources() -> Iterator[Path]:
    """The files on which a build depends, in a fixed order."""
    yield from sorted(SOURCES / name for name in _FILES)
    for folder in _FOLDERS:
        yield from sorted(path for path in (SOURCES / folder).rglob("*") if path.is_file())


def digest() -> str:
    """The hash of the sources: their paths and contents."""
    sha = hashlib.sha256()
    for path in sources():
        sha.update(f"{path.relative_to(SOURCES).as_posix()}\0{path.stat().st_size}\0".encode())
        sha.update(path.read_bytes())
    return sha.hexdigest()


def hashes(built: Path, root: Path = ROOT) -> dict[str, str]:
    """The hash of each file of a build, by its path; of the pages' files, by folder and name."""
    files = sorted(path for path in built.rglob("*") if path.is_file() and path.name != HASHES)
    named = {path.relative_to(built).as_posix(): path for path in files}
    for page, names in PAGES.items():
        folder = root / page.relative_to(ROOT)
        named |= {f"{page.name}/{name}": folder / name for name in names}
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in named.items()}


def known(built: Path) -> dict[str, str]:
    """The result of ``hashes`` when the build was completed."""
    pairs = (line.split("  ", 1) for line in (built / HASHES).read_text().splitlines())
    return {path: sha for sha, path in pairs}


def differences(first: dict[str, str], second: dict[str, str]) -> list[str]:
    """The files that differ."""
    return sorted({path for path, _ in first.items() ^ second.items()})


def complete(built: Path, root: Path = ROOT) -> None:
    """Add the files to a build that the builder does not make."""
    if not (built / "package.json").is_file():
        raise SystemExit(f"there is no build in {built}: `make labextension` makes it")
    shutil.copy(SOURCES / "install.json", built)  # the builder empties the folder
    (built / HASH).write_text(digest() + "\n")
    # The format of sha256sum.
    lines = [f"{sha}  {path}\n" for path, sha in hashes(built, root).items()]
    (built / HASHES).write_text("".join(lines))


def compare() -> None:
    """End the process unless a build of these sources equals the one in the repository."""
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build", prefix="labextension-") as folder:
        scratch = Path(folder)
        # Hard links, since node_modules is large; a link to that folder would change its path.
        copy = scratch / SOURCES.name
        shutil.copytree(SOURCES, copy, symlinks=True, ignore=_results, copy_function=_link)
        subprocess.run(["jlpm", "build"], cwd=copy, check=True)
        built = scratch / BUILT.relative_to(ROOT)
        complete(built, scratch)
        if other := differences(hashes(built, scratch), hashes(BUILT)):
            raise SystemExit(f"a build of labextension/ differs in {', '.join(other)}: {_AGAIN}")


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or another user's file
        shutil.copy2(source, target)


def _results(folder: str, names: list[str]) -> set[str]:
    """The files that an earlier build has written beside the sources."""
    return {"lib", "tsconfig.tsbuildinfo"} & {*names} if Path(folder) == SOURCES else set()


if __name__ == "__main__":
    compare() if sys.argv[1:] == ["--compare"] else complete(BUILT)
