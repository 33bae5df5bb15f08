"""The notebook of sites."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.notebooks.reading import demo, outputs, pictures, text

pytestmark = pytest.mark.timeout(900)


def test_sites(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    notebook, printed = demo("10-sites", 5, tmp_path, capfd)
    routes = text(notebook, "sharing import routes")
    for route in (r"a2 +A +1 +shm", r"a3 +A +2 +zmq", r"b1 +B +1 +gateway"):
        assert re.search(route, routes)
    failed = text(notebook, "failing import killed")
    assert re.search(r"lost +0\n", failed) and re.search(r"doubled +0\n", failed)
    for source in ("AfterSilence(0.02", "['start']", "['pairs 2']", "['requests']", "nas.iter"):
        (picture,) = pictures(notebook, source)
        assert picture.width > 500 and len(picture.convert("RGB").getcolors(1 << 24)) > 100
        assert re.search(r"Not disturbed\.|Disturbed, since", text(notebook, source))
    for source in (
        "import routes", "'more, µs'", "sites.counted(", ".groupby(", "import killed",
        "PATTERNS.items()", "nas.counts(",
    ):  # fmt: skip
        (shown,) = (
            output.data
            for output in outputs(notebook, source)
            if "text/html" in output.get("data", {}) and "image/png" not in output.data
        )
        assert 'class="dataframe"' in shown["text/html"] and shown["text/plain"] in printed
    asked = text(notebook, "route_kind(other)")
    assert "a2: shm, " in asked and "b1: gateway, " in asked and "b2: gateway, " in asked
    assert re.search(r"\bb2 +3 +B ", text(notebook, "%sfm status"))
    seen = text(notebook, "%sfm sites")
    assert "A → B" in seen and "B-1" in seen and "emulated" in seen
