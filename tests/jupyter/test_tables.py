"""Tables in text and HTML."""

from __future__ import annotations

from sfm_kernel.jupyter.tables import SitesView, Table


def test_text_aligns_numbers_right_and_words_left() -> None:
    table = Table(["name", "queued"], [["A", 7], ["longer", 1234], [None, 0]])
    assert str(table).splitlines() == [
        "name    queued",
        "------  ------",
        "A            7",
        "longer    1234",
        "             0",
    ]


def test_html_is_escaped() -> None:
    html = Table(["<h>"], [["<script>alert('x')</script>"]])._repr_html_()
    assert "&lt;script&gt;" in html
    assert "&lt;h&gt;" in html
    assert "<script>" not in html


def test_a_long_value_is_cut_in_text_only() -> None:
    table = Table(["message"], [["x" * 500]])
    assert max(map(len, str(table).splitlines())) < 100
    assert "x" * 500 in table._repr_html_()


def test_a_line_break_stays_in_its_row() -> None:
    assert "a b" in str(Table(["text"], [["a\nb"]]))


def test_without_rows_there_are_headings() -> None:
    assert str(Table(["name", "rank"], [])) == "name  rank\n----  ----"


def test_a_site_with_a_wrong_clock_is_told_of() -> None:
    sentence = "a clock at lyon is 60.0 s behind this machine's"
    sites = [
        {"name": name, "processes": [0], "gateways": [], "sentence": text}
        for name, text in (("lyon", sentence), ("oslo", ""))
    ]
    shown = SitesView({"processes": [], "sites": sites, "links": []})
    assert shown.sentences[0] == sentence and sentence in repr(shown)
