"""mypy --strict accepts a program that uses the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tessera

PROGRAM = """
import numpy as np
import numpy.typing as npt
import tessera

engine = tessera.Engine("model.gguf", context=512, progress=False)
session: tessera.Session = engine.session(kv="f16")
logits: npt.NDArray[np.float32] = session.append("Once")
for piece in session.generate(tessera.Sampler(temperature=0.5, grammar=tessera.Grammar.choice(["a"])), max_tokens=3, stop=["."]):
    text: str = piece.text + (piece.finish_reason or "")
with tessera.Scheduler(engine) as scheduler:
    tokens: list[int] = [piece.token for piece in scheduler.submit([1, 2], max_tokens=2)]
def stage(tokens: npt.NDArray[np.int32], logits: npt.NDArray[np.float32]) -> None: ...
sampler: tessera.Sampler = tessera.Chain().stage(stage).top_k(3).build()
outputs: list[tessera.RequestOutput] = tessera.LLM(engine).generate("x", tessera.SamplingParams(n=2))
async def main() -> str:
    async with tessera.AsyncScheduler(engine) as many:
        return "".join([piece.text async for piece in many.submit("x")])
saved: bytes | None = session.save()
try:
    tessera.Conversation(engine).say("Hi")
except tessera.Error as error:
    print(error.code, error.place)
"""


def test_mypy_accepts_a_program(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text(PROGRAM)
    folder = str(Path(tessera.__file__).parent.parent)
    environment = {**os.environ, "MYPYPATH": "" if "site-packages" in folder else folder}
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "program.py"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
