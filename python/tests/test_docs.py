"""The Python of the documents runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def blocks(page: str) -> list[str]:
    return [b for b in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S) if page != "README.md" or "import tessera" in b]


@pytest.mark.parametrize("page", ["docs/tutorial/python.md", "README.md", "python/README.md"])
def test_the_code_of_the_page_runs(page: str, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = "\n".join(blocks(page)).replace('"model.gguf"', repr(str(model)))
    assert "tessera.Engine" in code
    names: dict[str, object] = {"__name__": "page"}
    exec(compile(code, page, "exec"), names)
    assert capsys.readouterr().out
