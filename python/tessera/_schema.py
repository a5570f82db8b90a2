"""Small conversions that the compiled part asks for."""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ._calls import kind_of
from ._errors import InvalidArgument


def schema_text(schema: object) -> str:
    """Returns a JSON Schema as text: from a text, a dict or bool, or a class with model_json_schema() (pydantic)."""
    if isinstance(schema, str):
        return schema
    of_model = getattr(schema, "model_json_schema", None)
    if callable(of_model):
        schema = of_model()
    if not isinstance(schema, dict | bool):
        raise InvalidArgument(f"a schema is a dict, a text of JSON, or a pydantic model, not {schema!r}")
    return dump(schema)


def dump(value: object) -> str:
    """Returns a value as JSON."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(f"this is no JSON: {error}") from None


def _plain(value: object) -> Any:
    """Returns a pydantic message or another mapping as a dict."""
    dumped = getattr(value, "model_dump", None)
    if callable(dumped):
        return dumped(exclude_none=True)
    keys = getattr(value, "keys", None)
    if callable(keys):
        return {key: value[key] for key in keys()}  # type: ignore[index]
    raise TypeError(f"{value!r}: use dicts, lists, texts, numbers, True, False and None")


def context_use(stage: Any) -> int:
    """Returns how a stage gets the context: 0: not at all. 1: as its third argument. 2: by the name `context`.

    A third parameter with a default belongs to the program (it often binds the variable of a loop), so it gets nothing.
    """
    try:
        parameters = list(inspect.signature(stage).parameters.values())
    except (TypeError, ValueError):
        return 0
    ordered = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    if len(ordered) > 2 and (ordered[2].default is inspect.Parameter.empty or ordered[2].name == "context"):
        return 1
    return 2 if any(one.name == "context" and one.kind != one.POSITIONAL_ONLY for one in parameters[2:]) else 0


def _is_object(value: object) -> bool:
    return isinstance(value, Mapping) or hasattr(value, "model_dump") or hasattr(value, "keys")


def check_messages(messages: object, where: str, name: str = "messages") -> None:
    """Raises TypeError if `messages` is no list of messages."""
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
        raise TypeError(f"{where}: {name} is a list of dicts, not {kind_of(messages)}")
    for i, message in enumerate(messages):
        if not _is_object(message):
            raise TypeError(f"{where}: {name}[{i}] is a dict with role and content, not {kind_of(message)}")
        if isinstance(message, Mapping):
            content = message.get("content")
            if content is not None and (not isinstance(content, str | Sequence) or isinstance(content, bytes)):
                raise TypeError(f'{where}: {name}[{i}]["content"] is a str, a list of parts or None, not {kind_of(content)}')


def check_tools(tools: object, where: str, name: str = "tools") -> None:
    """Raises an error if `tools` is no list of tools in OpenAI's form."""
    if not isinstance(tools, Sequence) or isinstance(tools, str | bytes):
        raise TypeError(f"{where}: {name} is a list of dicts, not {kind_of(tools)}")
    for i, tool in enumerate(tools):
        if not _is_object(tool):
            raise TypeError(f"{where}: {name}[{i}] is a dict, not {kind_of(tool)}")
        if not isinstance(tool, Mapping):
            continue
        if "function" not in tool:
            raise InvalidArgument(f'{where}: {name}[{i}] has no "function": write {{"type": "function", "function": {{"name": ..., "parameters": ...}}}}')
        if isinstance(tool["function"], Mapping) and "name" not in tool["function"]:
            raise InvalidArgument(f'{where}: {name}[{i}]["function"] has no "name"')


def local_time() -> tuple[int, int, int, int, int, int]:
    now = time.localtime()
    return (now.tm_year, now.tm_mon, now.tm_mday, now.tm_hour, now.tm_min, now.tm_sec)
