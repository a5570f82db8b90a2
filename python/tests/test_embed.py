"""Embeddings and scores of texts, by the tiny encoders of tests/golden."""

import pathlib

import numpy as np
import pytest
import tessera

ENCODERS = pathlib.Path(__file__).parents[2] / "tests" / "golden" / "data" / "encoders"


def test_vectors_of_an_encoder_are_those_of_transformers() -> None:
    engine = tessera.Engine(ENCODERS / "bert", tokenizer=False)
    lines = (ENCODERS / "bert" / "tokens.txt").read_text().splitlines()
    texts = [[int(token) for token in line.split()] for line in lines]
    rows = engine.embed(texts, pooling="mean", normalize=False)
    expected = np.fromfile(ENCODERS / "bert" / "vectors.f32", dtype="<f4").reshape(rows.shape)
    assert np.abs(rows - expected).max() < 1e-5
    assert engine.embed(texts, dimensions=8).shape == (len(texts), 8)
    with pytest.raises(tessera.Error, match="33 dimensions"):
        engine.embed(texts, dimensions=33)


def test_a_cross_encoder_ranks() -> None:
    engine = tessera.Engine(ENCODERS / "bert-rank")
    pairs = [line.split("\t") for line in (ENCODERS / "bert-rank" / "pairs.txt").read_text().splitlines()]
    expected = np.fromfile(ENCODERS / "bert-rank" / "scores.f32", dtype="<f4")
    scores = [engine.rerank(query, [document])[0] for query, document in pairs]
    assert np.abs(np.array(scores) - expected).max() < 1e-4
    both = engine.rerank(pairs[0][0], [pairs[0][1], pairs[1][1]])
    assert both == scores[:2]


def test_the_python_of_the_page_runs(engine: tessera.Engine, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ENCODERS.parents[3] / "docs" / "howto" / "embeddings.md").read_text()
    code = page.split("```python\n")[1].split("```")[0].replace("dimensions=256", "dimensions=8")
    names: dict[str, object] = {"engine": engine, "ranker": tessera.Engine(ENCODERS / "bert-rank")}
    exec(compile(code, "embeddings.md", "exec"), names)
    assert capsys.readouterr().out and len(names["scores"]) == 2  # type: ignore[arg-type]
