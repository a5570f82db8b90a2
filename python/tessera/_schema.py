"""Small conversions that the compiled part asks for."""

from __future__ import annotations

import inspect
import json
import time
from typing import Any

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


def takes_three(stage: Any) -> bool:
    """Returns whether a stage takes the context besides tokens and logits."""
    try:
        inspect.signature(stage).bind(0, 0, 0)
    except (TypeError, ValueError):
        return False
    return True


def local_time() -> tuple[int, int, int, int, int, int]:
    now = time.localtime()
    return (now.tm_year, now.tm_mon, now.tm_mday, now.tm_hour, now.tm_min, now.tm_sec)
