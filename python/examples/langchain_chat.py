"""A chat model for LangChain (pip install langchain-core).

    python langchain_chat.py model.gguf
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import ConfigDict, PrivateAttr

import tessera


class ChatTessera(BaseChatModel):
    """Answers by a tessera.Scheduler, so that calls of several threads run together. schema holds the answer to a JSON Schema."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    engine: Any
    temperature: float = 0.7
    max_tokens: int | None = 256
    seed: int | None = None
    json_schema: Any = None
    _scheduler: tessera.Scheduler = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        self._scheduler = tessera.Scheduler(self.engine)

    @property
    def _llm_type(self) -> str:
        return "tessera"

    def _submit(self, messages: list[BaseMessage], stop: list[str] | None, options: dict[str, Any]) -> tessera.Request:
        prompt = self.engine.apply_chat_template(convert_to_openai_messages(messages))
        schema = options.get("json_schema", self.json_schema)
        sampler = tessera.Sampler(
            temperature=options.get("temperature", self.temperature),
            seed=options.get("seed", self.seed),
            grammar=None if schema is None else tessera.Grammar.json_schema(schema),
        )
        return self._scheduler.submit(prompt, sampler=sampler, max_tokens=options.get("max_tokens", self.max_tokens), stop=stop)

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: CallbackManagerForLLMRun | None = None, **kwargs: Any
    ) -> ChatResult:
        request = self._submit(messages, stop, kwargs)
        text = request.read()
        figures = request.figures
        usage = {"input_tokens": figures["prompt_tokens"], "output_tokens": figures["tokens"]}
        message = AIMessage(
            content=text,
            response_metadata={"finish_reason": request.finish_reason},
            usage_metadata={**usage, "total_tokens": sum(usage.values())},  # type: ignore[typeddict-item]
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: CallbackManagerForLLMRun | None = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        for piece in self._submit(messages, stop, kwargs):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=piece.text))
            if run_manager is not None:
                run_manager.on_llm_new_token(piece.text, chunk=chunk)
            yield chunk


def main() -> None:
    model = ChatTessera(engine=tessera.Engine(sys.argv[1]))
    for chunk in model.stream([("system", "Be brief."), ("user", "Tell me a story about a cat.")]):
        print(chunk.content, end="", flush=True)
    print()


if __name__ == "__main__":
    main()
