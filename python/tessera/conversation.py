"""A conversation with a model: messages in, answers out.

    talk = tessera.Conversation(engine, system="Be brief.")
    for delta in talk.answer("Who are you?", max_tokens=100):
        print(delta, end="")
    print(talk.say("And then?"))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from . import _core
from ._adapters import Adapters
from ._core import Delta, Drafter, Engine, Sampler
from ._calls import kind_of
from ._errors import InvalidState
from ._schema import check_messages, check_tools


class Answer(Iterator[Delta]):
    """An iterator over the pieces (Delta) of the answer to the last message. When the answer has ended, it becomes a message of the conversation.

    If you leave an answer before its end, it does not become a message. To end an answer early and keep its text, call stop().
    """

    def __init__(self, conversation: Conversation, answer: _core.Answer) -> None:
        self._conversation = conversation
        self._answer = answer
        self._ended = False

    def __iter__(self) -> Answer:
        return self

    def __next__(self) -> Delta:
        if self._ended:
            raise StopIteration
        delta = self._answer.next()
        if delta is None:
            self._ended = True
            message = self._answer.message()
            if message.get("content") or message.get("tool_calls") or message.get("reasoning_content") or message.get("reasoning"):
                self._conversation.messages.append(message)
            raise StopIteration
        return delta

    def read(self) -> str:
        """Returns the rest of the answer's text."""
        return "".join(delta.text for delta in self if delta.kind == "text")

    @property
    def message(self) -> dict[str, Any]:
        """The answer so far, as a message: content, reasoning, tool_calls."""
        return self._answer.message()

    @property
    def finish_reason(self) -> str | None:
        """Why the answer has ended (see Piece); "cancelled" after stop(). None while it goes on."""
        return self._answer.finish_reason

    @property
    def figures(self) -> dict[str, float]:
        """The same figures as those of a Generation."""
        return self._answer.figures

    def stop(self) -> None:
        """Ends the answer with the text that it has so far. Any thread may call this."""
        self._answer.stop()

    def close(self) -> None:
        """Ends the answer. The answer does not become a message."""
        self._ended = True
        self._answer.close()

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if not self._ended:
            self.close()


class Conversation:
    """A list of messages, and a session that the model computes from them. A new turn computes only the tokens that are new.

    `messages` is a list of dicts in the form of OpenAI's API. You may change the list in any way between two answers. `tools` is a list of
    {"type": "function", "function": {...}}. `arguments` are further variables of the chat template. If the model has no chat template, the
    prompt is the texts of the messages, one on each line.
    """

    def __init__(
        self,
        engine: Engine,
        messages: Sequence[Mapping[str, Any]] = (),
        *,
        system: str | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        arguments: Mapping[str, Any] | None = None,
        sampler: Sampler | None = None,
        chat_template: str | None = None,
        output_format: str | None = None,
        context: int = 0,
        kv: str = "auto",
        salt: str = "",
        adapters: Adapters = (),
    ) -> None:
        if not isinstance(engine, Engine):
            raise TypeError(f"Conversation(): engine is an Engine, not {kind_of(engine)}")
        check_messages(messages, "Conversation()")
        check_tools(tools, "Conversation()")
        self._core = _core.Conversation(
            engine, chat_template=chat_template, output_format=output_format, context=context, kv=kv, salt=salt, adapters=adapters
        )
        self.engine = engine
        self.messages: list[dict[str, Any]] = [dict(message) for message in messages]
        if system is not None:
            self.messages.insert(0, {"role": "system", "content": system})
        self.tools: list[dict[str, Any]] = [dict(tool) for tool in tools]
        self.arguments: dict[str, Any] = dict(arguments or {})
        self.sampler = sampler or Sampler(temperature=0.7, top_p=0.95)

    def _set_request(self) -> None:
        check_messages(self.messages, "Conversation")
        check_tools(self.tools, "Conversation")
        request: dict[str, Any] = {**self.arguments, "messages": self.messages, "add_generation_prompt": True}
        if self.tools:
            request["tools"] = self.tools
        self._core.set_request(request)

    def prompt(self) -> list[int]:
        """Returns the prompt for the present messages, as tokens."""
        self._set_request()
        return self._core.prompt()

    def answer(
        self,
        content: str | None = None,
        *,
        sampler: Sampler | None = None,
        max_tokens: int | None = None,
        stop: str | Sequence[str] = (),
        tool_use: str | None = None,
        tool_name: str = "",
        drafter: Drafter | None = None,
    ) -> Answer:
        """Adds a message of the user, if `content` is given, and begins the answer. If answer() raises, it removes the user's message again.

        The user's message stays if the answer has begun and you leave it before its end, or if reading it raises an error. Call answer() without
        `content` to get another answer to the message, or remove the message from `messages`. (say() removes it.)

        tool_use: what the answer may contain. "required": calls of the tools, after reasoning if the model reasons. "at_once": calls, with
        nothing in front. "after_text": text, then calls. "auto": text, with or without calls. None: anything; the form of calls is not enforced.
        tool_name: the only tool that may be called.
        """
        if content is not None:
            if not isinstance(content, str):
                raise TypeError(f"Conversation.answer(): content is a str or None, not {kind_of(content)}")
            self.messages.append({"role": "user", "content": content})
        try:
            if not self.messages:
                raise InvalidState("the conversation has no message to answer: pass the user's text, or add to `messages`")
            self._set_request()
            chosen = sampler or self.sampler
            if tool_use is not None:
                chosen = self._core.tool_stage(chosen, tool_use=tool_use, name=tool_name)
            stops = [stop] if isinstance(stop, str) else list(stop)
            return Answer(self, self._core.answer(chosen, max_tokens=max_tokens, stop=stops, drafter=drafter))
        except BaseException:
            if content is not None:
                self.messages.pop()
            raise

    def say(self, content: str, *, sampler: Sampler | None = None, max_tokens: int | None = None, stop: str | Sequence[str] = ()) -> str:
        """Adds a message of the user, and returns the text of the whole answer. After an error or Ctrl-C the messages are as they were before."""
        if not isinstance(content, str):
            raise TypeError(f"Conversation.say(): content is a str, not {kind_of(content)}")
        before = len(self.messages)
        try:
            with self.answer(content, sampler=sampler, max_tokens=max_tokens, stop=stop) as answer:
                return answer.read()
        except BaseException:
            del self.messages[before:]
            raise

    def add_tool_result(self, call_id: str, content: str, name: str = "") -> None:
        """Adds a message with the result of a call: what the tool returned."""
        message = {"role": "tool", "tool_call_id": call_id, "content": content}
        if name:
            message["name"] = name
        self.messages.append(message)

    def use_adapters(self, adapters: Adapters) -> None:
        """Changes the adapters of the conversation; () means none. The messages stay, and the next answer computes them again."""
        self._core.use_adapters(adapters)

    @property
    def adapters(self) -> list[tuple[_core.Adapter, float, int | None]]:
        """The conversation's adapters, as (adapter, scale, start)."""
        return self._core.adapters

    @property
    def tokens(self) -> list[int]:
        """The tokens of the conversation's session."""
        return self._core.tokens

    @property
    def has_template(self) -> bool:
        """True if the model or the options have a chat template."""
        return self._core.has_template

    @property
    def output_format(self) -> str:
        """Name of the format in which the model writes reasoning and calls."""
        return self._core.output_format

    @property
    def tool_warnings(self) -> list[str]:
        """For each tool whose schema the last tool_use could not fully enforce, a sentence that says so."""
        return self._core.tool_warnings

    def __repr__(self) -> str:
        return f"<tessera.Conversation of {len(self.messages)} messages>"
