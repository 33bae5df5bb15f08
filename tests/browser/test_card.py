"""The quick-reference card is one page of paper."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.browser.lab import REPOSITORY

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser


def test_prints_on_one_page(page: Page) -> None:
    page.goto((REPOSITORY / "notebooks/quick-reference.html").as_uri())
    printed = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b[^s]", printed)) == 1
    # Not by being too wide, either: no line is cut at the edge of the paper.
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
