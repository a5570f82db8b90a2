"""tessera: LLM inference in your process.

    import tessera

    engine = tessera.Engine("model.gguf")
    session = engine.session()
    session.append("Once upon a time")
    for piece in session.generate(tessera.Sampler(temperature=0.8), max_tokens=100):
        print(piece, end="", flush=True)
"""

from ._core import (
    Adapter,
    Batch,
    Chain,
    CompiledGrammar,
    Delta,
    Detokenizer,
    Drafter,
    Engine,
    Generation,
    Grammar,
    KernelUse,
    Matcher,
    Outputs,
    Piece,
    Plan,
    Request,
    Sample,
    Sampler,
    Scheduler,
    Session,
    StageContext,
    Tokenizer,
    Verification,
    __version__,
)
from ._errors import (
    Busy,
    CacheFull,
    CallbackFailed,
    Cancelled,
    CorruptFile,
    DeviceError,
    Error,
    InputOutput,
    Internal,
    InvalidArgument,
    InvalidState,
    NotFound,
    Numeric,
    OutOfMemory,
    OverBudget,
    TooLate,
    Unsupported,
)
from .aio import AsyncRequest, AsyncScheduler
from .conversation import Answer, Conversation
from .llm import LLM, CompletionOutput, RequestOutput, SamplingParams

__all__ = [
    "LLM", "Adapter", "Answer", "AsyncRequest", "AsyncScheduler", "Batch", "Busy", "CacheFull", "CallbackFailed", "Cancelled", "Chain", "CompiledGrammar",
    "CompletionOutput", "Conversation", "CorruptFile", "Delta", "Detokenizer", "DeviceError", "Drafter", "Engine", "Error", "Generation", "Grammar",
    "InputOutput", "Internal", "InvalidArgument", "InvalidState", "KernelUse", "Matcher", "NotFound", "Numeric", "OutOfMemory", "Outputs", "OverBudget",
    "Piece", "Plan", "Request", "RequestOutput", "Sample", "Sampler", "SamplingParams", "Scheduler", "Session", "StageContext", "Tokenizer", "TooLate",
    "Unsupported", "Verification", "__version__",
]
