"""A model for Outlines (pip install outlines): the types of Outlines become grammars of tessera, which hold the text while it is drawn.

    python outlines_model.py model.gguf
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from outlines.inputs import Chat
from outlines.models.base import Model, ModelTypeAdapter
from outlines.types.dsl import CFG, JsonSchema, Term, python_types_to_terms, to_regex

import tessera


class TypeAdapter(ModelTypeAdapter):
    """Turns inputs and output types of Outlines into prompts and grammars of tessera."""

    def __init__(self, engine: tessera.Engine) -> None:
        self.engine = engine

    def format_input(self, model_input: Any) -> list[int]:
        if isinstance(model_input, Chat):
            tokens = self.engine.apply_chat_template(model_input.messages)
            assert isinstance(tokens, list)
            return tokens
        if isinstance(model_input, str):
            return self.engine.tokenizer.encode(model_input)
        raise TypeError(f"the input is a text or a Chat, not {type(model_input).__name__}")

    def format_output_type(self, output_type: Any | None = None) -> tessera.Grammar | None:
        if output_type is None:
            return None
        term: Term = python_types_to_terms(output_type)
        if isinstance(term, CFG):
            return tessera.Grammar.ebnf(term.definition)
        if isinstance(term, JsonSchema):
            return tessera.Grammar.json_schema(term.schema)
        return tessera.Grammar.regex(to_regex(term))


class TesseraModel(Model):
    """Generates by a tessera.Scheduler: calls of several threads, and the prompts of a batch, run together."""

    tensor_library_name = "numpy"

    def __init__(self, engine: tessera.Engine, **scheduler: Any) -> None:
        self.engine = engine
        self.scheduler = tessera.Scheduler(engine, **scheduler)
        self.type_adapter = TypeAdapter(engine)

    def _submit(self, model_input: Any, output_type: Any, *, temperature: float = 1.0, seed: int | None = None, **options: Any) -> tessera.Request:
        grammar = output_type if isinstance(output_type, tessera.Grammar) else self.type_adapter.format_output_type(output_type)
        sampler = tessera.Sampler(temperature=temperature, seed=seed, grammar=grammar)
        return self.scheduler.submit(self.type_adapter.format_input(model_input), sampler=sampler, **options)

    # Outlines' generators accept only models that they know by name. So these three call the model itself.
    def __call__(self, model_input: Any, output_type: Any | None = None, backend: str | None = None, **options: Any) -> str:
        return self.generate(model_input, output_type, **options)

    def batch(self, model_input: list[Any], output_type: Any | None = None, backend: str | None = None, **options: Any) -> list[str]:
        return self.generate_batch(model_input, output_type, **options)

    def stream(self, model_input: Any, output_type: Any | None = None, backend: str | None = None, **options: Any) -> Iterator[str]:
        yield from self.generate_stream(model_input, output_type, **options)

    def generate(self, model_input: Any, output_type: Any | None = None, **options: Any) -> str:
        return self._submit(model_input, output_type, **options).read()

    def generate_batch(self, model_input: list[Any], output_type: Any | None = None, **options: Any) -> list[str]:
        requests = [self._submit(one, output_type, **options) for one in model_input]
        return [request.read() for request in requests]

    def generate_stream(self, model_input: Any, output_type: Any | None = None, **options: Any) -> Iterator[str]:
        for piece in self._submit(model_input, output_type, **options):
            yield piece.text


def main() -> None:
    from typing import Literal

    model = TesseraModel(tessera.Engine(sys.argv[1]))
    print(model("Is water wet? Answer: ", Literal["yes", "no"], max_tokens=20))
    print(model("My age is ", int, max_tokens=20, temperature=0.0))


if __name__ == "__main__":
    main()
