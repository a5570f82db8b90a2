"""The Python of the documents runs as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tessera

ROOT = Path(__file__).resolve().parents[2]


def blocks(page: str) -> list[str]:
    return [b for b in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S) if page != "README.md" or "import tessera" in b]


@pytest.mark.parametrize("page", ["docs/tutorial/python.md", "docs/howto/adapters.md", "README.md", "python/README.md"])
def test_the_code_of_the_page_runs(page: str, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = "\n".join(blocks(page)).replace('"model.gguf"', repr(str(model)))
    code = code.replace('"pirate.gguf"', repr(str(ROOT / "tests/data/stories-adapter.gguf")))
    assert "tessera.Engine" in code
    names: dict[str, object] = {"__name__": "page"}
    exec(compile(code, page, "exec"), names)
    assert capsys.readouterr().out


def test_the_reference_page_is_that_of_the_stubs() -> None:
    made = subprocess.run([sys.executable, str(ROOT / "python/reference.py"), str(Path(tessera.__file__).parent)], capture_output=True, text=True, check=True)
    assert made.stdout == (ROOT / "docs/reference/python.md").read_text(), "make it again: python/reference.py says how"
