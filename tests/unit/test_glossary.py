"""The glossary in CONTRIBUTING: few words, and the code uses them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SOURCES = ("sfm_kernel/**/*.py", "sfm_kernel/native/**/*.rs", "labextension/src/**/*.ts*")

TYPE = re.compile(
    r"^\s*(?:export |pub(?:\([a-z ]+\))? )*(?:abstract )?"
    r"(?:class|struct|enum|trait|type|interface) (\w+)",
    re.MULTILINE,
)


def rows() -> list[list[str]]:
    """Word, meaning and retired words of each line of the table."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("## Glossary")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def types() -> Iterator[tuple[Path, str]]:
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            if "node_modules" not in path.parts and "target" not in path.parts:
                for found in TYPE.finditer(path.read_text(encoding="utf-8")):
                    yield path.relative_to(ROOT), found[1]


def parts(name: str) -> set[str]:
    """``"RingSender"`` → ``{"ring", "sender"}``."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def test_it_is_short() -> None:
    assert 30 < len(rows()) <= 40


@pytest.mark.parametrize("word", sorted({word for row in rows() for word in row[2].split(", ")}))
def test_no_type_has_a_retired_name(word: str) -> None:
    if word in ("", "line", "relay"):  # a line of text, and the room of that name
        return
    named = [f"{path}: {name}" for path, name in types() if word in parts(name)]
    assert named == []


def test_types_of_the_glossary_exist() -> None:
    known = {name for _, name in types()}
    words = {word for row in rows() for word in re.split(r"[,; `]+", row[0] + " " + row[1])}
    named = {word for word in words if re.fullmatch(r"[A-Z][a-z]+[A-Z]\w+", word)}
    assert len(named) > 5
    assert named - known == set()


def test_it_finds_types_of_each_language() -> None:
    source = "pub(super) struct RingSender {}\nclass Ring:\n  export interface Way {\n"
    assert TYPE.findall(source) == ["RingSender", "Ring", "Way"]
    assert parts("HTTPWayOut_two") == {"http", "way", "out", "two"}
