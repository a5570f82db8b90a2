"""Exceptions of the library: one class for each error code."""

from __future__ import annotations

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


def make(code: int, message: str, place: str) -> Error:
    """Returns the exception of an error of the library."""
    return _CLASSES.get(code, Error)(message, place)
