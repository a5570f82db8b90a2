"""Whole batches of prompts, with the names that vLLM's users know.

    llm = tessera.LLM("model.gguf")
    for output in llm.generate(["Once upon", "The cat"], tessera.SamplingParams(temperature=0.8, max_tokens=50)):
        print(output.prompt, output.outputs[0].text)
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from . import _progress
from ._adapters import Adapters, for_each
from ._calls import kind_of, renamed
from ._core import Engine, Grammar, Request, Sampler, Scheduler
from ._errors import Error, InvalidArgument
from ._schema import check_messages, check_tools


@dataclass
class SamplingParams:
    """Options for drawing the answers to a prompt, with vLLM's names. temperature=0: each token is the likeliest one. logprobs=None: the
    output has no log-probabilities.
    """

    n: int = 1
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    ignore_eos: bool = False
    max_tokens: int | None = 16
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: dict[int, float] | None = None
    logprobs: int | None = None
    grammar: Grammar | None = None
    priority: int = 0

    def sampler(self) -> Sampler:
        """Returns a sampler with these options. The repetition penalty counts the prompt too, as in vLLM."""
        return self._checked_sampler(
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=max(self.top_k, 0) if isinstance(self.top_k, int) else self.top_k,
            min_p=self.min_p,
            seed=self.seed,
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
            repetition_penalty=self.repetition_penalty,
            penalize_prompt=self.repetition_penalty != 1.0,
            logit_bias=self.logit_bias,
            grammar=self.grammar,
        )

    @staticmethod
    def _checked_sampler(**options: Any) -> Sampler:
        try:
            return Sampler(**options)
        except (TypeError, InvalidArgument) as error:
            raise renamed(error, "Sampler(", "SamplingParams(") from None


@dataclass
class CompletionOutput:
    """One answer to a prompt."""

    index: int
    text: str
    token_ids: list[int]
    finish_reason: str | None
    stop_reason: int | str | None = None
    cumulative_logprob: float | None = None
    logprobs: list[dict[int, float]] | None = None


@dataclass
class RequestOutput:
    """The answers to a prompt."""

    request_id: str
    prompt: str | None
    prompt_token_ids: list[int]
    outputs: list[CompletionOutput] = field(default_factory=list)
    finished: bool = True
    metrics: dict[str, Any] = field(default_factory=dict)


Prompt = str | Sequence[int] | Mapping[str, Any]


class LLM:
    """A model and a scheduler that batches prompts. The options are those of Engine. max_num_seqs: the most requests that are computed at once."""

    def __init__(self, model: str | os.PathLike[str] | Engine, *, max_num_seqs: int = 64, **options: Any) -> None:
        if not isinstance(max_num_seqs, int):
            raise TypeError(f"LLM(): max_num_seqs is an int, not {kind_of(max_num_seqs)}")
        if max_num_seqs < 1:
            raise InvalidArgument(f"LLM(): max_num_seqs is {max_num_seqs}: expected 1 or more")
        if isinstance(model, Engine) and options:
            raise TypeError(f"LLM(): {next(iter(options))} is an option of loading, and the engine is loaded already: give it to Engine()")
        try:
            self.engine = model if isinstance(model, Engine) else Engine(model, **options)
        except (TypeError, InvalidArgument) as error:
            raise renamed(renamed(error, "Engine(): path ", "LLM(): model "), "Engine(", "LLM(") from None
        self._scheduler = Scheduler(self.engine, max_running=max_num_seqs, max_waiting=1 << 30, max_unread=1 << 30)

    def generate(
        self,
        prompts: Prompt | Sequence[Prompt],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        *,
        use_tqdm: bool | None = None,
        adapters: Adapters | Sequence[Adapters | None] | None = None,
    ) -> list[RequestOutput]:
        """Returns the answers to all prompts, in the order of the prompts.

        A prompt is a text, a list of tokens, {"prompt": text} or {"prompt_token_ids": tokens}. use_tqdm: True shows a progress bar, False none.
        None shows one if the call takes over a second and standard error is a terminal. adapters: an adapter, or a list of adapters for all
        prompts; or a list with one entry for each prompt, which is a list of adapters or None. Ctrl-C cancels all requests.
        """
        texts = self._list_of(prompts)
        params = self._params_of(sampling_params, len(texts))
        several = len(texts) > 1 or texts is not prompts and not isinstance(prompts, str | Mapping)
        tokens = [self._tokens_of(prompt, f"prompts[{i}]" if several else "prompts") for i, prompt in enumerate(texts)]
        return self._run(tokens, params, for_each(adapters, len(texts)), use_tqdm)

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]] | Sequence[Sequence[Mapping[str, Any]]],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        *,
        use_tqdm: bool | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        adapters: Adapters | Sequence[Adapters | None] | None = None,
    ) -> list[RequestOutput]:
        """Returns the answers to one conversation or to several. The model's chat template makes the prompts. Raises Unsupported if the template
        leaves the tools out. use_tqdm, adapters: as for generate().
        """
        if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
            raise TypeError(f"LLM.chat(): messages is a list of dicts, or a list of such lists, not {kind_of(messages)}")
        is_one = not messages or not isinstance(messages[0], Sequence) or isinstance(messages[0], str)
        several: list[Any] = [messages] if is_one else list(messages)
        for i, one in enumerate(several):
            check_messages(one, "LLM.chat()", "messages" if is_one else f"messages[{i}]")
        if tools is not None:
            check_tools(tools, "LLM.chat()")
        params = self._params_of(sampling_params, len(several))
        tokens: list[tuple[str | None, list[int]]] = []
        for one in several:
            made = self.engine.apply_chat_template(
                one, tools=tools, add_generation_prompt=add_generation_prompt, arguments=chat_template_kwargs, tokenize=True
            )
            assert not isinstance(made, str)
            tokens.append((self.engine.tokenizer.decode(made, special=True), made))
        return self._run(tokens, params, for_each(adapters, len(tokens)), use_tqdm)

    def embed(self, texts: str | Sequence[str]) -> list[list[float]]:
        """Returns an embedding of each text, as a list. `texts` is a text or a list of texts. (Engine.embed() takes a list, and returns an array.)"""
        if not isinstance(texts, str | Sequence):
            raise TypeError(f"LLM.embed(): texts is a str or a list of str, not {kind_of(texts)}")
        several = [texts] if isinstance(texts, str) else list(texts)
        return [[float(x) for x in row] for row in self.engine.embed(several)]

    def get_metrics(self) -> dict[str, Any]:
        """Returns the scheduler's figures (see Scheduler.figures)."""
        return self._scheduler.figures

    def close(self) -> None:
        """Ends the scheduler's thread. The engine is freed when nothing refers to it."""
        self._scheduler.close()

    def __enter__(self) -> LLM:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<tessera.LLM of {self.engine!r}>"

    @staticmethod
    def _list_of(prompts: Prompt | Sequence[Prompt]) -> list[Prompt]:
        if isinstance(prompts, str | Mapping):
            return [prompts]
        if not hasattr(prompts, "__iter__") or isinstance(prompts, bytes):
            raise TypeError(f"LLM.generate(): prompts is a text, a list of texts, or tokens, not {kind_of(prompts)}")
        several: list[Any] = list(prompts)
        if several and all(hasattr(one, "__index__") for one in several):
            return [several]
        return several

    @staticmethod
    def _params_of(params: SamplingParams | Sequence[SamplingParams] | None, count: int) -> list[SamplingParams]:
        if params is None or isinstance(params, SamplingParams):
            return [params or SamplingParams()] * count
        if not isinstance(params, Sequence):
            advice = ": write SamplingParams(**options)" if isinstance(params, Mapping) else ": use the SamplingParams" if isinstance(params, Sampler) else ""
            raise TypeError(f"LLM: sampling_params is a SamplingParams or a list of them, not {kind_of(params)}{advice}")
        for i, one in enumerate(params):
            if not isinstance(one, SamplingParams):
                raise TypeError(f"LLM: sampling_params[{i}] is a SamplingParams, not {kind_of(one)}")
        if len(params) != count:
            raise InvalidArgument(f"{len(params)} SamplingParams for {count} prompts: give one for all, or one for each")
        return list(params)

    def _tokens_of(self, prompt: Prompt, name: str) -> tuple[str | None, list[int]]:
        """Returns the text and the tokens of a prompt. `name` is its name in errors."""
        text: object = None
        tokens: object = prompt
        if isinstance(prompt, Mapping):
            if "prompt_token_ids" in prompt:
                text, tokens = prompt.get("prompt"), prompt["prompt_token_ids"]
            elif "prompt" in prompt:
                tokens = prompt["prompt"]
            else:
                raise InvalidArgument(f'LLM.generate(): {name} is a dict without "prompt" and without "prompt_token_ids"')
        try:
            if isinstance(tokens, str):
                return tokens, self.engine.tokenizer.encode(tokens)
            if not hasattr(tokens, "__iter__") or isinstance(tokens, bytes):
                raise TypeError(f"LLM.generate(): {name} is a text, tokens or a dict, not {kind_of(tokens)}")
            several: list[Any] = list(tokens)
            for token in several:
                if not hasattr(token, "__index__"):
                    raise TypeError(f"LLM.generate(): {name} has {kind_of(token)} where a token is expected, an int")
            return text if isinstance(text, str) else None, [int(token) for token in several]
        except Error as error:
            raise type(error)(f"{name}: {error}") from None

    @staticmethod
    def _cancel(requests: list[Request]) -> None:
        for request in requests:
            request.cancel()

    def _run(
        self, prompts: list[tuple[str | None, list[int]]], params: list[SamplingParams], adapters: list[Adapters | None], show: bool | None
    ) -> list[RequestOutput]:
        requests: list[Request] = []
        outputs: list[RequestOutput] = []
        bar = _progress.counting("Generating", "prompts", show)
        try:
            for (_, tokens), one, of_prompt in zip(prompts, params, adapters, strict=True):
                requests.append(
                    self._scheduler.submit(
                        tokens,
                        sampler=one.sampler(),
                        max_tokens=one.max_tokens,
                        stop=one.stop,
                        stop_tokens=one.stop_token_ids,
                        ignore_eos=one.ignore_eos,
                        logprobs=one.logprobs or 0,
                        samples=one.n,
                        priority=one.priority,
                        adapters=of_prompt,
                    )
                )
            for request, (text, tokens), one in zip(requests, prompts, params, strict=True):
                outputs.append(_output(request, text, tokens, one))
                if bar is not None:
                    bar.update(len(outputs), len(requests))
        except (TypeError, InvalidArgument) as error:
            self._cancel(requests)
            error = renamed(error, "Scheduler.submit(", "SamplingParams(")
            if len(prompts) > 1 and len(requests) < len(prompts):  # submitting it has failed
                error = type(error)(f"prompts[{len(requests)}]: {error}")
            raise error from None
        except BaseException:
            self._cancel(requests)
            raise
        finally:
            if bar is not None:
                bar.close()
        return outputs


def _output(request: Request, text: str | None, tokens: list[int], params: SamplingParams) -> RequestOutput:
    samples = request.result()
    output = RequestOutput(str(request.id), text, tokens, metrics=dict(request.figures))
    stops = [params.stop] if isinstance(params.stop, str) else params.stop or []
    for index, sample in enumerate(samples):
        reason = "length" if sample.finish_reason == "max_tokens" else "stop" if sample.finish_reason else None
        stop_reason: int | str | None = None
        if sample.stop_string is not None:
            stop_reason = stops[sample.stop_string]
        elif sample.finish_reason == "stop_token":
            stop_reason = sample.tokens[-1]
        completion = CompletionOutput(index, sample.text, sample.tokens, reason, stop_reason)
        if params.logprobs is not None:
            completion.cumulative_logprob = sum(sample.logprobs)
            completion.logprobs = [dict(top) for top in sample.top]
        output.outputs.append(completion)
    return output
