"""What an administrator sets: ``c.SFM`` in a configuration file, or ``SFM_*`` in the environment.

    c.SFM.max_engines = 8        SFM_MAX_ENGINES=8
    c.SFM.memory_limit = "1G"    SFM_MEMORY_LIMIT=1G
    c.SFM.threads = 1            SFM_THREADS=1
    c.SFM.idle = "30m"           SFM_IDLE=30m
    c.SFM.max_idle = "2h"        SFM_MAX_IDLE=2h

A notebook reads ``ipython_kernel_config.py``, the panel ``jupyter_server_config.py``. Where both a
file and the environment say something, the smaller counts: who sets the environment of a user's
server cannot be outbid by a file in that user's home. A limit says so in one sentence that tells
what to do; what it cannot do is in ``docs/hub.md``: a user who may run programs may run any.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from typing import Any

from traitlets import Float, Integer, TraitError
from traitlets.config import Config, Configurable

from sfm_kernel.errors import BadSetting

NEVER = math.inf
"""Seconds after which engines end that never do."""

HUB_IDLE = 1800.0
"""Seconds for which engines may be idle on a hub, where nobody has set it."""

LEAST_MEMORY = 256 << 20
"""Bytes: an engine that has NumPy needs some 160 MB of them before its first cell."""

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
    """A time in the longest unit that needs no fraction: ``30 minutes``."""
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
    """``1.5 GB``; as everybody who sets limits counts, by 1024."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1024:
            return f"{count:.3g} {unit}" if count < 1000 else f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.3g} GB"


class Seconds(Float[Any, Any]):
    """A time in seconds, or a text like 30m."""

    info_text = "a time such as 90s, 30m, 2h or never"

    def validate(self, obj: Any, value: Any) -> Any:
        """As ``seconds`` understands it."""
        if isinstance(value, str):
            value = _or_trait_error(seconds, value)
        return super().validate(obj, value)

    def from_string(self, s: str) -> Any:
        """What a command line says."""
        return _or_trait_error(seconds, s)


class Size(Integer[Any, Any]):
    """Bytes, or a text like 512M."""

    info_text = "a size such as 512M or 1G; 0 for none"

    def validate(self, obj: Any, value: Any) -> Any:
        """As ``size`` understands it; and not less than an engine needs to begin."""
        if isinstance(value, str):
            value = _or_trait_error(size, value)
        value = super().validate(obj, value)
        if 0 < value < LEAST_MEMORY:
            raise TraitError(
                f"{size_in_words(value)} is less than an engine needs to begin: "
                f"{size_in_words(LEAST_MEMORY)} or more"
            )
        return value

    def from_string(self, s: str) -> Any:
        """What a command line says."""
        return _or_trait_error(size, s)


def _or_trait_error(read: Any, text: str) -> Any:
    try:
        return read(text)
    except ValueError as problem:
        raise TraitError(str(problem)) from None


class SFM(Configurable):
    """Limits of sfm-kernel for each user of this machine; 0 is no limit."""

    max_engines = Integer(
        0, min=0, help="Engines that a user may have at once, over all notebooks and the panel."
    ).tag(config=True)
    memory_limit = Size(
        0, help="Memory that each engine may take for itself: 512M, 1G. Shared memory is not in it."
    ).tag(config=True)
    threads = Integer(
        1, min=0, help="Threads of BLAS and OpenMP in each engine; 0: as many as there are cores."
    ).tag(config=True)
    idle = Seconds(
        NEVER,
        help="After how long without use engines end: 90s, 30m, 2h, never. On a JupyterHub 30m.",
    ).tag(config=True)
    max_idle = Seconds(NEVER, help="The longest that `%sfm start --idle` may ask for.").tag(
        config=True
    )


_ENVIRONMENT = {name: f"SFM_{name.upper()}" for name in SFM.class_trait_names(config=True)}


class Settings:
    """What counts, of a configuration and an environment.

    Attributes:
        configured: the configurable; ``%config SFM`` shows and changes it.
    Raises:
        BadSetting: one of the two makes no sense.
    """

    def __init__(
        self, config: Config | None = None, environment: Mapping[str, str] = os.environ
    ) -> None:
        try:
            self.configured = SFM(config=config or Config())
        except TraitError as problem:
            raise BadSetting(f"c.SFM in a configuration file: {problem}") from None
        self._told: dict[str, Any] = {}
        for name, variable in _ENVIRONMENT.items():
            if text := environment.get(variable):
                self._told[name] = _read(name, variable, text)
        self._configured = set((config or Config()).get("SFM", {}))
        self.hub = on_hub(environment)

    @property
    def max_engines(self) -> int:
        """Engines of this user at once; 0 for any number."""
        return int(self._smaller("max_engines"))

    @property
    def memory_limit(self) -> int:
        """Bytes of each engine; 0 for any number."""
        return int(self._smaller("memory_limit"))

    @property
    def threads(self) -> int:
        """Threads of each engine's BLAS; 0 for as many as there are cores."""
        is_chosen = "threads" in self._configured or self.configured.threads != 1
        if "threads" in self._told and not is_chosen:
            return int(self._told["threads"])
        return int(self._smaller("threads"))

    @property
    def idle(self) -> float:
        """Seconds after which idle engines end; ``NEVER`` if they do not."""
        is_chosen = "idle" in self._configured or self.configured.idle != NEVER
        usual = HUB_IDLE if self.hub and not is_chosen and "idle" not in self._told else NEVER
        return min(self._smaller("idle"), self.max_idle, usual)

    @property
    def max_idle(self) -> float:
        """The longest that may be asked for."""
        return self._smaller("max_idle")

    @property
    def place(self) -> str:
        """What limits are those of, in sentences."""
        return "this hub" if self.hub else "this machine"

    def environment(self) -> dict[str, str]:
        """What tells all of it to a process that reads no configuration."""
        said = {name: getattr(self, name) for name in _ENVIRONMENT}
        texts = {name: "never" if value == NEVER else str(value) for name, value in said.items()}
        return {_ENVIRONMENT[name]: text for name, text in texts.items()}

    def _smaller(self, name: str) -> float:
        """Of what was configured and what the environment says; 0 is no limit."""
        values = [getattr(self.configured, name), self._told.get(name, 0)]
        return min(filter(None, values), default=0)


def _read(name: str, variable: str, text: str) -> Any:
    trait = SFM.class_traits()[name]
    try:
        return trait._validate(SFM(), trait.from_string(text))
    except (TraitError, ValueError) as problem:
        raise BadSetting(f"{variable}={text} in the environment: {problem}") from None


def on_hub(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a JupyterHub has started this user's server."""
    return any(environment.get(name) for name in ("JUPYTERHUB_API_TOKEN", "JUPYTERHUB_USER"))
