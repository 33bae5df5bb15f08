"""An administrator's settings, in a configuration and in the environment; and idle time."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from traitlets.config import Config

from sfm_kernel.errors import BadSetting
from sfm_kernel.jupyter import idle
from sfm_kernel.jupyter.settings import (
    HUB_IDLE,
    NEVER,
    Settings,
    in_words,
    seconds,
    size,
    size_in_words,
)

HUB = {"JUPYTERHUB_USER": "ada"}


def config(**said: Any) -> Config:
    return Config({"SFM": said})


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("90s", 90), ("30m", 1800), ("2h", 7200), ("1.5h", 5400), ("45", 45), ("never", NEVER)],
)
def test_times(text: str, wanted: float) -> None:
    assert seconds(text) == wanted


@pytest.mark.parametrize("text", ["", "soon", "-5m", "0s", "5 minutes", "1e9", "nan", "inf"])
def test_a_text_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write 90s, 30m, 2h or never"):
        seconds(text)


def test_sizes() -> None:
    assert [size(text) for text in ("0", "512M", "1G", "1.5g", "1GiB", "2kB")] == [
        0, 512 << 20, 1 << 30, 3 << 29, 1 << 30, 2048,
    ]  # fmt: skip
    for text in ("", "much", "-1G", "1 X"):
        with pytest.raises(ValueError, match="write 512M or 1G"):
            size(text)


def test_in_words() -> None:
    assert [in_words(span) for span in (1, 90, 60, 1800, 5400, 7200, 86400, 2.5)] == [
        "1 second", "90 seconds", "1 minute", "30 minutes", "90 minutes", "2 hours", "1 day",
        "2.5 seconds",
    ]  # fmt: skip
    assert [size_in_words(nbytes) for nbytes in (0, 300 << 20, 1 << 30, 3 << 29, 1001 << 20)] == [
        "0 bytes", "300 MB", "1 GB", "1.5 GB", "1001 MB",
    ]  # fmt: skip


def test_nothing_is_limited_where_nobody_says_so() -> None:
    settings = Settings(environment={})
    assert (settings.max_engines, settings.memory_limit, settings.threads) == (0, 0, 1)
    assert (settings.idle, settings.max_idle, settings.scope) == (NEVER, NEVER, "this machine")


def test_on_a_hub_idle_engines_end() -> None:
    assert Settings(environment=HUB).idle == HUB_IDLE
    assert Settings(environment=HUB).scope == "this hub"
    assert Settings(config(idle="2h"), HUB).idle == 7200, "somebody has chosen"
    assert Settings(config(idle="never"), HUB).idle == NEVER
    assert Settings(environment={**HUB, "SFM_IDLE": "never"}).idle == NEVER
    assert Settings(environment={**HUB, "SFM_MAX_IDLE": "10m"}).idle == 600


def test_the_smaller_counts() -> None:
    said = config(max_engines=100, memory_limit="8G", idle="5m", threads=8)
    env = {"SFM_MAX_ENGINES": "8", "SFM_MEMORY_LIMIT": "1G", "SFM_IDLE": "1h", "SFM_THREADS": "2"}
    both = Settings(said, env)
    assert (both.max_engines, both.memory_limit, both.idle, both.threads) == (8, 1 << 30, 300, 2)
    assert Settings(environment=env).threads == 2, "what is only the default does not count"
    both.configured.max_engines = 4  # `%config SFM.max_engines = 4`
    assert both.max_engines == 4
    both.configured.max_engines = 0
    assert both.max_engines == 8


@pytest.mark.parametrize(
    ("variable", "text", "says"),
    [
        ("SFM_IDLE", "soon", "write 90s, 30m, 2h or never"),
        ("SFM_MEMORY_LIMIT", "1M", "less than an engine needs to start: 256 MB or more"),
        ("SFM_MAX_ENGINES", "many", "many"),
        ("SFM_MAX_ENGINES", "-1", "-1"),
    ],
)
def test_an_impossible_setting_is_refused_with_its_place(
    variable: str, text: str, says: str
) -> None:
    with pytest.raises(BadSetting, match=f"^{variable}={text} in the environment.*{says}"):
        Settings(environment={variable: text})


def test_a_configuration_that_makes_no_sense() -> None:
    with pytest.raises(BadSetting, match=r"c\.SFM in a configuration file: .*write 512M or 1G"):
        Settings(config(memory_limit="lots"), {})


def test_another_process_is_told_all_of_it() -> None:
    said = config(max_engines=100, memory_limit="1.5G", max_idle="1d", threads=0)
    settings = Settings(said, HUB)
    other = Settings(environment=settings.environment())
    for name in ("max_engines", "memory_limit", "threads", "idle", "max_idle"):
        assert getattr(settings, name) == getattr(other, name), name


class _Played(idle.IdleWatch):
    """A watch with a simulated clock and world: each reading is a time and the activity then."""

    def __init__(self, seconds: float, readings: Sequence[tuple[float, object]]) -> None:
        self.ended = 0
        super().__init__(None, math.inf, threading.Lock(), self._count)  # type: ignore[arg-type]
        self._seconds, self._readings = seconds, iter(readings)
        self._over = self  # type: ignore[assignment]

    def _count(self) -> None:
        self.ended += 1

    def wait(self, pause: float) -> bool:
        """Replaces an event's method."""
        self.now = next(self._readings, None)
        return self.now is None

    def is_set(self) -> bool:
        """Replaces an event's method."""
        return False

    def _activity(self) -> object:
        assert self.now is not None
        return self.now[1]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Run a watch of 100 s; returns whether it ended the engines."""

    def run(*readings: tuple[float, object]) -> bool:
        watch = _Played(100.0, [*readings])
        watch.now = (0.0, None)
        clock = SimpleNamespace(monotonic=lambda: watch.now[0] if watch.now else 0.0)
        with monkeypatch.context() as patched:
            patched.setattr(idle, "time", clock)
            watch._run()
        assert watch.ended <= 1
        return bool(watch.ended)

    return run


def test_idle_time_is_what_was_seen(play: Any) -> None:
    rests: list[tuple[float, object]] = [(10.0 * n, "rests") for n in range(1, 12)]
    assert play(*rests)
    assert not play(*rests[:-1]), "the first look only tells what was then"
    works = [(time, None if time == 60 else activity) for time, activity in rests]
    assert not play(*works)
    moved = [(time, "rests" if time < 60 else "rests again") for time, activity in rests]
    assert not play(*moved), "something has happened between two looks"


def test_a_machine_that_slept_has_not_used_the_time_up(play: Any) -> None:
    slept: list[tuple[float, object]] = [(10.0, "rests"), (20.0, "rests"), (90000.0, "rests")]
    assert not play(*slept)
    assert play(*slept, *[(90000.0 + 10.0 * n, "rests") for n in range(1, 9)])
