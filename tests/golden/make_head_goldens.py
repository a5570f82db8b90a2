#!/usr/bin/env python3
"""Writes data/heads/: draft heads in files of their own, as hubs publish them, and their guesses in float32.

Needs: pip install torch transformers gguf numpy safetensors

  data/heads/TARGET.tokens.txt    the token ids, one line; TARGET is a model of data/
  data/heads/TARGET/medusa        Medusa-1 heads: config.json and medusa_lm_head.safetensors
  data/heads/TARGET/eagle         an EAGLE-1 head: config.json and model.safetensors
  data/heads/TARGET/eagle3        an EAGLE-3 head, which guesses some of the tokens
  data/heads/TARGET/eagle3.gguf   the same as llama.cpp's converter writes it
  data/heads/TARGET/KIND.f32      logits, float32 little endian. Of Medusa heads: [tokens - 1, heads, vocab]; row i is of the model's hidden
                                  state after token i. Of EAGLE heads: [tokens - 1 + CHAIN, vocab]; row i is the guess of the token behind
                                  token i + 1. The last CHAIN rows guess behind the likeliest token of the row before, from the head's own
                                  hidden state. Tokens that the head cannot guess have -inf.
The heads are random. Each is computed here as its authors' code does: FasterDecoding/Medusa (medusa_model.py) and SafeAILab/EAGLE (cnets1.py
for EAGLE-1, cnets.py for EAGLE-3), with all rows at once and without a cache.
"""
import argparse
import json
import pathlib

import gguf
import numpy as np
import torch
from safetensors.torch import save_file
from torch.nn.functional import linear, silu

from cases import CASES
from tiny_models import build, random_tokens

DATA = pathlib.Path(__file__).resolve().parent / "data"
CHAIN, TOKENS = 3, 14


class Random:
    """Weights by name, of numbers of which none can be left out unseen."""

    def __init__(self, seed):
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.tensors = {}

    def matrix(self, name, outputs, inputs, by=1.0):
        self.tensors[name] = torch.from_numpy((self.rng.normal(0, by * inputs ** -0.5, (outputs, inputs))).astype(np.float32))

    def vector(self, name, size, norm):
        values = self.rng.uniform(0.5, 1.5, size) * self.rng.choice([-1.0, 1.0], size) if norm else self.rng.normal(0, 0.4, size)
        self.tensors[name] = torch.from_numpy(values.astype(np.float32))


def rms(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def turn(x, theta):
    """Rotary embedding of halves; x is [rows, heads, dim], and row i has position i."""
    dim = x.shape[-1]
    frequencies = 1.0 / theta ** (torch.arange(0, dim, 2).double() / dim)
    angles = torch.arange(x.shape[0]).double()[:, None] * frequencies[None]
    cos, sin = (torch.cat([f(angles)] * 2, -1).float()[:, None] for f in (torch.cos, torch.sin))
    return x * cos + torch.cat([-x[..., dim // 2:], x[..., :dim // 2]], -1) * sin


def attend(w, at, config, rows):
    """The output projection of causal attention whose queries, keys and values read `rows`."""
    heads, kv = config["num_attention_heads"], config["num_key_value_heads"]
    dim = config.get("head_dim", config["hidden_size"] // heads)
    bias = lambda name: w.get(f"{at}self_attn.{name}_proj.bias")
    q, k, v = (linear(rows, w[f"{at}self_attn.{name}_proj.weight"], bias(name)).view(len(rows), -1, dim) for name in "qkv")
    q, k = turn(q, config["rope_theta"]), turn(k, config["rope_theta"])
    k, v = (x.repeat_interleave(heads // kv, 1) for x in (k, v))
    scores = torch.einsum("ihd,jhd->hij", q, k) * dim ** -0.5
    scores = scores.masked_fill(torch.ones(len(rows), len(rows)).triu(1).bool(), float("-inf"))
    return linear(torch.einsum("hij,jhd->ihd", scores.softmax(-1), v).reshape(len(rows), -1), w[f"{at}self_attn.o_proj.weight"])


def feed(w, at, config, x):
    h = rms(x, w[f"{at}post_attention_layernorm.weight"], config["rms_norm_eps"])
    return x + linear(silu(linear(h, w[f"{at}mlp.gate_proj.weight"])) * linear(h, w[f"{at}mlp.up_proj.weight"]), w[f"{at}mlp.down_proj.weight"])


def chain(tokens, hidden, step):
    """Guesses of an EAGLE head. step(ids, hidden): logits, and the head's hidden state behind each row."""
    ids = torch.tensor(tokens[1:])
    for _ in range(CHAIN + 1):
        logits, out = step(ids, hidden)
        hidden = torch.cat([hidden, out[-1:]])
        ids = torch.cat([ids, logits[-1:].argmax(-1)])
    return logits


def layer(random, at, config, width):
    d, heads, kv = config["hidden_size"], config["num_attention_heads"], config["num_key_value_heads"]
    dim, ffn = config.get("head_dim", d // heads), config["intermediate_size"]
    for name, outputs in (("q", heads * dim), ("k", kv * dim), ("v", kv * dim)):
        random.matrix(f"{at}self_attn.{name}_proj.weight", outputs, width, 1.5)
    random.matrix(f"{at}self_attn.o_proj.weight", d, heads * dim)
    random.vector(f"{at}post_attention_layernorm.weight", d, True)
    for name, outputs, inputs in (("gate", ffn, d), ("up", ffn, d), ("down", d, ffn)):
        random.matrix(f"{at}mlp.{name}_proj.weight", outputs, inputs)


def target(name):
    index, case = next((i, case) for i, case in enumerate(CASES) if case.name == name)
    model = build(case.arch, case.config, 7000 + index)
    expected = np.fromfile(DATA / f"{name}.logits.f32", "<f4")
    tokens = [int(token) for token in (DATA / f"{name}.tokens.txt").read_text().split()]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([tokens])).logits[0].numpy()
    assert np.abs(logits.ravel() - expected.ravel()).max() < 1e-4, "the model is not the one of data/"
    return model, case.config, random_tokens(TOKENS, case.config["vocab_size"], 77 + index)


def states_of(model, tokens):
    """The inputs of all layers and the output of the last one [layers + 1][rows, d], and the hidden states behind the final norm."""
    inputs = []
    hooks = [layer.register_forward_pre_hook(lambda _, args, kwargs: inputs.append((args[0] if args else kwargs["hidden_states"])[0]), with_kwargs=True)
             for layer in model.model.layers]
    hooks.append(model.model.norm.register_forward_pre_hook(lambda _, args: inputs.append(args[0][0])))
    with torch.no_grad():
        normed = model.model(input_ids=torch.tensor([tokens])).last_hidden_state[0]
    for hook in hooks:
        hook.remove()
    return inputs, normed


def check(guess, w):
    """Every tensor of the heads matters: without it, the guesses change by more than four tolerances. Returns the smallest change."""
    whole, weakest = guess(w), float("inf")
    for name, tensor in w.items():
        other = guess(w | {name: torch.ones_like(tensor) if "norm" in name else torch.zeros_like(tensor)})
        both = torch.isfinite(whole) & torch.isfinite(other)
        change = (whole - other)[both].abs().max().item()
        assert change > 4e-4, (name, change)
        weakest = min(weakest, change)
    return weakest


def write(out, kind, file, config, tensors, guess, w):
    """`tensors` are those of the file, `w` those that guess() reads."""
    guesses = guess(w)
    (out / kind).mkdir(parents=True, exist_ok=True)
    (out / kind / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, out / kind / file, metadata={"format": "pt"})
    (out / f"{kind}.f32").write_bytes(guesses.numpy().astype("<f4").tobytes())
    print(f"{out.name}/{kind}: std {guesses[torch.isfinite(guesses)].std():.2f} weakest {check(guess, w):.1e}", flush=True)


def medusa(out, config, normed, seed, heads, blocks, prefix, biased):
    d, vocab = config["hidden_size"], config["vocab_size"]
    random = Random(seed)
    for head in range(heads):
        for block in range(blocks):
            random.matrix(f"{prefix}{head}.{block}.linear.weight", d, d, 1.5)
            if biased:
                random.vector(f"{prefix}{head}.{block}.linear.bias", d, False)
        random.matrix(f"{prefix}{head}.{blocks}.weight", vocab, d)

    def guess(w):
        guesses = []
        for head in range(heads):
            x = normed[:-1]
            for block in range(blocks):
                x = x + silu(linear(x, w[f"{prefix}{head}.{block}.linear.weight"], w.get(f"{prefix}{head}.{block}.linear.bias")))
            guesses.append(linear(x, w[f"{prefix}{head}.{blocks}.weight"]))
        return torch.stack(guesses, 1)

    write(out, "medusa", "medusa_lm_head.safetensors",
          {"medusa_num_heads": heads, "medusa_num_layers": blocks, "base_model_name_or_path": out.name, "transformers_version": "4.34.1"},
          random.tensors, guess, random.tensors)


def head_config(config, **more):
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": config["hidden_size"],
            "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 28, "num_hidden_layers": 1, "rms_norm_eps": 0.01,
            "rope_theta": 700.0, "max_position_embeddings": 64, "vocab_size": config["vocab_size"], **more}


def eagle(out, model, config, tokens, normed, seed, biased):
    own = head_config(config, head_dim=10) if biased else head_config(config)
    d = own["hidden_size"]
    random = Random(seed)
    random.matrix("fc.weight", d, 2 * d)
    if biased:
        random.vector("fc.bias", d, False)
        for name, size in (("q", 4), ("k", 2), ("v", 2)):
            random.vector(f"layers.0.self_attn.{name}_proj.bias", size * own.get("head_dim", d // 4), False)
    layer(random, "layers.0.", own, d)
    embed, output = model.model.embed_tokens.weight.detach(), model.lm_head.weight.detach()

    def guess(w):
        def step(ids, hidden):
            x = linear(torch.cat([embed[ids], hidden], -1), w["fc.weight"], w.get("fc.bias"))
            x = feed(w, "layers.0.", own, x + attend(w, "layers.0.", own, x))
            return linear(x, output), x

        return chain(tokens, normed[:-1], step)

    copies = {} if biased else {"embed_tokens.weight": embed}  # as many files have them
    write(out, "eagle", "model.safetensors", own, random.tensors | copies, guess, random.tensors)


def eagle3(out, model, config, tokens, inputs, seed, features, normed_residual, own_tables, gguf_too):
    vocab, d = config["vocab_size"], config["hidden_size"]
    own = head_config(config, head_dim=10, draft_vocab_size=vocab * 2 // 3, norm_before_residual=normed_residual,
                      eagle_aux_hidden_state_layer_ids=features)
    random, at = Random(seed), "midlayer."
    random.matrix("fc.weight", d, 3 * d)
    random.vector(f"{at}input_layernorm.weight", d, True)
    random.vector(f"{at}hidden_norm.weight", d, True)
    layer(random, at, own, 2 * d)
    random.vector("norm.weight", d, True)
    if own_tables:
        random.matrix("embed_tokens.weight", vocab, d, d ** 0.5)
    kept = torch.from_numpy(np.sort(random.rng.permutation(vocab)[:own["draft_vocab_size"]]))
    random.matrix("lm_head.weight", len(kept), d)
    w = random.tensors

    def guess(w):
        embed = w.get("embed_tokens.weight", model.model.embed_tokens.weight.detach())

        def step(ids, hidden):
            e, h = rms(embed[ids], w[f"{at}input_layernorm.weight"], own["rms_norm_eps"]), rms(hidden, w[f"{at}hidden_norm.weight"], own["rms_norm_eps"])
            x = (h if normed_residual else hidden) + attend(w, at, own, torch.cat([e, h], -1))
            x = feed(w, at, own, x)
            logits = torch.full((len(ids), vocab), float("-inf"))
            logits[:, kept] = linear(rms(x, w["norm.weight"], own["rms_norm_eps"]), w["lm_head.weight"])
            return logits, x

        return chain(tokens, linear(torch.cat([inputs[i][:-1] for i in features], -1), w["fc.weight"]), step)

    t2d = torch.zeros(vocab, dtype=torch.bool)
    t2d[kept] = True
    write(out, "eagle3", "model.safetensors", own, w | {"d2t": kept - torch.arange(len(kept)), "t2d": t2d}, guess, w)
    if gguf_too:
        write_gguf(out / "eagle3.gguf", own, w, kept, features, normed_residual)


def write_gguf(path, config, w, kept, features, normed_residual):
    """As llama.cpp's conversion/llama.py writes an EAGLE-3 head, without a tokenizer."""
    names = {"fc.weight": "fc", "norm.weight": "output_norm", "lm_head.weight": "output", "embed_tokens.weight": "token_embd"}
    parts = {"input_layernorm": "attn_norm", "hidden_norm": "attn_norm_2", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
             "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate",
             "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
    names |= {f"midlayer.{theirs}.weight": f"blk.0.{ours}" for theirs, ours in parts.items()}
    writer = gguf.GGUFWriter(path, "eagle3")
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(1)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_array("eagle3.target_layers", features)
    writer.add_uint32("eagle3.target_hidden_size", config["hidden_size"])
    writer.add_bool("eagle3.norm_before_residual", normed_residual)
    for name, tensor in w.items():
        values = tensor.numpy()
        if "q_proj" in name or "k_proj" in name:  # the pairs of a head's elements become neighbours
            heads = config["num_attention_heads" if "q_proj" in name else "num_key_value_heads"]
            values = values.reshape(heads, 2, -1, values.shape[-1]).swapaxes(1, 2).reshape(values.shape)
        writer.add_tensor(f"{names[name]}.weight", np.ascontiguousarray(values))
    writer.add_tensor("d2t", kept.numpy().astype(np.int64), raw_dtype=gguf.GGMLQuantizationType.I64)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=DATA / "heads")
    options = parser.parse_args()
    for i, name in enumerate(("llama-gqa", "qwen3")):
        model, config, tokens = target(name)
        out = options.out / name
        out.mkdir(parents=True, exist_ok=True)
        (options.out / f"{name}.tokens.txt").write_text(" ".join(map(str, tokens)) + "\n")
        inputs, normed = states_of(model, tokens)
        first = i == 0
        last = len(model.model.layers)
        with torch.no_grad():
            medusa(out, config, normed, 50 + i, heads=3 if first else 2, blocks=1 if first else 2, prefix="" if first else "medusa_head.", biased=first)
            eagle(out, model, config, tokens, normed, 60 + i, biased=first)
            eagle3(out, model, config, tokens, inputs, 70 + i, features=[0, 1, last], normed_residual=not first,
                   own_tables=not first, gguf_too=first)


if __name__ == "__main__":
    main()
