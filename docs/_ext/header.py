"""The directive ``c-header``: the functions and types of a C header, with its comments.

A header here is sections (``/* ---- Title ---- */``) of declarations, each below the comment that
explains it; declarations without an empty line between them share one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

TITLE = re.compile(r"/\* -{3,} (.*?) -{3,} \*/")
TOKEN = re.compile(
    r"(?P<comment>/\*.*?\*/)|(?P<macro>#define [^\n]*)|(?P<other>#[^\n]*)"
    r"|(?P<code>[^\s#/](?:[^;{/]|/\*.*?\*/)*(?:\{.*?\n\})?[^;{}]*;)|(?P<gap>\n\s*\n)|\s+",
    re.S,
)


def words_of(comment: str) -> str:
    """A comment's text without its stars."""
    lines = comment.removeprefix("/*").removesuffix("*/").split("\n")
    return "\n".join(re.sub(r"^ \* ?", "", line).rstrip() for line in lines).strip()


def inline(text: str) -> str:
    """Plain text as reStructuredText; names of the header are code, and so is `this`."""
    parts = re.split(r"`(.+?)`|(?<![\w`])((?:sfm|SFM)_\w+(?:\(\))?|\*\w+)", text)
    found = []
    for plain, quoted, name in zip(
        parts[::3], [*parts[1::3], None], [*parts[2::3], None], strict=True
    ):
        found.append(re.sub(r"([\\*|`_])", r"\\\1", plain))
        if quoted or name:
            found.append(f"``{quoted or name}``")
    return "".join(found)


def paragraphs(text: str) -> Iterator[str]:
    """The reStructuredText of a comment: indented lines are code, `name: text` is a list."""
    code: list[str] = []
    for block in re.split(r"\n\s*\n", text):
        lines = block.split("\n")
        if all(line.startswith("    ") for line in lines):
            code += [*lines, ""]
            continue
        yield from _code(code)
        code = []
        listed: list[str] = []
        if re.match(r"[a-z]+: +\S", lines[0]) and not any(one.startswith("  ") for one in lines):
            lines = [" ".join(lines)]  # one entry
        for line in lines:
            entry = re.match(r"\w+: +\S", line)
            after_entry = bool(listed) and re.match(r"[a-z]+: ", listed[-1])
            if not listed or entry or (after_entry and not line.startswith("  ")):
                listed.append(line)
            else:
                listed[-1] += " " + line.strip()
        for one in listed:
            found = re.fullmatch(r"([a-z]+): +(.*)", one, re.S)
            yield f"* *{found[1]}*: {inline(found[2])}" if found else inline(one)
    yield from _code(code)


def _code(lines: list[str]) -> Iterator[str]:
    if lines:
        yield ".. code-block:: c\n\n" + "\n".join(lines)


def indented(text: str) -> str:
    return re.sub(r"(?m)^(?=.)", "   ", text)


def described(directive: str, signatures: list[str], body: str) -> str:
    head = f".. c:{directive}:: " + ("\n" + " " * (len(directive) + 9)).join(signatures)
    return head + ("\n\n" + indented(body) if body else "")


def members(code: str, directive: str) -> str:
    """The lines of an enum or a struct, each with the comment at its end."""
    found = []
    for line in code[code.index("{") + 1 : code.rindex("}")].split("\n"):
        if not line.strip():
            continue
        declared, _, comment = line.partition("/*")
        signature = declared.strip().rstrip(",;")
        words = inline(comment.removesuffix("*/").removesuffix(" */").strip())
        found.append(described(directive, [re.sub(r"\s+", " ", signature)], words))
    return "\n\n".join(found)


def declaration(code: str, body: str) -> str:
    """One declaration, or several that share a comment, as a directive."""
    if code.startswith("#define"):
        _, name, value = code.split(None, 2)
        return described("macro", [name], f"``{value}``\n\n{body}" if body else f"``{value}``")
    if code.startswith("enum {"):  # constants: the enum itself has no name to be found by
        constants = members(code, "macro")
        return re.sub(r"(?m)^(\.\. c:macro:: \w+) = (.*)$", r"\1\n\n   ``\2``", constants)
    if code.startswith("enum"):
        name = code.split()[1]
        return described("enum", [name], body + "\n\n" + members(code, "enumerator"))
    if code.startswith("typedef struct") and "{" in code:
        name = code.split()[2]
        return described("struct", [name], body + "\n\n" + members(code, "member"))
    if code.startswith("typedef struct"):
        return described("type", [code.split()[-1].rstrip(";")], body)
    functions = [re.sub(r"\s+", " ", one).strip() for one in code.split(";") if one.strip()]
    return described("function", functions, body)


def converted(header: str) -> Iterator[tuple[str, str]]:
    """Pairs of a section's title ("" before the first) and its reStructuredText.

    Raises:
        ValueError: something in the header is none of what is expected.
    """
    title, found, comment, codes = "", [], "", []

    def flush() -> None:
        nonlocal comment, codes
        if codes:
            same = all(re.match(r"(?!typedef|enum|#)", code) for code in codes)
            body = "\n\n".join(paragraphs(comment))
            for code in ["\n".join(codes)] if same else codes:
                found.append(declaration(code, body))
                body = ""
        elif comment:
            found.extend(paragraphs(comment))
        comment, codes = "", []

    found.extend(paragraphs(words_of(header[: header.index("*/") + 2])))
    _, opening, header = header.partition('extern "C" {\n#endif\n')
    if not opening:
        raise ValueError('the header has no extern "C"')
    at, end = 0, header.rindex("#ifdef __cplusplus")
    while at < end:
        token = TOKEN.match(header, at)
        if token is None:
            raise ValueError(f"no declaration: {header[at : at + 80]!r}")
        at = token.end()
        kind, text = token.lastgroup, token[0]
        if kind == "comment" and (new := TITLE.fullmatch(text)):
            flush()
            yield title, "\n\n".join(found)
            title, found = new[1], []
        elif kind == "comment":
            flush()
            comment = words_of(text)
        elif kind == "code" or (kind == "macro" and len(text.split()) > 2):
            codes.append(text)
        elif kind in ("gap", "other"):
            flush()
    flush()
    yield title, "\n\n".join(found)


class Header(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        path = Path(self.env.srcdir, self.arguments[0]).resolve()
        self.env.note_dependency(str(path))
        lines: list[str] = []
        for title, text in converted(path.read_text()):
            if title:
                lines += [title, "-" * len(title), ""]
            lines += [*text.split("\n"), ""]
        return self.parse_content_to_nodes_of(lines, str(path))

    def parse_content_to_nodes_of(self, lines: list[str], source: str) -> list[nodes.Node]:
        self.content = StringList(lines, source=source)
        return self.parse_content_to_nodes(allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("c-header", Header)
    return {"parallel_read_safe": True}
