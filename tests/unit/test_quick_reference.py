"""The quick-reference card says what the code says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from sfm_kernel.jupyter.commands import HELP

ROOT = Path(__file__).parents[2]
CARD = ROOT / "notebooks" / "quick-reference.html"


def test_the_card_is_what_the_tool_makes() -> None:
    command = [sys.executable, str(ROOT / "tools/quick_reference.py"), "--check"]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_command_is_on_it() -> None:
    text = CARD.read_text()
    for command in set(re.findall(r"^%sfm (\w+)", HELP, re.MULTILINE)):
        assert f"<code>%sfm {command}" in text, command
    assert text.count("<h2>") >= 8 and "None</td>" not in text
