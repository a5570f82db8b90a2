"""Serves a model with Ray Serve: OpenAI's completions over several replicas, each with an engine of its own.

    pip install "ray[serve]" tessera-llm
    serve run app:build model=/models/model.gguf replicas=2 threads=8
    curl http://127.0.0.1:8000/v1/completions -d '{"prompt": "Once upon a time", "max_tokens": 50, "stream": true}'

Read it in this order: Model is a replica; Prompts chooses the replica for a request; Front speaks HTTP.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import os
import random
import time
from collections.abc import AsyncIterator
from typing import Any

from pydantic import BaseModel
from ray import serve
from ray.serve.config import AutoscalingConfig, AutoscalingContext, AutoscalingPolicy, RequestRouterConfig
from ray.serve.handle import DeploymentHandle
from ray.serve.request_router import MultiplexMixin, PendingRequest, RequestRouter, RunningReplica
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

import tessera

# How many characters of a prompt's beginning choose the replica that gets the prompt: prompts that begin alike go to the same replica,
# which has computed the beginning already.
KEPT_TEXT = 256
STUCK_SECONDS = 60.0  # a replica that has requests, but makes no step for this time, is not healthy


class Settings(BaseModel):
    """The arguments of `serve run app:build`."""

    model: str
    replicas: int = 2
    most_replicas: int = 0  # above `replicas`: Ray adds replicas while requests wait
    threads: int = 0  # threads of a replica; Ray counts them as the replica's CPUs
    kv_budget: int = 0  # bytes of keys and values; 0: earlier prompts are kept only within one full context
    max_running: int = 64
    adapters: str = ""  # "NAME=PATH,NAME=PATH"


class Question(BaseModel):
    """A request that Front sends to Model."""

    prompt: str
    max_tokens: int = 16
    temperature: float = 1.0
    seed: int | None = None
    stop: list[str] = []
    ignore_eos: bool = False


@serve.deployment
class Model:
    """A replica. Ray sends it requests, which its scheduler computes together."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = Settings(**settings)
        self.engine = tessera.Engine(self.settings.model, threads=self.settings.threads, kv_budget=self.settings.kv_budget, progress=False)
        self.scheduler = tessera.AsyncScheduler(self.engine, max_running=self.settings.max_running)
        self.paths = dict(each.split("=", 1) for each in self.settings.adapters.split(",") if each)
        self.steps, self.stepped = -1, time.monotonic()

    @serve.multiplexed(max_num_models_per_replica=8)
    async def adapter(self, name: str) -> tessera.Adapter:
        """Loads an adapter. Ray drops the adapter that was used least recently, and sends requests to replicas that have their adapter."""
        return await asyncio.to_thread(self.engine.adapter, self.paths[name])

    async def generate(self, question: Question) -> AsyncIterator[dict[str, Any]]:
        """Yields the pieces of the answer. When the client leaves, Ray cancels this generator, and the request ends within a step."""
        name = serve.get_multiplexed_model_id()
        adapters = [await self.adapter(name)] if name else []
        try:
            request = self.scheduler.submit(
                question.prompt,
                sampler=tessera.Sampler(temperature=question.temperature, seed=question.seed),
                max_tokens=question.max_tokens,
                stop=question.stop,
                ignore_eos=question.ignore_eos,
                adapters=adapters,
            )
        except (tessera.InvalidArgument, tessera.Busy) as error:  # Front would get an exception without its class
            yield {"error": str(error), "status": 429 if isinstance(error, tessera.Busy) else 400}
            return
        async with request:
            async for piece in request:
                yield {"text": piece.text, "finish_reason": piece.finish_reason}
            figures = request.request.figures
            yield {"usage": {"prompt_tokens": figures["prompt_tokens"], "completion_tokens": figures["tokens"], "cached_tokens": figures["reused_tokens"]}}

    async def check_health(self) -> None:
        """Ray calls this every few seconds, and replaces a replica whose call raises an exception."""
        figures = self.scheduler.figures
        if figures["steps"] != self.steps or figures["running"] + figures["waiting"] == 0:
            self.steps, self.stepped = figures["steps"], time.monotonic()
        if self.scheduler.closed or time.monotonic() - self.stepped > STUCK_SECONDS:
            raise RuntimeError(f"the scheduler has made no step for {time.monotonic() - self.stepped:.0f} s")

    async def record_autoscaling_stats(self) -> dict[str, float]:
        """Returns the figures from which by_waiting() decides."""
        figures = self.scheduler.figures
        return {"waiting": float(figures["waiting"]), "running": float(figures["running"])}

    async def figures(self) -> dict[str, Any]:
        """Returns the replica's figures, for people and checks."""
        return {"pid": os.getpid(), **{key: self.scheduler.figures[key] for key in ("running", "waiting", "finished", "cancelled", "steps")}}

    async def __del__(self) -> None:
        await self.scheduler.aclose()


def by_waiting(context: AutoscalingContext) -> tuple[int, dict[str, Any]]:
    """Chooses the number of replicas: as many as have room for all requests that run and wait; one less at a time."""
    now = context.current_num_replicas
    stats = context.aggregated_metrics or {}
    total = {name: sum(stats.get(name, {}).values()) for name in ("running", "waiting")}
    each = total["running"] / max(now, 1)
    wanted = now + math.ceil(total["waiting"] / max(each, 1.0)) if total["waiting"] > 0 else now - (1 if total["running"] < now - 1 else 0)
    return min(max(wanted, context.capacity_adjusted_min_replicas), context.capacity_adjusted_max_replicas), {}


class Prompts(MultiplexMixin, RequestRouter):
    """Sends prompts that begin alike to the same replica, by rendezvous hashing: if a replica goes, only its own prompts move. Passes over
    a replica that takes no more requests. Does not use Ray's FIFOMixin, which would give a replica to the oldest waiting request, even if
    the replica was chosen for another one. Ray's PrefixCacheAffinityRouter also keeps alike prompts together, by a tree of all texts, and
    needs ray[llm]."""

    async def choose_replicas(self, candidate_replicas: list[RunningReplica], pending_request: PendingRequest | None = None) -> list[list[RunningReplica]]:
        # Looks for the attribute, not for the class Question: for the router Ray may have made the class a second time in this process.
        prompts = [each.prompt for each in pending_request.args if hasattr(each, "prompt")] if pending_request else []
        if pending_request is None or not prompts:  # a call for figures, for example
            return [[replica] for replica in random.sample(candidate_replicas, len(candidate_replicas))]
        allowed = candidate_replicas
        if pending_request.metadata.multiplexed_model_id:
            ids = self.apply_multiplex_routing(pending_request=pending_request)  # replicas that have the adapter
            allowed = [replica for replica in candidate_replicas if replica.replica_id in ids] or candidate_replicas
        beginning = prompts[0][:KEPT_TEXT]

        def rank(replica: RunningReplica) -> bytes:
            return hashlib.blake2b(f"{replica.replica_id.unique_id}\n{beginning}".encode()).digest()

        return [[replica] for replica in sorted(allowed, key=rank)]


@serve.deployment
class Front:
    """Answers HTTP requests. Front computes nothing, so one Front serves many replicas."""

    def __init__(self, model: DeploymentHandle, adapters: list[str]) -> None:
        self.model = model
        self.adapters = adapters

    async def __call__(self, request: Request) -> Response:
        if request.url.path == "/health":
            return JSONResponse({"status": "ok"})
        if request.url.path != "/v1/completions" or request.method != "POST":
            return JSONResponse({"error": {"message": "There is POST /v1/completions alone."}}, 404)
        try:
            body = json.loads(await request.body())
            question = Question(**{key: value for key, value in body.items() if key in Question.model_fields and value is not None})
        except (ValueError, AttributeError) as error:
            return JSONResponse({"error": {"message": str(error)}}, 400)
        name = body.get("model") or ""
        adapter = name if name in self.adapters else ""
        pieces = self.model.options(stream=True, multiplexed_model_id=adapter).generate.remote(question)
        # Waits for the first piece before it sends a status: the first piece says whether the request was accepted, and an error can have a
        # status of its own only before the answer begins.
        try:
            first = await anext(pieces)
        except asyncio.CancelledError:
            pieces.cancel()
            raise
        if "error" in first:
            return JSONResponse({"error": {"message": first["error"]}}, first["status"])
        if body.get("stream"):
            return StreamingResponse(self.events(first, pieces), media_type="text/event-stream")
        text, reason, usage = first["text"], first["finish_reason"], None
        try:
            async for piece in pieces:
                text, reason, usage = text + piece.get("text", ""), piece.get("finish_reason") or reason, piece.get("usage")
        except asyncio.CancelledError:
            pieces.cancel()
            raise
        return JSONResponse({"object": "text_completion", "choices": [{"index": 0, "text": text, "finish_reason": reason}], "usage": usage})

    async def events(self, first: dict[str, Any], pieces: Any) -> AsyncIterator[str]:
        try:
            yield self.event(first)
            async for piece in pieces:
                yield self.event(piece)
            yield "data: [DONE]\n\n"
        finally:
            pieces.cancel()  # ends the request if the client has left; else has no effect

    @staticmethod
    def event(piece: dict[str, Any]) -> str:
        choices = [] if "usage" in piece else [{"index": 0, "text": piece["text"], "finish_reason": piece["finish_reason"]}]
        return f"data: {json.dumps({'object': 'text_completion', 'choices': choices, 'usage': piece.get('usage')})}\n\n"


def build(settings: Settings) -> serve.Application:
    """Makes the application."""
    scaling: dict[str, Any] = {"num_replicas": settings.replicas}
    if settings.most_replicas > settings.replicas:
        policy = AutoscalingPolicy(policy_function=by_waiting)
        scaling = {"autoscaling_config": AutoscalingConfig(min_replicas=settings.replicas, max_replicas=settings.most_replicas, policy=policy)}
    model = Model.options(
        max_ongoing_requests=4 * settings.max_running,  # further requests wait in Front; the scheduler runs max_running at once
        health_check_period_s=2,
        health_check_timeout_s=10,
        graceful_shutdown_timeout_s=30,
        ray_actor_options={"num_cpus": settings.threads or 1},
        request_router_config=RequestRouterConfig(request_router_class=Prompts),
        **scaling,
    ).bind(settings.model_dump())
    names = [each.split("=", 1)[0] for each in settings.adapters.split(",") if each]
    return Front.options(max_ongoing_requests=1000, ray_actor_options={"num_cpus": 0.1}).bind(model, names)
