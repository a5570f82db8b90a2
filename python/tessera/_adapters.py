"""The types of the argument `adapters`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, cast

from ._core import Adapter
from ._errors import InvalidArgument

# An adapter; with a scale; with a scale and the position of the first token that it changes.
AdapterUse: TypeAlias = Adapter | tuple[Adapter, float] | tuple[Adapter, float, int | None]
Adapters: TypeAlias = Adapter | Sequence[AdapterUse]


def for_each(adapters: Adapters | Sequence[Adapters | None] | None, count: int) -> list[Adapters | None]:
    """Returns the adapters of `count` prompts: one list for all of them, or a list, an adapter or None for each."""
    if adapters is None or isinstance(adapters, Adapter):
        return [adapters] * count
    is_for_each = any(one is None or (isinstance(one, Sequence) and not isinstance(one, tuple)) for one in adapters)
    if not is_for_each:
        return [cast(Adapters, adapters)] * count
    if len(adapters) != count:
        raise InvalidArgument(f"adapters for {len(adapters)} prompts, and there are {count}: give one list for all, or one for each")
    return cast("list[Adapters | None]", list(adapters))
