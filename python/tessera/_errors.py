"""Exceptions of the library: one class for each error code."""

from __future__ import annotations

import re
from typing import ClassVar


class Error(Exception):
    """An error of the library. `code` is for programs, `message` says what is wrong and what to do, `place` says where and may be empty."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str = "", place: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.place = place

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message

    def __reduce__(self) -> tuple[type[Error], tuple[str, str]]:
        return type(self), (self.message, self.place)


class InvalidArgument(Error, ValueError):
    """A value that the caller passed is wrong: an option, a token, a prompt."""

    code = "invalid_argument"


class InvalidState(Error, RuntimeError):
    """The object's state does not allow the call."""

    code = "invalid_state"


class NotFound(Error, FileNotFoundError):
    """A file, a key or a tensor does not exist."""

    code = "not_found"


class Unsupported(Error, NotImplementedError):
    """The input is well-formed, but asks for something that tessera does not do."""

    code = "unsupported"


class CorruptFile(Error, ValueError):
    """A file contradicts its own format."""

    code = "corrupt_file"


class InputOutput(Error, OSError):
    """The operating system could not read or write."""

    code = "io"


class OutOfMemory(Error, MemoryError):
    """An allocation failed."""

    code = "out_of_memory"


class OverBudget(Error, MemoryError):
    """The plan exceeds the caller's memory budget. Nothing was loaded."""

    code = "over_budget"


class CacheFull(Error):
    """The KV cache has no room for more tokens."""

    code = "cache_full"


class Cancelled(Error):
    """A callback, close() or cancel() asked to stop."""

    code = "cancelled"


class CallbackFailed(Error):
    """A callback raised an exception in an earlier call, and that call raised the callback's exception."""

    code = "callback_failed"


class Numeric(Error, ArithmeticError):
    """Logits are NaN, or no token is left to draw."""

    code = "numeric"


class Internal(Error):
    """tessera has a defect. Please report it."""

    code = "internal"


class DeviceError(Error):
    """A device (a GPU) failed."""

    code = "device_error"


class Busy(Error):
    """Too many requests are waiting. The message says when to try again."""

    code = "busy"


class TooLate(Error):
    """The request cannot end by its deadline."""

    code = "too_late"


# By the number of the library's ErrorCode (tessera/core/result.hpp).
_CLASSES: dict[int, type[Error]] = {
    1: InvalidArgument,
    2: InvalidState,
    3: NotFound,
    4: Unsupported,
    5: CorruptFile,
    6: InputOutput,
    7: OutOfMemory,
    8: OverBudget,
    9: CacheFull,
    10: Cancelled,
    11: CallbackFailed,
    12: Numeric,
    13: Internal,
    14: DeviceError,
    15: Busy,
    16: TooLate,
}


# Words of messages that name parts of the C++ API, and what Python says instead.
_WORDS: list[tuple[str, str]] = [
    (r"^this Session is empty: .*", "the session was given to a request: Request.take_session() returns it after the end, if submit() had keep_session=True"),
    (r"^this Scheduler is empty: .*", "the scheduler is closed: make another one"),
    (r"^this Generation is empty: .*", "the generation is closed: call Session.generate() again"),
    (r"^this Answer is empty: .*", "the answer is closed: call Conversation.answer() again"),
    (r"^this (\w+) is empty: .*", r"the \1 is closed, or was given to another object: make another one"),
    (r"finish it or destroy it first", "read it to its end, or call its close()"),
    (r"the scheduler was destroyed before", "the scheduler was closed before"),
    (
        r"^limits: rows (\S+), seconds (\S+) and max_running (\S+) must be above 0; headroom (\S+) must be from 0 to 1; .*",
        r"rows=\1, step_seconds=\2 and max_running=\3 must be above 0, and headroom=\4 must be from 0 to 1",
    ),
    (r"EngineOptions::mtp = MtpHeads::load", "Engine(mtp=True)"),
    (r"EngineOptions::draft_heads", "Engine(draft_heads=...)"),
    (r" \(EngineOptions::kv\)", ""),
    (r"^(top|min|typical)-(k|p) is", r"\1_\2 is"),
    (r"^top-n-sigma is", "top_n_sigma is"),
    (r"^XTC (probability|threshold) is", r"xtc_\1 is"),
    (r"^DRY (multiplier|base) is", r"dry_\1 is"),
    (r"^mirostat (tau|eta) is", r"mirostat_\1 is"),
    (r"^(repetition|frequency|presence) penalty is", r"\1_penalty is"),
    (r"\b[A-Z]\w+Options::(\w+)", r"\1"),
    (r"\b([A-Z]\w+)::(\w+)", r"\1.\2"),
]
_HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w.-]+(?<!\.gguf)(?<!\.safetensors)")


def make(code: int, message: str, place: str) -> Error:
    """Returns the exception of an error of the library."""
    for pattern, words in _WORDS:
        message = re.sub(pattern, words, message)
    kind = _CLASSES.get(code, Error)
    if kind is NotFound and _HUB_NAME.fullmatch(place):
        message += ". tessera downloads nothing: give the path of a GGUF file or of a folder (docs/howto/get-a-model.md)"
    return kind(message, place)
