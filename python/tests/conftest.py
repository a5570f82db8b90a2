from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import tessera

ROOT = Path(__file__).resolve().parents[2]
MODEL = Path(os.environ.get("TESSERA_TEST_MODEL", ROOT / "models" / "tessera-stories.gguf"))


@pytest.fixture(scope="session")
def model() -> Path:
    return MODEL


@pytest.fixture(scope="session")
def engine() -> tessera.Engine:
    return tessera.Engine(MODEL, threads=2)


@pytest.fixture
def session(engine: tessera.Engine) -> tessera.Session:
    session = engine.session()
    session.append("Once upon a time")
    return session


@pytest.fixture
def scheduler(engine: tessera.Engine) -> Iterator[tessera.Scheduler]:
    with tessera.Scheduler(engine) as scheduler:
        yield scheduler


@pytest.fixture(scope="session")
def alone(engine: tessera.Engine) -> str:
    """The 20 likeliest tokens' text after "Once upon a time", by a session alone."""
    session = engine.session()
    session.append("Once upon a time")
    return session.generate(max_tokens=20).read()
