"""What can be said of a C source without compiling it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_NO_CODE = re.compile(
    r"//(?:\\\n|[^\n])*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL
)
_MAIN = re.compile(r"(?<![\w.>#])main\s*\([^;{}]*\)\s*(?:[\w\s,*\[\];]*?)\{", re.DOTALL)


def without_comments(text: str) -> str:
    """The code, with comments and what stands in quotes blanked; lines stay where they are."""

    def blank(found: re.Match[str]) -> str:
        newlines = "".join(one for one in found[0] if one == "\n")
        if found[0][0] in "\"'":
            return found[0][0] * 2 + newlines
        return " " + newlines

    return _NO_CODE.sub(blank, text)


def defines_main(text: str) -> bool:
    """Whether a program begins in this source.

    >>> defines_main("int main(int argc, char **argv) { return 0; }")
    True
    >>> defines_main("int main(void); /* int main() { } */ int domain(int x) { return x; }")
    False
    """
    return bool(_MAIN.search(without_comments(text)))


class Declared(NamedTuple):
    """What a source declares at its outermost level.

    Attributes:
        types: its types and numeric macros, as cffi reads them.
        functions: of each function that it defines, the declaration.
        language: "c" or "c++".
    """

    types: list[str]
    functions: dict[str, str]
    language: str

    def hidden(self, name: str) -> str:
        """Why a function of the source is not found in its library."""
        if self.language == "c++":
            return f'Python finds functions of C only: write `extern "C"` in front of {name}'
        return f"{name} is static or inline, and so not there for others"


def declared(text: str, language: str) -> Declared:
    """What a cell declares.

    >>> declared("#define N 3\\nstatic int k;\\ndouble f(double *x, int n) { return x[n]; }", "c")
    Declared(types=['#define N 3'], functions={'f': 'double f(double *x, int n)'}, language='c')
    """
    code = without_comments(text)
    types = [f"#define {name} {value}" for name, value in _NUMBER.findall(code)]
    code = re.sub(r"(?m)^[ \t]*#(?:\\\n|[^\n])*", "", code)
    code = re.sub(r'extern\s*""\s*\{', "", code)  # its brace is closed by one too many: passed over
    code = re.sub(r'extern\s*""', "", code)
    functions: dict[str, str] = {}
    for head, body in _parts(code):
        if not body:
            if head.startswith(("typedef", "struct", "union", "enum")) and "(" not in head:
                types.append(f"{head};")
            continue
        words = " ".join(re.sub(r"__attribute__\s*\(\(.*?\)\)", "", head).split())
        if words.startswith(("typedef", "struct", "union", "enum")) and "(" not in words:
            types.append(f"{words} {body};")
        elif found := _FUNCTION.search(words):
            name = found[1]
            functions[name] = re.sub(r"^(?:(?:static|inline|extern)\s+)+", "", words)
    return Declared(types, functions, language)


def _parts(code: str) -> Iterator[tuple[str, str]]:
    """Each declaration: what stands before its braces, or its semicolon, and the braces."""
    head, at = 0, 0
    while at < len(code):
        one = code[at]
        if one == ";":
            yield code[head:at].strip(), ""
            head = at + 1
        elif one == "}":
            head = at + 1
        elif one == "{":
            depth, end = 1, at + 1
            while end < len(code) and depth:
                depth += {"{": 1, "}": -1}.get(code[end], 0)
                end += 1
            before, body = code[head:at].strip(), code[at:end]
            if "=" in before.partition("(")[0]:  # the values of a variable
                at = end
                continue
            if "(" not in before:  # a type, which goes on to its semicolon
                stop = code.find(";", end)
                stop = len(code) if stop < 0 else stop
                yield before, f"{body}{code[end:stop]}"
                end = stop + 1
            else:
                yield before, body
            head = at = end
            continue
        at += 1


_NUMBER = re.compile(r"(?m)^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(\d+|0[xX][0-9a-fA-F]+)[ \t]*$")
_FUNCTION = re.compile(r"([A-Za-z_]\w*)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)$")
