"""The site of a cluster's engines, and of the notebook that uses them."""

from __future__ import annotations

import logging
import socket

import ipyparallel as ipp
import pytest

from tests.jupyter.notebook import PATIENCE, notebook

WHERE = "%%sfm\nprint('at', sfm.site)"


def test_start_and_connect_take_a_site() -> None:
    with notebook() as book, notebook() as second:
        assert "--site is 'two words'" in book.run("%sfm start 1 --site 'two words'").text
        book.run("%sfm start 1 --site lyon").ok()
        assert "at lyon" in book.run(WHERE).ok().text
        assert "lyon lyon" in book.run("print(sfm.site, sfm.site_of(0))").ok().text
        assert "site" in book.run("%sfm status").ok().text
        assert "already running" in book.run("%sfm start 1 --site lyon").ok().text
        assert "nothing started" in book.run("%sfm start 1 --site oslo").text
        book.run("%sfm scale 2").ok()
        assert book.run(WHERE).ok().text.count("at lyon") == 2
        second.run("%sfm connect").ok()
        assert "lyon" in second.run("print(sfm.site)").ok().text
        second.run("%sfm stop\n%sfm connect --site oslo").ok()
        assert "oslo lyon" in second.run("print(sfm.site, sfm.site_of(1))").ok().text
        second.run("%sfm stop").ok()


def test_a_controller_tells_its_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = ipp.Cluster(
        n=1,
        cluster_id="far",
        controller_args=["--ping=100", "--SFM.site=lyon"],
        delay=0.0,
        log_level=logging.ERROR,
    )
    cluster.start_cluster_sync()
    try:
        with cluster.connect_client_sync() as client:
            client.wait_for_engines(1, timeout=PATIENCE, interactive=False)
        with notebook("%sfm connect far") as book:
            assert "at lyon" in book.run(WHERE).ok().text
            assert "lyon" in book.run("print(sfm.site)").ok().text
            book.run("%sfm stop").ok()
            book.run(f"%sfm connect far --site {socket.gethostname()}").ok()
            assert "at lyon" in book.run(WHERE).ok().text
    finally:
        cluster.stop_cluster_sync()
