"""Facts about a C source that need no compiler."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_NO_CODE = re.compile(
    r"//(?:\\\n|[^\n])*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL
)
_MAIN = re.compile(r"(?<![\w.>#])main\s*\([^;{}]*\)\s*(?:[\w\s,*\[\];]*?)\{", re.DOTALL)


def without_comments(text: str) -> str:
    """The code with comments and quoted text blanked; line numbers do not change."""

    def blank(found: re.Match[str]) -> str:
        newlines = "".join(character for character in found[0] if character == "\n")
        if found[0][0] in "\"'":
            return found[0][0] * 2 + newlines
        return " " + newlines

    return _NO_CODE.sub(blank, text)


def defines_main(text: str) -> bool:
    """True if this source defines main.

    >>> defines_main("int main(int argc, char **argv) { return 0; }")
    True
    >>> defines_main("int main(void); /* int main() { } */ int domain(int x) { return x; }")
    False
    """
    return bool(_MAIN.search(without_comments(text)))


class Declared(NamedTuple):
    """The declarations at the outermost level of a source.

    Attributes:
        types: its types and numeric macros, as cffi reads them.
        functions: the declaration of each function that it defines, by name.
        language: "c" or "c++".
    """

    types: list[str]
    functions: dict[str, str]
    language: str

    def hidden(self, name: str) -> str:
        """The reason why a function of the source is not in its library."""
        if self.language == "c++":
            return f'Python finds functions of C only: write `extern "C"` in front of {name}'
        return f"{name} is static or inline, and therefore not visible outside"


def declared(text: str, language: str) -> Declared:
    """The declarations of a cell.

    >>> declared("#define N 3\\nstatic int k;\\ndouble f(double *x, int n) { return x[n]; }", "c")
    Declared(types=['#define N 3'], functions={'f': 'double f(double *x, int n)'}, language='c')
    """
    code = without_comments(text)
    types = [f"#define {name} {value}" for name, value in _NUMBER.findall(code)]
    code = re.sub(r"(?m)^[ \t]*#(?:\\\n|[^\n])*", "", code)
    code = re.sub(r'extern\s*""\s*\{', "", code)  # the closing brace remains, and is skipped
    code = re.sub(r'extern\s*""', "", code)
    functions: dict[str, str] = {}
    for head, body in _declarations(code):
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


def _declarations(code: str) -> Iterator[tuple[str, str]]:
    """Each declaration: the text before its braces or semicolon, and the text in braces."""
    head, position = 0, 0
    while position < len(code):
        character = code[position]
        if character == ";":
            yield code[head:position].strip(), ""
            head = position + 1
        elif character == "}":
            head = position + 1
        elif character == "{":
            depth, end = 1, position + 1
            while end < len(code) and depth:
                depth += {"{": 1, "}": -1}.get(code[end], 0)
                end += 1
            before, body = code[head:position].strip(), code[position:end]
            if "=" in before.partition("(")[0]:  # the values of a variable
                position = end
                continue
            if "(" not in before:  # a type, which extends to its semicolon
                stop = code.find(";", end)
                stop = len(code) if stop < 0 else stop
                yield before, f"{body}{code[end:stop]}"
                end = stop + 1
            else:
                yield before, body
            head = position = end
            continue
        position += 1


_NUMBER = re.compile(r"(?m)^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(\d+|0[xX][0-9a-fA-F]+)[ \t]*$")
_FUNCTION = re.compile(r"([A-Za-z_]\w*)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)$")
