"""The site of a cluster's engines, and of the notebook that uses them."""

from __future__ import annotations

import socket

from tests.jupyter.notebook import notebook
from tests.jupyter.test_cluster import launched

WHERE = "%%sfm\nprint('at', sfm.site)"


def test_start_and_connect_take_a_site() -> None:
    with notebook() as book, notebook() as second:
        assert "--site is 'two words'" in book.run("%sfm start 1 --site 'two words'").text
        book.run("%sfm start 1 --site lyon").ok()
        assert "at lyon" in book.text(WHERE)
        assert "lyon lyon" in book.text("print(sfm.site, sfm.site_of(0))")
        assert "site" in book.text("%sfm status")
        assert "already running" in book.text("%sfm start 1 --site lyon")
        assert "nothing started" in book.run("%sfm start 1 --site oslo").text
        book.run("%sfm scale 2").ok()
        assert book.text(WHERE).count("at lyon") == 2
        second.run("%sfm connect").ok()
        assert "lyon" in second.text("print(sfm.site)")
        second.run("%sfm stop\n%sfm connect --site oslo").ok()
        assert "oslo lyon" in second.text("print(sfm.site, sfm.site_of(1))")
        second.run("%sfm stop").ok()


def test_a_controller_tells_its_engines() -> None:
    with launched(1, "far", "--SFM.site=lyon"), notebook("%sfm connect far") as book:
        assert "at lyon" in book.text(WHERE)
        assert "lyon" in book.text("print(sfm.site)")
        book.run("%sfm stop").ok()
        book.run(f"%sfm connect far --site {socket.gethostname()}").ok()
        assert "at lyon" in book.text(WHERE)
