"""The import rule in Rust: a crate's modules use only those above them in the table of its lib.rs.

A file or folder of a crate's ``src`` is a module here, with all that is in it. ``cargo`` itself
keeps the order between crates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[2] / "sfm_kernel" / "native"
CRATES = {
    "core": NATIVE / "src",
    **{name: NATIVE / name / "src" for name in ("endpoint", "c", "mpi", "python")},
}
CODE_WITHOUT_WORDS = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<raw>\bb?r(?P<hashes>\#*)".*?"(?P=hashes))
    |(?P<text>b?"(?:\\.|[^"\\])*")
    |(?P<char>b?'(?:\\(?:x..|u\{\w+\}|.)|[^'\\\n])')""",
    re.DOTALL | re.VERBOSE,
)
FOR_TESTS = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]")


def blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def without_words(source: str) -> str:
    """``source`` with blanks for its comments, strings and characters."""
    return CODE_WITHOUT_WORDS.sub(lambda found: blank(found[0]), source)


def without_tests(code: str) -> str:
    """``code`` with blanks for the items that only tests compile."""
    while found := FOR_TESTS.search(code):
        depth, end = 0, len(code)
        for mark in re.finditer(r"[{}();]", code[found.end() :]):
            depth += {"{": 1, "(": 1, "}": -1, ")": -1, ";": 0}[mark[0]]
            if depth < 0 or (depth == 0 and mark[0] in "};"):
                end = found.end() + (mark.start() if depth < 0 else mark.end())
                break
        code = code[: found.start()] + blank(code[found.start() : end]) + code[end:]
    return code


def inline_modules(code: str) -> list[range]:
    """Where the modules stand that are written inside of the file."""
    found = []
    for begin in re.finditer(r"\bmod\s+\w+\s*\{", code):
        level, end = 1, begin.end()
        while level and end < len(code):
            level += {"{": 1, "}": -1}.get(code[end], 0)
            end += 1
        found.append(range(begin.end(), end))
    return found


def uses(source: str, depth: int) -> Iterator[tuple[int, str]]:
    """``(line, name)`` of every ``crate::name``, in a file whose module has ``depth`` names."""
    code = without_tests(without_words(source))
    inline = inline_modules(code)
    for found in re.finditer(r"(?<![$\w:])(crate|super(?:\s*::\s*super)*)\s*::\s*(\{|\w+)", code):
        above = found[1].count("super")
        if above and above != depth + sum(found.start() in module for module in inline):
            continue
        level = 0
        for token in re.finditer(r"\bas\s+\w+|[{},;]|(\w+)", code[found.start(2) :]):
            level += {"{": 1, "}": -1}.get(token[0], 0)
            at = found.start(2) + token.start()
            # In `crate::{a::b, c as d}` the names are a and c.
            is_first = at == found.start(2) or not code[max(0, at - 99) : at].rstrip().endswith(
                "::"
            )
            if token[1] and level < 2 and is_first:
                yield code.count("\n", 0, at) + 1, token[1]
            if level == 0:
                break


def declared(src: Path) -> set[str]:
    """The modules that lib.rs has when no tests are compiled."""
    code = without_tests(without_words((src / "lib.rs").read_text(encoding="utf-8")))
    return set(re.findall(r"\bmod\s+(\w+)", code))


def files(src: Path) -> Iterator[tuple[str, int, Path]]:
    """``(module, depth, path)`` of the files that are not for tests; lib.rs may use all."""
    modules = declared(src)
    for path in sorted(src.rglob("*.rs")):
        parts = path.relative_to(src).with_suffix("").parts
        if parts[-1] == "mod":
            parts = parts[:-1]
        if parts[0] in modules and not any(part.endswith("tests") for part in parts):
            yield parts[0], len(parts), path


@cache
def order(src: Path) -> list[str]:
    """The modules in the order of lib.rs: its table has names, blanks, and what they are.

    ``folder/file, file`` is a line about files in a folder, and names the folder.
    """
    table = re.search(r"^//! ```text\n(.*?)^//! ```$", (src / "lib.rs").read_text(), re.S | re.M)
    assert table is not None, f"{src}/lib.rs has no table of its modules: //! ```text"
    listed = []
    for line in re.findall(r"^//! (\S.*)$", table[1], re.MULTILINE):
        names = re.split(r"\s{2,}|(?<=[^,]) ", line)[0].rstrip(",").split(", ")
        listed += [names[0].partition("/")[0]] if "/" in names[0] else names
    return list(dict.fromkeys(listed))


def public_names(src: Path) -> dict[str, str]:
    """What lib.rs hands on: its name, and its module."""
    found = {}
    for module, names in re.findall(
        r"^pub use (\w+)::\{?([^;]*?)\}?;", (src / "lib.rs").read_text(), re.MULTILINE
    ):
        found |= dict.fromkeys(re.findall(r"\w+", names), module)
    return found


@pytest.mark.parametrize("crate", CRATES)
def test_the_table_names_all_modules(crate: str) -> None:
    src = CRATES[crate]
    assert sorted(order(src)) == sorted({module for module, _, _ in files(src)}), (
        f"{src}/lib.rs must name each of its modules in the table, and nothing else"
    )


IN_A_CIRCLE = {"endpoint": "endpoint, host, joining and route use each other"}


@pytest.mark.parametrize(
    "crate",
    [
        pytest.param(crate, marks=pytest.mark.xfail(strict=True, reason=IN_A_CIRCLE[crate]))
        if crate in IN_A_CIRCLE
        else crate
        for crate in CRATES
    ],
)
def test_a_module_uses_only_modules_above_it(crate: str) -> None:
    """So there is no circle either."""
    src = CRATES[crate]
    place = {module: number for number, module in enumerate(order(src))}
    named = public_names(src)
    wrong = []
    for module, depth, path in files(src):
        for line, name in uses(path.read_text(encoding="utf-8"), depth):
            used = named.get(name, name)
            if used in place and place[used] > place.get(module, -1):
                wrong.append(
                    f"{path.relative_to(NATIVE)}:{line}: {module} uses {used}, which stands below "
                    f"it in the table of {src.relative_to(NATIVE)}/lib.rs"
                )
    assert not wrong, "\n".join(wrong)


def test_it_sees_every_form() -> None:
    source = """
        use crate::a::{self, no};
        use crate::{b::no, c::{no, no}, d as no};
        use super::e::no;
        mod inner { use super::no; use super::super::f; }
        fn no() { crate::g::no(super::h::no, $crate::no::no) } // crate::no
        #[cfg(test)]
        use crate::no;
        #[cfg(test)]
        mod tests { use crate::no::{no}; fn no() { "}" } }
        const NO: char = '"'; type Kept<'a> = crate::i<'a>;
        const NOT: &str = r#"crate::no"#;
    """
    assert [name for _, name in uses(source, depth=1)] == list("abcdefghi")
    assert list(uses("use super::no;\nuse super::super::a;", depth=2)) == [(2, "a")]
