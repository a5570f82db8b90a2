"""Exceptions of the library: one class for each error code."""

from __future__ import annotations

from typing import ClassVar


class Error(Exception):
    """An error of the library: a code for programs, a message that says what to do, and the place, which may be empty."""

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
    """A value that the caller passed: an option, a token, a prompt."""

    code = "invalid_argument"


class InvalidState(Error, RuntimeError):
    """The call does not fit what the object is doing."""

    code = "invalid_state"


class NotFound(Error, FileNotFoundError):
    """A file, key or tensor that is not there."""

    code = "not_found"


class Unsupported(Error, NotImplementedError):
    """Well-formed, but something that tessera does not do."""

    code = "unsupported"


class CorruptFile(Error, ValueError):
    """A file that contradicts its own format."""

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
    """A callback raised before; its exception was raised at that time."""

    code = "callback_failed"


class Numeric(Error, ArithmeticError):
    """Logits that are NaN, or that allow no token at all."""

    code = "numeric"


class Internal(Error):
    """A defect of tessera: please report it."""

    code = "internal"


class DeviceError(Error):
    """A device (a GPU) failed."""

    code = "device_error"


class Busy(Error):
    """Too many requests are waiting: the message says when to try again."""

    code = "busy"


class TooLate(Error):
    """A request could not end by its deadline."""

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


def make(code: int, message: str, place: str) -> Error:
    """Returns the exception of an error of the library."""
    return _CLASSES.get(code, Error)(message, place)
