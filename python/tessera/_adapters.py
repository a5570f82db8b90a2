"""The types of the argument `adapters`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ._core import Adapter

# An adapter; with a scale; with a scale and the position of the first token that it changes.
AdapterUse: TypeAlias = Adapter | tuple[Adapter, float] | tuple[Adapter, float, int | None]
Adapters: TypeAlias = Adapter | Sequence[AdapterUse]


def for_each(adapters: Adapters | Sequence[Adapters | None] | None, count: int) -> list[Adapters | None]:
    """Returns the adapters of `count` prompts: one list for all of them, or a list, an adapter or None for each."""
    if adapters is None or isinstance(adapters, Adapter):
        return [adapters] * count
    each = [one for one in adapters if one is None or (isinstance(one, Sequence) and not isinstance(one, tuple))]
    if not each:
        return [adapters] * count  # type: ignore[list-item]
    if len(adapters) != count:
        from ._errors import InvalidArgument

        raise InvalidArgument(f"adapters for {len(adapters)} prompts, and there are {count}: give one list for all, or one for each")
    return list(adapters)  # type: ignore[arg-type]
