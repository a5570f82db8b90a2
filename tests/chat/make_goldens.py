#!/usr/bin/env python3
"""What jinja2 makes of the chat templates in ../shared/templates and of our own small expressions, as transformers runs it.

    make_goldens.py SHARED     with jinja2 3.1; writes golden/renders.txt and golden/expressions.txt

renders.txt: a line a template: its name, then a field for each conversation of conversations.json: "bytes:hash" of the
text (FNV-1a, 64 bits), or "-" where the template refuses. expressions.txt: a line an expression of expressions.in: what
it prints, as JSON, or "-" where it is refused.
"""
import datetime
import json
import pathlib
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = pathlib.Path(__file__).parent
NOW = datetime.datetime(2026, 11, 24, 9, 5, 7)  # test_chat_goldens.cpp has the same


class Generation(jinja2.ext.Extension):
    """{% generation %}, as transformers' AssistantTracker has it."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: NOW.strftime(form)
    return env


def render(source, variables):
    """The text, or None where the template refuses."""
    try:
        return environment().from_string(source).render(
            **{"tools": None, "documents": None, "add_generation_prompt": False, **variables})
    except Exception:
        return None


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def templates(shared):
    for path in sorted((shared / "templates").glob("*.jinja")):
        yield path.name, path.read_bytes().decode(), {"bos_token": "<s>", "eos_token": "</s>"}
    configs = json.loads((shared / "templates" / "tokenizer_configs.json").read_text())
    for name, config in configs.items():
        sources = config["chat_template"]
        if isinstance(sources, str):
            sources = {"default": sources}
        tokens = {key: config[key] for key in ("bos_token", "eos_token", "pad_token", "unk_token")
                  if config.get(key) is not None}
        for kind, source in sources.items():
            yield f"{name}:{kind}", source, tokens


def field(text):
    if text is None:
        return "-"
    data = text.encode()
    return f"{len(data)}:{fnv(data):016x}"


def main():
    shared = pathlib.Path(sys.argv[1])
    conversations = json.loads((HERE / "conversations.json").read_text())
    with open(HERE / "golden" / "renders.txt", "w") as out:
        for name, source, tokens in templates(shared):
            fields = [field(render(source, {**tokens, **variables})) for variables in conversations]
            print(name.replace(" ", "_"), *fields, file=out)
    variables = json.loads((HERE / "expressions.json").read_text())
    with open(HERE / "golden" / "expressions.txt", "w") as out:
        for line in (HERE / "expressions.in").read_text().rstrip("\n").split("\n"):
            text = render(line.replace("\\n", "\n"), variables)
            print("-" if text is None else json.dumps(text, ensure_ascii=False), file=out)


if __name__ == "__main__":
    main()
