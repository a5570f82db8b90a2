"""A progress bar for terminals and notebooks, without further packages."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

_DELAY = 1.0  # seconds before a bar appears: what is done by then needs none
_EVERY = 0.1  # seconds between two drawings


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules


def _someone_looks() -> bool:
    try:
        return _in_notebook() or sys.stderr.isatty()
    except (AttributeError, ValueError):  # no stderr (pythonw), or a closed one
        return False


class Bar:
    """A bar on standard error: update(done, total), then close()."""

    def __init__(self, title: str, unit: str = "", delay: float = _DELAY) -> None:
        self._title = title
        self._unit = unit
        self._begun = time.monotonic()
        self._delay = delay
        self._drawn = 0.0
        self._width = 0

    def update(self, done: float, total: float) -> None:
        now = time.monotonic()
        if now - self._begun < self._delay or now - self._drawn < _EVERY:
            return
        self._drawn = now
        share = min(done / total, 1.0) if total else 0.0
        filled = int(share * 30)
        left = (now - self._begun) * (1 - share) / share if share > 0 else 0.0
        count = f" {done:.0f}/{total:.0f} {self._unit}" if self._unit else ""
        line = f"{self._title} [{'#' * filled}{'.' * (30 - filled)}] {share:4.0%}{count}, {left:.0f} s left"
        self._write("\r" + line.ljust(self._width))
        self._width = len(line)

    def close(self) -> None:
        if self._width:
            self._write("\r" + " " * self._width + "\r")
            self._width = 0

    @staticmethod
    def _write(text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (AttributeError, OSError, ValueError):
            pass


def loading(title: str, always: bool) -> Callable[[int, int], None] | None:
    """Returns a progress callback that draws a bar, or None if nobody would see it."""
    if not always and not _someone_looks():
        return None
    bar = Bar(title, delay=0.0 if always else _DELAY)

    def progress(done: int, total: int) -> None:
        if done >= total:
            bar.close()
        else:
            bar.update(done, total)

    return progress


def counting(title: str, unit: str, show: bool | None) -> Bar | None:
    """Returns a bar that counts things (show: True, False, or None for "if someone looks"), or None."""
    if show is False or (show is None and not _someone_looks()):
        return None
    return Bar(title, unit, delay=0.0 if show else _DELAY)
