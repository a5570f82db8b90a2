"""What is wrong with the arguments of a call, in one sentence that names the argument.

The compiled part calls explain() when the arguments of a call do not fit the function's signature. A call that fits never comes here.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from ._errors import Error, InvalidArgument

_MARK = "(): incompatible function arguments."  # in the text of nanobind's error

# Names of options in other libraries.
_OTHER_NAMES = {
    "n_ctx": "context", "max_model_len": "context", "n_threads": "threads", "model": "path", "model_path": "path", "max_num_seqs": "max_running",
    "max_new_tokens": "max_tokens", "n": "samples", "num_beams": "beams", "draft_model": "drafter", "stop_token_ids": "stop_tokens",
}  # fmt: skip

# Integers that may be negative: the library checks them.
_SIGNED = {"priority", "cuda_device", "token", "tokens", "prompt", "text", "texts", "stop_tokens", "history", "allow", "deny", "breakers", "suppressed"}
# Integers of 64 bits: other options have at most 32.
_WIDE = re.compile("budget|bytes|seed|position|^id$|first|last|top_k|^k$|keep|max_tokens|max_waiting|max_unread|window|sinks|^n$")

# Where the objects of classes without a constructor come from.
_MADE_BY = {
    "Adapter": "Engine.adapter() loads an adapter",
    "CompiledGrammar": "Engine.compile() compiles a grammar",
    "Delta": "an iteration over Conversation.answer() returns deltas",
    "Drafter": "Drafter.ngram() and the other functions of the class make drafters",
    "Generation": "Session.generate() begins a generation",
    "Grammar": "Grammar.json_schema(), Grammar.regex() and the other functions of the class make grammars",
    "KernelUse": "Engine.explain() returns them",
    "Outputs": "Engine.forward() returns outputs",
    "Piece": "an iteration over Session.generate() or over a Request returns pieces",
    "Plan": "Engine.plan and Engine.plan_for() are plans",
    "Request": "Scheduler.submit() makes a request",
    "Session": "Engine.session() makes a session",
    "StageContext": "a stage with the parameter `context` gets one",
    "Tokenizer": "Engine.tokenizer is the model's tokenizer",
    "Verification": "Session.verify() returns one",
}


class _Misfit(NamedTuple):
    path: str  # the argument, or an element of it: "stop[1]"
    value: object
    wanted: ast.expr


def no_constructor(kind: type) -> str:
    """Returns the error of a call of a class whose objects a function makes."""
    return f"{kind.__name__}() cannot be called: {_MADE_BY.get(kind.__name__, 'functions of the library make such objects')}"


def kind_of(value: object) -> str:
    """Returns a value's type in words, with an article: "a str"."""
    if value is None:
        return "None"
    if isinstance(value, bytes):
        return "bytes"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


_E = TypeVar("_E", bound=Exception)


def renamed(error: _E, old: str, new: str) -> _E:
    """Returns the error with another name of the function."""
    text = str(error)
    return type(error)(new + text[len(old) :]) if text.startswith(old) else error


def explain(function: Any, args: list[Any], kwargs: dict[str, Any], error: object) -> Exception | None:
    """Returns the error for a call of `function` whose arguments do not fit. Returns None if `error` is about something else."""
    if _MARK not in str(error):
        return None
    shown = function.__qualname__.removesuffix(".__init__") + "()"
    text = re.sub(r"\\\d+", "...", function.__nb_signature__[0][0].split("\n")[-1])
    parameters = ast.parse(text + ": ...").body[0].args  # type: ignore[attr-defined]
    ordered = parameters.posonlyargs + parameters.args
    if ordered and ordered[0].arg == "self":
        kind = function.__qualname__.split(".")[0]
        if args and not shown.startswith(kind + "()") and not _fits(args[0], ast.Name(kind)):
            return TypeError(f"{shown} is a function of a {kind}, not of {kind_of(args[0])}")
        ordered, args = ordered[1:], args[1:]
    by_name = {one.arg: one for one in ordered + parameters.kwonlyargs}
    required = [one.arg for one in (ordered[: len(ordered) - len(parameters.defaults)] if parameters.defaults else ordered)]
    for name in kwargs:
        if name not in by_name:
            return TypeError(f"{shown} has no option '{name}'" + _advice_for_option(name, list(by_name), shown))
    if len(args) > len(ordered):
        return TypeError(_too_many(shown, len(args), len(ordered), [one.arg for one in parameters.kwonlyargs]))
    given: dict[str, Any] = {}
    for one, value in zip(ordered, args, strict=False):
        if one.arg in kwargs:
            return TypeError(f"{shown}: {one.arg} is given twice, in order and by name")
        given[one.arg] = value
    given |= kwargs
    missing = [name for name in required if name not in given]
    if missing:
        return TypeError(f"{shown} needs {' and '.join(repr(name) for name in missing)}")
    for name, value in given.items():
        wanted = by_name[name].annotation
        if wanted is not None and (misfit := _misfit(name, value, wanted)):
            if _is_broken_text(misfit.value) and _fits("", misfit.wanted):
                return InvalidArgument(f"{shown}: {misfit.path} is no valid text: it has half of a surrogate pair")
            return TypeError(f"{shown}: {misfit.path} is {_words(misfit.wanted)}, not {kind_of(misfit.value)}" + _advice_for_value(name, value, wanted))
    ranges = [(path, n) for name, value in given.items() if (wanted := by_name[name].annotation) is not None for path, n in _integers(name, value, wanted)]
    for path, n in ranges:
        if n < 0 and path.split("[")[0] not in _SIGNED:
            return InvalidArgument(f"{shown}: {path} is {n}: expected 0 or more")
    for path, n in sorted(ranges, key=lambda one: _WIDE.search(one[0].split("[")[0]) is not None):
        name = path.split("[")[0]
        # An option of 64 bits would have accepted less than 2^64.
        most = (1 << (31 if name in _SIGNED else 64 if _WIDE.search(name) and n >= 1 << 64 else 32)) - 1
        if n > most or n < -(1 << 31):
            return InvalidArgument(f"{shown}: {path} is {n}: expected " + (f"at most {most}" if n > 0 else f"at least {-(1 << 31)}"))
    return TypeError(f"{shown}: the arguments do not fit: " + ", ".join(f"{name} is {kind_of(value)}" for name, value in given.items()))


def _too_many(shown: str, got: int, most: int, options: list[str]) -> str:
    example = f"{shown[:-1]}{options[0]}=...)" if options else ""
    if most == 0:
        return f"{shown} takes its options by name: {example}" if options else f"{shown} takes no arguments, and got {got}"
    count = f"{most} argument{'s' if most > 1 else ''}"
    return f"{shown} takes {count} without a name, and got {got}" + (f": give the others by name ({options[0]}=...)" if options else "")


def _advice_for_option(name: str, known: list[str], shown: str) -> str:
    if _OTHER_NAMES.get(name) in known:
        return f"; did you mean '{_OTHER_NAMES[name]}'?"
    if "sampler" in known and name in _options_of_sampler():
        return f": pass Sampler({name}=...)" if known[0] == "sampler" else f": pass sampler=Sampler({name}=...)"
    if shown == "Sampler()" and name in ("max_tokens", "stop", "stop_tokens", "ignore_eos", "logprobs"):
        return ": pass it to Session.generate() or Scheduler.submit()"
    near = difflib.get_close_matches(name, known, 1, 0.7)
    if near:
        return f"; did you mean '{near[0]}'?"
    if not known:
        return "; it has no options"
    return f": it has {', '.join(known)}" if len(known) <= 10 else f": help(tessera.{shown[:-2]}) lists its options"


def _options_of_sampler() -> list[str]:
    from ._core import Sampler

    return re.findall(r"(\w+): ", Sampler.__init__.__nb_signature__[0][0])  # type: ignore[attr-defined]


def _advice_for_value(name: str, value: object, wanted: ast.expr) -> str:
    kind = type(value).__name__
    if name == "sampler":
        if kind == "SamplingParams":
            return "; use params.sampler()"
        if kind == "Chain":
            return "; call .build()"
        return f": {value.__name__}() makes one" if isinstance(value, type) and value.__name__ == "Sampler" else ""
    if name == "grammar":
        if kind == "CompiledGrammar":
            return "; pass the Grammar that was compiled"
        if kind == "str":
            return "; use Grammar.regex(), Grammar.ebnf() or Grammar.json_schema()"
        return "; use Grammar.json_schema()" if kind == "dict" or isinstance(value, type) else ""
    if name == "engine":
        return "; use its attribute `engine`" if kind in ("LLM", "Conversation", "Session", "Scheduler") else "; Engine(path) loads one"
    if name == "prompt" and isinstance(value, Sequence) and value and isinstance(value[0], Mapping):
        return "; Engine.apply_chat_template() makes the tokens of messages"
    for element in _elements(wanted):
        if not isinstance(value, list | tuple) and _fits(value, element):
            inside = getattr(value, "__name__", "f") if callable(value) else "..."
            return f"; give a list: {name}=[{inside if inside.isidentifier() else 'f' if callable(value) else '...'}]"
    return ""


# Annotations


def _alternatives(wanted: ast.expr) -> list[ast.expr]:
    if isinstance(wanted, ast.BinOp) and isinstance(wanted.op, ast.BitOr):
        return _alternatives(wanted.left) + _alternatives(wanted.right)
    return [wanted]


def _name(wanted: ast.expr) -> str:
    if isinstance(wanted, ast.Subscript):
        wanted = wanted.value
    if isinstance(wanted, ast.Constant):
        return repr(wanted.value)
    return wanted.attr if isinstance(wanted, ast.Attribute) else wanted.id if isinstance(wanted, ast.Name) else "?"


def _arguments(wanted: ast.expr) -> list[ast.expr]:
    if not isinstance(wanted, ast.Subscript):
        return []
    return wanted.slice.elts if isinstance(wanted.slice, ast.Tuple) else [wanted.slice]


def _elements(wanted: ast.expr) -> list[ast.expr]:
    """Returns the types of the elements of the lists that fit."""
    return [_arguments(one)[0] for one in _alternatives(wanted) if _name(one) in ("Sequence", "list") and _arguments(one)]


def _is_text(value: object) -> bool:
    return isinstance(value, str | bytes | bytearray)


def _is_broken_text(value: object) -> bool:
    return isinstance(value, str) and re.search("[\ud800-\udfff]", value) is not None


def _is_list(value: object) -> bool:
    return not _is_text(value) and not isinstance(value, Mapping) and hasattr(value, "__len__") and hasattr(value, "__getitem__")


def _fits(value: Any, wanted: ast.expr) -> bool:
    several = _alternatives(wanted)
    if len(several) > 1:
        return any(_fits(value, one) for one in several)
    name, inner = _name(wanted), _arguments(wanted)
    if name in ("Sequence", "list"):
        return _is_list(value) and (not inner or all(_fits(one, inner[0]) for one in value))
    if name == "tuple":
        return isinstance(value, list | tuple) and len(value) == len(inner) and all(map(_fits, value, inner))
    if name == "dict":
        return isinstance(value, dict) and (len(inner) != 2 or all(_fits(k, inner[0]) and _fits(v, inner[1]) for k, v in value.items()))
    simple = {
        "None": lambda: value is None,
        "int": lambda: hasattr(value, "__index__"),
        "float": lambda: hasattr(value, "__float__") or hasattr(value, "__index__"),
        "bool": lambda: isinstance(value, bool),
        "str": lambda: isinstance(value, str) and not _is_broken_text(value),
        "bytes": lambda: isinstance(value, bytes),
        "bytearray": lambda: isinstance(value, bytearray),
        "memoryview": lambda: isinstance(value, memoryview),
        "PathLike": lambda: hasattr(value, "__fspath__"),
        "Callable": lambda: callable(value),
        "Mapping": lambda: isinstance(value, Mapping),
        "NDArray": lambda: hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__"),
    }.get(name)
    if simple is not None:
        return simple()
    from . import _core

    kind = getattr(_core, name, None)
    return not isinstance(kind, type) or isinstance(value, kind)


def _misfit(path: str, value: Any, wanted: ast.expr) -> _Misfit | None:
    """Returns the value, or the element of it, that does not fit."""
    if _fits(value, wanted):
        return None
    elements = _elements(wanted)
    if len(elements) == 1 and isinstance(value, list | tuple):
        for i, one in enumerate(value):
            if misfit := _misfit(f"{path}[{i}]", one, elements[0]):
                return misfit
    if isinstance(value, dict):
        for of in _alternatives(wanted):
            if _name(of) == "dict" and len(_arguments(of)) == 2:
                key, inner = _arguments(of)
                for k, v in value.items():
                    if not _fits(k, key):
                        return _Misfit(f"the key {k!r} of {path}", k, key)
                    if misfit := _misfit(f"{path}[{k!r}]", v, inner):
                        return misfit
    return _Misfit(path, value, wanted)


def _integers(path: str, value: Any, wanted: ast.expr) -> Iterator[tuple[str, int]]:
    """Returns the integers of an argument that fits."""
    for one in _alternatives(wanted):
        name, inner = _name(one), _arguments(one)
        if not _fits(value, one):
            continue
        if name == "int":
            yield path, int(value)
        elif name in ("Sequence", "list", "tuple") and inner:
            for i, element in enumerate(value):
                yield from _integers(f"{path}[{i}]", element, inner[i if name == "tuple" else 0])
        elif name == "dict":
            for k, v in value.items():
                yield from _integers(f"a key of {path}", k, inner[0])
                yield from _integers(f"{path}[{k!r}]", v, inner[1])
        return


def _words(wanted: ast.expr) -> str:
    """Returns the types in words: "a str, a list of int or None"."""
    words = list(dict.fromkeys(_word(one) for one in _alternatives(wanted)))
    if "a path" in words and "a str" in words:
        words.remove("a str")
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _word(wanted: ast.expr) -> str:
    name, inner = _name(wanted), _arguments(wanted)
    if name in ("Sequence", "list"):
        simple = inner and len(_alternatives(inner[0])) == 1 and not _arguments(inner[0])
        return f"a list of {_name(inner[0])}" if simple else "a list of callables" if inner and _name(inner[0]) == "Callable" else "a list"
    if name == "dict":
        return f"a dict of {_name(inner[0])} to {_name(inner[1])}" if len(inner) == 2 else "a dict"
    if name == "tuple":
        return f"a tuple ({', '.join(map(_words, inner))})"
    words = {"None": "None", "bool": "True or False", "PathLike": "a path", "Callable": "a callable", "NDArray": "a numpy array", "bytes": "bytes"}
    return words.get(name) or f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
