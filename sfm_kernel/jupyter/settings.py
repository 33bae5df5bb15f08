"""The administrator's settings: ``c.SFM`` in a configuration file, ``SFM_*`` in the environment.

    c.SFM.max_engines = 8        SFM_MAX_ENGINES=8
    c.SFM.memory_limit = "1G"    SFM_MEMORY_LIMIT=1G
    c.SFM.threads = 1            SFM_THREADS=1
    c.SFM.idle = "30m"           SFM_IDLE=30m
    c.SFM.max_idle = "2h"        SFM_MAX_IDLE=2h

A notebook reads ``ipython_kernel_config.py``, the panel ``jupyter_server_config.py``. If both a
file and the environment set a limit, the smaller one counts: a file in a user's home cannot raise
a limit that the administrator has set in the environment of the user's server. An error about a
limit is one sentence that says what to do. ``docs/hub.md`` says what limits cannot do: a user who
may run programs may run any program.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from traitlets import Float, Integer, TraitError
from traitlets.config import Config, Configurable

from sfm_kernel.errors import BadSetting

NEVER = math.inf
"""The idle time (s) of engines that are never ended."""

HUB_IDLE = 1800.0
"""The idle time (s) after which engines end on a hub, unless the administrator has set one."""

LEAST_MEMORY = 256 << 20
"""The smallest limit (bytes): an engine with NumPy needs some 160 MB before its first cell."""

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_SIZES = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def seconds(text: str) -> float:
    """``90s``, ``30m``, ``2h``, ``1.5h``, ``never`` in seconds. Raises ValueError."""
    if text.strip() == "never":
        return NEVER
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)([smhd]?)", text.strip())
    if not found or not float(found[1]):
        raise ValueError(f"{text!r} is no time: write 90s, 30m, 2h or never")
    return float(found[1]) * _UNITS[found[2]]


def in_words(time: float) -> str:
    """A time (s) in the longest unit that needs no fraction: ``30 minutes``."""
    for name, unit in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if time >= unit and time % unit == 0:
            count = round(time / unit)
            return f"{count} {name}{'' if count == 1 else 's'}"
    return f"{time:g} second{'' if time == 1 else 's'}"


def size(text: str) -> int:
    """``512M``, ``1G``, ``1.5G`` in bytes. Raises ValueError."""
    found = re.fullmatch(r"(\d{1,12}(?:\.\d{1,9})?)([kmgt]?)(?:i?b)?", text.strip().lower())
    if not found:
        raise ValueError(f"{text!r} is no size: write 512M or 1G")
    return int(float(found[1]) * 2 ** _SIZES[found[2]])


def size_in_words(count: float) -> str:
    """``1.5 GB``, with units of 1024, as limits are usually set."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1024:
            return f"{count:.3g} {unit}" if count < 1000 else f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.3g} GB"


class _FromText:
    """A trait whose value may be a text, which ``read`` parses."""

    read: Callable[[str], float]

    def validate(self, obj: Any, value: Any) -> Any:
        """The value as a number."""
        value = self.from_string(value) if isinstance(value, str) else value
        return super().validate(obj, value)  # type: ignore[misc]

    def from_string(self, s: str) -> Any:
        """The value of a text on a command line."""
        try:
            return self.read(s)
        except ValueError as problem:
            raise TraitError(str(problem)) from None


class Seconds(_FromText, Float[Any, Any]):
    """A time in seconds, or a text like 30m."""

    info_text = "a time such as 90s, 30m, 2h or never"
    read = staticmethod(seconds)


class Size(_FromText, Integer[Any, Any]):
    """Bytes, or a text like 512M."""

    info_text = "a size such as 512M or 1G; 0 for none"
    read = staticmethod(size)

    def validate(self, obj: Any, value: Any) -> Any:
        """The value in bytes, not less than an engine needs."""
        value = super().validate(obj, value)
        if 0 < value < LEAST_MEMORY:
            raise TraitError(
                f"{size_in_words(value)} is less than an engine needs to start: "
                f"{size_in_words(LEAST_MEMORY)} or more"
            )
        return value


class SFM(Configurable):
    """Limits of sfm-kernel for each user of this machine; 0 is no limit."""

    max_engines = Integer(
        0, min=0, help="Engines that a user may have at once, in all notebooks and the panel."
    ).tag(config=True)
    memory_limit = Size(
        0, help="Private memory of each engine: 512M, 1G. Shared memory does not count."
    ).tag(config=True)
    threads = Integer(
        1, min=0, help="Threads of BLAS and OpenMP in each engine; 0: as many as there are cores."
    ).tag(config=True)
    idle = Seconds(
        NEVER,
        help="Time without use after which engines end: 90s, 30m, 2h, never. On a JupyterHub 30m.",
    ).tag(config=True)
    max_idle = Seconds(NEVER, help="The longest that `%sfm start --idle` may ask for.").tag(
        config=True
    )


_ENVIRONMENT = {name: f"SFM_{name.upper()}" for name in SFM.class_trait_names(config=True)}


class Settings:
    """The effective settings from a configuration and an environment.

    Attributes:
        configured: the configurable; ``%config SFM`` shows and changes it.
        hub: whether a JupyterHub has started this user's server.
    Raises:
        BadSetting: a setting is not valid.
    """

    def __init__(
        self, config: Config | None = None, environment: Mapping[str, str] = os.environ
    ) -> None:
        try:
            self.configured = SFM(config=config or Config())
        except TraitError as problem:
            raise BadSetting(f"c.SFM in a configuration file: {problem}") from None
        self._from_environment: dict[str, Any] = {}
        for name, variable in _ENVIRONMENT.items():
            if text := environment.get(variable):
                self._from_environment[name] = _read(name, variable, text)
        self._configured = set((config or Config()).get("SFM", {}))
        self.hub = any(environment.get(f"JUPYTERHUB_{name}") for name in ("API_TOKEN", "USER"))

    @property
    def max_engines(self) -> int:
        """Engines of this user at once; 0 is no limit."""
        return int(self._smaller("max_engines"))

    @property
    def memory_limit(self) -> int:
        """Bytes of each engine; 0 is no limit."""
        return int(self._smaller("memory_limit"))

    @property
    def threads(self) -> int:
        """Threads of each engine's BLAS; 0 for as many as there are cores."""
        is_chosen = "threads" in self._configured or self.configured.threads != 1
        if "threads" in self._from_environment and not is_chosen:
            return int(self._from_environment["threads"])
        return int(self._smaller("threads"))

    @property
    def idle(self) -> float:
        """Seconds after which idle engines end; ``NEVER`` if they do not."""
        is_chosen = "idle" in self._configured or self.configured.idle != NEVER
        is_chosen = is_chosen or "idle" in self._from_environment
        usual = HUB_IDLE if self.hub and not is_chosen else NEVER
        return min(self._smaller("idle"), self.max_idle, usual)

    @property
    def max_idle(self) -> float:
        """The longest idle time (s) that a user may ask for."""
        return self._smaller("max_idle")

    @property
    def scope(self) -> str:
        """The subject of sentences about limits."""
        return "this hub" if self.hub else "this machine"

    def environment(self) -> dict[str, str]:
        """All settings as environment variables, for a process that reads no configuration."""
        values = {name: getattr(self, name) for name in _ENVIRONMENT}
        texts = {name: "never" if value == NEVER else str(value) for name, value in values.items()}
        return {_ENVIRONMENT[name]: text for name, text in texts.items()}

    def _smaller(self, name: str) -> float:
        """The smaller one of the configuration's and the environment's value; 0 is no limit."""
        values = [getattr(self.configured, name), self._from_environment.get(name, 0)]
        return min(filter(None, values), default=0)


def _read(name: str, variable: str, text: str) -> Any:
    trait = SFM.class_traits()[name]
    try:
        return trait._validate(SFM(), trait.from_string(text))
    except (TraitError, ValueError) as problem:
        raise BadSetting(f"{variable}={text} in the environment: {problem}") from None
