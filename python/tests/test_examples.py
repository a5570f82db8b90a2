"""The examples run. Each is skipped without its package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Literal

import pytest

import tessera

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # pydantic looks annotations up there
    spec.loader.exec_module(module)
    return module


def test_outlines(engine: tessera.Engine) -> None:
    pytest.importorskip("outlines")
    model = load("outlines_model").TesseraModel(engine)
    assert model("Answer: ", Literal["yes", "no"], max_tokens=20, seed=1) in ("yes", "no")
    assert int(model("Age: ", int, max_tokens=30, temperature=0.0)) is not None
    assert len(model.batch(["Once", "The"], max_tokens=5)) == 2
    assert "".join(model.stream("Once upon a time", max_tokens=5, temperature=0.0)) == model("Once upon a time", max_tokens=5, temperature=0.0)


def test_langchain(engine: tessera.Engine) -> None:
    pytest.importorskip("langchain_core")
    model = load("langchain_chat").ChatTessera(engine=engine, temperature=0.0, max_tokens=8)
    answer = model.invoke([("user", "Tell me a story.")])
    assert answer.content and answer.usage_metadata["output_tokens"] == 8
    assert "".join(chunk.content for chunk in model.stream([("user", "Tell me a story.")])) == answer.content
