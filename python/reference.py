"""Writes docs/reference/python.md: python3 python/reference.py PACKAGE > docs/reference/python.md

PACKAGE is a folder `tessera` with the stub of the module, _core.pyi: of an installed wheel, or of a build tree (build/release/python/tessera).
The words are those of help(): change them in python/src and python/tessera.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

HEAD = """# The Python package
This page lists every class of the module `tessera`. `python/reference.py` makes the page from the stubs of the package (which type checkers read), so
its text is that of `help(tessera.Engine)`. To begin, read the [tutorial](../tutorial/python.md). Each [error code of the library](errors.md) has a
class of its own.

A text in quotes is a value of an option: `policy="fair"`. Tokens are integers. Arrays are numpy arrays. An array keeps its memory alive, and the library
never writes to the array again: it stays as it is, whatever its session or batch does next. Most arrays are made without a copy, so two arrays of the
same results can share memory. If you write to one of them, the other changes too.
"""

# The classes in the order of the page, by what a reader wants.
GROUPS = {
    "Loading and generating": ["Engine", "Adapter", "Session", "Generation", "Piece", "Sampler", "Chain", "StageContext", "Drafter"],
    "Many requests": ["Scheduler", "Request", "Sample", "AsyncScheduler", "AsyncRequest", "LLM", "SamplingParams", "RequestOutput", "CompletionOutput"],
    "Chat and structured output": ["Conversation", "Answer", "Delta", "Grammar", "CompiledGrammar", "Matcher"],
    "Tokens, logits, memory": ["Tokenizer", "Detokenizer", "Batch", "Outputs", "Plan", "KernelUse", "Verification"],
}


def signature(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    arguments = ast.unparse(function.args)
    for first in ("self, /, ", "self, ", "cls, "):
        arguments = arguments.removeprefix(first)
    if arguments in ("self", "self, /", "cls"):
        arguments = ""
    result = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    return f"{'await ' if isinstance(function, ast.AsyncFunctionDef) else ''}{function.name}({arguments}){result}"


def is_a(function: ast.FunctionDef | ast.AsyncFunctionDef, decorator: str) -> bool:
    return any(ast.unparse(one).split(".")[-1] == decorator for one in function.decorator_list)


def words(node: ast.AST) -> str:
    text = ast.get_docstring(node) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else None
    return (text or "").strip()


def prose(text: str) -> str:
    """Returns a docstring as Markdown: indented lines are code."""
    lines: list[str] = []
    code = False
    for line in text.splitlines():
        if line.startswith("    ") and not code:
            code = True
            lines.append("```python")
        elif line and not line.startswith("    ") and code:
            code = False
            if lines[-1] == "":
                lines.pop()
            lines += ["```", ""]
        lines.append(line[4:] if code else line.replace("<", "&lt;"))
    if code:
        lines.append("```")
    return "\n".join(lines).strip()


def members(one: ast.ClassDef) -> list[str]:
    lines: list[str] = []
    for node in one.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name.startswith("_") and node.name != "__init__":
                continue
            if is_a(node, "setter"):
                continue
            if is_a(node, "property"):
                returns = f": {ast.unparse(node.returns)}" if node.returns else ""
                title = node.name + returns
            elif node.name == "__init__":
                title = one.name + signature(node)[len("__init__"):].removesuffix(" -> None")
            else:
                title = ("static " if is_a(node, "staticmethod") or is_a(node, "classmethod") else "") + signature(node)
            text = " ".join(words(node).split()).replace("<", "&lt;")
            lines.append(f"- `{title}`" + (f"\n  {text}" if text and node.name != "__init__" else ""))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and not node.target.id.startswith("_"):
            default = f" = {ast.unparse(node.value)}" if node.value else ""
            lines.append(f"- `{node.target.id}: {ast.unparse(node.annotation)}{default}`")
    return lines


def page(package: Path) -> str:
    classes: dict[str, ast.ClassDef] = {}
    for file in ("aio.py", "conversation.py", "llm.py", "_errors.py", "_core.pyi"):
        for node in ast.parse((package / file).read_text()).body:
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, node)
    public: list[str] = []
    for node in ast.parse((package / "__init__.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            public = [name for name in ast.literal_eval(node.value) if name in classes]
    listed = {name for names in GROUPS.values() for name in names}
    errors = [name for name in public if name not in listed]
    out = [HEAD]
    for title, names in GROUPS.items():
        out.append(f"## {title}")
        for name in names:
            one = classes[name]
            out += [f"### {name}", prose(words(one)), "", *members(one), ""]
    out += ["## Errors", "| class | when |", "|---|---|"]
    for name in errors:
        text = " ".join(words(classes[name]).split())
        bases = ", ".join(ast.unparse(base) for base in classes[name].bases)
        out.append(f"| `{name}({bases})` | {text} |")
    return "\n".join(out).rstrip() + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.stdout.write(page(Path(sys.argv[1])))
