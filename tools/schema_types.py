"""Writes labextension/src/model/types.ts from sfm_kernel/observe/schema.json.

    python tools/schema_types.py            writes it
    python tools/schema_types.py --check    compares the file; tests run this

The types describe the server's messages to the panel: a field that the schema does not have does
not exist in TypeScript either.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SCHEMA = ROOT / "sfm_kernel/observe/schema.json"
TARGET = ROOT / "labextension/src/model/types.ts"

ROOTS = ("part", "server_text")
"""Definitions that the panel needs; the definitions that these refer to are added."""

HEAD = """\
/**
 * What the server sends, made of sfm_kernel/observe/schema.json by tools/schema_types.py: change
 * the schema, not this file. Times are seconds since 1970, lengths bytes. Every text comes from a
 * program or a message: it is shown as a text node.
 */
"""
TYPES = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean",
         "null": "null"}  # fmt: skip
WIDTH = 100

Schema = dict[str, Any]


def page(definitions: dict[str, Schema]) -> str:
    """The text of the file, in the order of the definitions."""
    needed = _reached(definitions)
    declared = [_declaration(name, definitions[name]) for name in definitions if name in needed]
    return "\n".join([HEAD, *declared])


def _reached(definitions: dict[str, Schema]) -> set[str]:
    found: set[str] = set()
    ahead = list(ROOTS)
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead += _references(definitions[name])
    return found


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield _referred(value)
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


def _referred(schema: Schema) -> str:
    return str(schema["$ref"]).removeprefix("#/$defs/")


def _declaration(name: str, schema: Schema) -> str:
    remark = _remark(schema, "")
    title = _title(name)
    if schema.get("type") == "object":
        fields = "".join(
            f"{_remark(kind, '  ')}  {_field(field, kind, schema)};\n"
            for field, kind in schema["properties"].items()
        )
        return f"{remark}export interface {title} {{\n{fields}}}\n"
    found = _choices(schema)
    line = f"export type {title} = {' | '.join(found)};"
    if len(line) > WIDTH:
        line = f"export type {title} =" + "".join(f"\n  | {choice}" for choice in found) + ";"
    return f"{remark}{line}\n"


def _field(name: str, schema: Schema, owner: Schema) -> str:
    """A field of an object; if it is not required, it may be missing."""
    mark = "" if name in owner["required"] else "?"
    return f"readonly {name}{mark}: {' | '.join(_choices(schema))}"


def _choices(schema: Schema) -> list[str]:
    """The alternative types of a value."""
    if "$ref" in schema:
        return [_title(_referred(schema))]
    if "oneOf" in schema:
        return [name for choice in schema["oneOf"] for name in _choices(choice)]
    if "enum" in schema:
        return ["null" if value is None else f"'{value}'" for value in schema["enum"]]
    names = schema["type"]
    return [_type(name, schema) for name in ([names] if isinstance(names, str) else names)]


def _type(name: str, schema: Schema) -> str:
    if name == "object":
        fields = [_field(field, kind, schema) for field, kind in schema["properties"].items()]
        return f"{{ {'; '.join(fields)} }}"
    if name != "array":
        return TYPES[name]
    if "prefixItems" in schema:
        items = [" | ".join(_choices(kind)) for kind in schema["prefixItems"]]
        return f"readonly [{', '.join(items)}]"
    item = " | ".join(_choices(schema["items"]))
    return f"readonly {item}[]" if item.isalpha() else f"ReadonlyArray<{item}>"


def _title(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _remark(schema: Schema, indent: str) -> str:
    # The first sentence; the schema has the rest.
    text = re.split(r"(?<=\.)\s", schema.get("description", ""))[0]
    if not text:
        return ""
    line = f"{indent}/** {text} */\n"
    if len(line) <= WIDTH:
        return line
    lines = textwrap.wrap(text, WIDTH - len(indent) - 3)
    inner = "".join(f"{indent} * {text}\n" for text in lines)
    return f"{indent}/**\n{inner}{indent} */\n"


def main() -> int:
    """Write the types, or compare them; the exit status."""
    text = page(json.loads(SCHEMA.read_text(encoding="utf-8"))["$defs"])
    shown = TARGET.relative_to(ROOT)
    if sys.argv[1:] == ["--check"]:
        if TARGET.read_text(encoding="utf-8") == text:
            return 0
        print(f"{shown} does not match schema.json: run python tools/schema_types.py")
        return 1
    TARGET.write_text(text, encoding="utf-8")
    print(shown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
