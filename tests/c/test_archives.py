"""Archives of strangers: what is refused, and that a refusal costs little and is one sentence."""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import random
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sfm_kernel.mpi.launch import archives, tapes
from sfm_kernel.mpi.launch.archives import BadArchive, unpack
from tests.mpi.launching import run

PROGRAM = "int main() {}"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where archives are unpacked; the current folder has them."""
    for name in ("here", "unpacked"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "unpacked"


def write(*names: str) -> tuple[str, str]:
    """A zip and a tar with these files; a name that ends in / is a folder."""
    with zipfile.ZipFile("bad.zip", "w") as archive, tarfile.open("bad.tar", "w") as tape:
        for name in names:
            info = tarfile.TarInfo(name)
            info.type = tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
            archive.writestr(name, "" if info.isdir() else PROGRAM)
            tape.addfile(info)
    return "bad.zip", "bad.tar"


def header(kind: bytes, size: int, name: str = "x") -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["../out.c"], "leads out of the archive's folder"),
        (["/tmp/out.c"], "leads out of the archive's folder"),
        (["a/../../out.c"], "leads out of the archive's folder"),
        (["n" * 300], "cannot be unpacked: File name too long"),
        (["d/" * 90 + "n" * 4000], "more than 4096 bytes"),
        (["d/" * 101], "more than 100 folders"),
        (["a/", "a"], "'a' cannot be unpacked: Is a directory"),
        (["a", "a/"], "'a/?' cannot be unpacked: File exists"),
        (["a", "a/b/c"], "'a/b/c' cannot be unpacked: Not a directory"),
    ],
)
@pytest.mark.parametrize("kind", [0, 1], ids=["zip", "tar"])
def test_what_is_refused(kind: int, names: list[str], said: str, folder: Path) -> None:
    with pytest.raises(BadArchive, match=said):
        unpack(write(*names)[kind], str(folder))
    if "leads out" in said:
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "kind",
    [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK],
)
def test_a_header_is_small(kind: bytes, folder: Path) -> None:
    """It is refused for what it claims: not a byte of it is read."""
    Path("bad.tar.gz").write_bytes(gzip.compress(header(kind, 1 << 30)))
    with pytest.raises(BadArchive, match="claims a header of 1073741824 bytes"):
        unpack("bad.tar.gz", str(folder))


def test_all_headers_together_are_small(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tapes, "MOST_BYTES_OF_HEADERS", 1 << 20)
    text = b"11 a=12345\n" * 90
    pax = header(tarfile.XHDTYPE, len(text)) + text.ljust(1024, b"\0")
    for bad in (pax * 1000, header(tarfile.DIRTYPE, 0) * 3000):
        with gzip.open("bad.tar.gz", "wb") as tape:
            tape.write(bad)
        with pytest.raises(BadArchive, match=r"headers?( of|$)"):
            unpack("bad.tar.gz", str(folder))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"11 size=-1\n", "negative size"),
        (b"28 GNU.sparse.realsize=9999\n", "sparse"),
        (b"1" * 5000, "damaged"),  # Python's own regular expression takes the square of it
        (b"x" * 5000, "damaged"),
        (b"0 a=b\n", "without a length"),
        (b"25 size=9999999999999999\n", "2 GB"),
    ],
)
def test_a_pax_header_that_lies(text: bytes, said: str, folder: Path) -> None:
    pax = header(tarfile.XHDTYPE, len(text)) + text + b"\0" * (-len(text) % tarfile.BLOCKSIZE)
    Path("bad.tar").write_bytes(pax + header(tarfile.REGTYPE, 0))
    with pytest.raises(BadArchive, match=said):
        unpack("bad.tar", str(folder))


def test_the_directory_of_a_zip_is_small(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_DIRECTORY_BYTES", 1 << 20)
    write("n" * 100)
    end = Path("bad.zip").read_bytes()[-22:]
    claim = end[:12] + (1 << 30).to_bytes(4, "little") + end[16:]
    with open("bad.zip", "wb") as file:
        file.truncate(3 << 30)  # a hole: it costs no disk
        file.seek(0, io.SEEK_END)
        file.write(claim)
    with pytest.raises(BadArchive, match="claims 1024 MB of names"):
        unpack("bad.zip", str(folder))
    assert not archives.holds("bad.zip", "__main__.py")


def test_memory_for_decompressing_is_limited(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tarfile.open("good.tar.xz", "w:xz", preset=9) as tape:
        tape.addfile(tarfile.TarInfo("main.c"))
    unpack("good.tar.xz", str(folder))
    monkeypatch.setattr(tapes, "MOST_MEMORY", 32 << 20)
    with pytest.raises(BadArchive, match="Memory usage limit"):
        unpack("good.tar.xz", str(folder))
    with zipfile.ZipFile("bad.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("main.c", PROGRAM)
    with pytest.raises(BadArchive, match="is packed with LZMA"):
        unpack("bad.zip", str(folder))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_there_are_no_links(kind: bytes) -> None:
    info = tarfile.TarInfo("main.c")
    info.type, info.linkname = kind, "/etc/passwd"
    with tarfile.open("bad.tar", "w") as tape:
        tape.addfile(info)
    assert "is a link or a device" in run("-n", "1", "bad.tar").stderr
    Path("broken.tar.gz").write_bytes(b"\x1f\x8bnothing")
    assert "is damaged, or no archive" in run("-n", "1", "broken.tar.gz").stderr


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
@pytest.mark.parametrize("packing", ["", "gz", "bz2", "xz"])
def test_every_kind_of_tar_is_read(form: int, packing: str, folder: Path) -> None:
    contents = {"a" * 90: b"", "b/" + "c" * 90: bytes(70_000), "run": b"#!/bin/sh\n"}
    if form != tarfile.USTAR_FORMAT:
        contents |= {f"{'long/' * 30}ä{'ö' * 60}": b"x" * 512}
    name = f"good.tar.{packing}".rstrip(".")
    with tarfile.open(name, f"w:{packing}", format=form) as tape:
        for path, content in contents.items():
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(content), 0o755 if path == "run" else 0o644
            info.mtime = 1.5  # type: ignore[assignment]  # pax has a header for it
            tape.addfile(info, io.BytesIO(content))
    unpack(name, str(folder))
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    assert {path: file.read_bytes() for path, file in found.items()} == contents
    assert {path for path, file in found.items() if file.stat().st_mode & 0o100} == {"run"}


def zipped() -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("a", "b/c"):
            archive.writestr(name, "int main() {}" * 50)
    return whole.getvalue()


def taped() -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.PAX_FORMAT) as tape:
        for name in ("a" * 150, "b/ä"):
            info = tarfile.TarInfo(name)
            info.size = 600
            tape.addfile(info, io.BytesIO(bytes(600)))
    return whole.getvalue()


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("x.zip", zipped),
        ("x.tar", taped),
        ("x.tgz", lambda: gzip.compress(taped())),
        ("x.tar.xz", lambda: lzma.compress(taped())),
    ],
)
def test_damage_is_refused_or_not_seen(
    name: str, whole: Callable[[], bytes], folder: Path, effort: int
) -> None:
    chance = random.Random(7)
    good = whole()
    for number in range(100 * effort):
        bad = bytearray(good)
        for _ in range(chance.randrange(1, 4)):
            bad[chance.randrange(len(bad))] = chance.randrange(256)
        Path(name).write_bytes(bad[: chance.randrange(len(bad))] if number % 3 == 0 else bad)
        place = folder / str(number)
        place.mkdir()
        with contextlib.suppress(BadArchive):
            unpack(name, str(place))
