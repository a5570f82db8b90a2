#!/usr/bin/env python3
"""Writes data/mtp/: tiny models with an MTP head as GGUF, and what transformers' MtpModel guesses with it in float32.

Needs: pip install torch transformers gguf numpy (transformers from 5.24)

  data/mtp/NAME.gguf         the model and its head, F32
  data/mtp/NAME.tokens.txt   the token ids, one line
  data/mtp/NAME.guesses.f32  logits, [tokens - 1 + CHAIN, vocab], float32 little endian. Row i: the head's guess of what follows token
                             i + 1, from the model's hidden state after token i. The last CHAIN rows: of what follows the likeliest
                             token of the row before, from the head's own hidden state.
  data/mtp/NAME-folder       the same model and head as a folder of a hub, for qwen35
The models of CASES are random, as those of make_goldens.py. `trained` has learnt a language of which each token is one of two that
belong to the two tokens before it, and its head with it.
"""
import argparse
import pathlib

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers.cache_utils import MtpCache
from transformers.modeling_layers import MtpModel

from architectures import ARCHITECTURES, named_weights
from cases import CASES, gated, rope
from gguf_out import write_gguf
from make_goldens import VISIBLE, neutral
from tiny_models import build, random_tokens, random_values

DATA = pathlib.Path(__file__).resolve().parent / "data" / "mtp"
NAMES = ("glm4moe", "qwen35", "qwen3next", "deepseek-v3")
CHAIN = 3


def make_head(model, seed=None):
    """An MTP head for the model, random if there is a seed."""
    config = model.config
    config.num_mtp_layers = 1
    if getattr(config, "layer_types", None):
        config.mtp_layer_types = ["full_attention"]
    if getattr(config, "mlp_layer_types", None):
        config.mtp_mlp_layer_types = [config.mlp_layer_types[-1]]
    torch.manual_seed(0)
    head = MtpModel(model, 1).to(torch.float32).eval()
    head.config._attn_implementation = "eager"
    head.config._experts_implementation = "eager"
    head.tie_with_main_model(model)
    if seed is None:
        return head
    rng = np.random.Generator(np.random.PCG64(seed))
    with torch.no_grad():
        for name, parameter in sorted(named_weights(head)):
            if name.startswith("layers."):
                values = random_values(rng, config, name, tuple(parameter.shape), False)
                parameter.copy_(torch.from_numpy(values.astype(np.float32)))
    return head


def run_head(model, head, tokens):
    """[tokens - 1 + CHAIN, vocab]; everything is computed again for each row of the chain."""
    ids = torch.tensor([tokens])
    with torch.no_grad():
        states = model(input_ids=ids, output_hidden_states=True).hidden_states[-1][:, :-1]
        ids = ids[:, 1:]
        for _ in range(CHAIN + 1):
            positions = torch.arange(1, 1 + ids.shape[1])[None]
            out = head.forward_layer(0, states, positions, MtpCache(config=head.config), input_ids=ids)
            logits = head._project_to_logits(out)
            states = torch.cat([states, out[:, -1:]], dim=1)
            ids = torch.cat([ids, logits[:, -1:].argmax(-1)], dim=1)
    return logits[0].numpy()


def check(name, model, head, tokens, guesses):
    """Every parameter of the head matters."""
    rows = slice(4, len(tokens) - 1)
    weakest = np.inf
    for key, parameter in named_weights(head):
        if not key.startswith("layers."):
            continue
        original = parameter.detach().clone()
        with torch.no_grad():
            parameter.copy_(neutral(model.config, key, parameter))
            change = np.abs(run_head(model, head, tokens) - guesses)[rows].max()
            parameter.copy_(original)
        assert change > VISIBLE, (name, key, change)
        weakest = min(weakest, change)
    return f"std {guesses.std():.2f} weakest {weakest:.1e}"


# Names of a draft head's tensors in folders of Qwen3-Next and Qwen3.5, beside those of its decoder layer.
FOLDER_NAMES = {"enorm": "pre_fc_norm_embedding", "hnorm": "pre_fc_norm_hidden", "eh_proj": "fc", "post_norm": "norm"}


def write_folder(path, model, head):
    """The model and its head as a hub's folder has them, F32."""
    model.save_pretrained(path)
    tensors = load_file(path / "model.safetensors")
    for name, parameter in named_weights(head):
        if name.startswith("layers.0."):
            own = name.removeprefix("layers.0.")
            part = own.split(".")[0]
            own = f"{FOLDER_NAMES[part]}.weight" if part in FOLDER_NAMES else f"layers.0.{own.removeprefix('mtp_block.')}"
            tensors[f"mtp.{own}"] = parameter.detach().contiguous()
    save_file(tensors, path / "model.safetensors", metadata={"format": "pt"})


def write(out, name, architecture, model, head, tokens):
    guesses = run_head(model, head, tokens)
    if name == "qwen35":
        write_folder(out / f"{name}-folder", model, head)
    write_gguf(out / f"{name}.gguf", architecture, model, name, head=head)
    (out / f"{name}.tokens.txt").write_text(" ".join(map(str, tokens)) + "\n")
    (out / f"{name}.guesses.f32").write_bytes(guesses.astype("<f4").tobytes())
    return guesses


def make_random(name, out):
    index, case = next((i, case) for i, case in enumerate(CASES) if case.name == name)
    config = dict(case.config)
    if "layer_types" in config:  # MtpModel takes its norms from the last layer, which in real models is attention
        config |= {"num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"]}
    model = build(case.arch, config, 9000 + index)
    head = make_head(model, 9500 + index)
    tokens = random_tokens(24, case.config["vocab_size"], index)
    guesses = write(out, name, ARCHITECTURES[case.arch], model, head, tokens)
    print(f"{name}: {check(name, model, head, tokens, guesses)}", flush=True)


# ---- a language with something to guess -------------------------------------------------

SYMBOLS, SHARE = 24, 0.8


def language():
    """[a, b] -> the likelier and the other token behind a, b."""
    return np.random.Generator(np.random.PCG64(1)).integers(0, SYMBOLS, size=(SYMBOLS, SYMBOLS, 2))


def sentences(rng, count, length):
    follows = language()
    text = rng.integers(0, SYMBOLS, size=(count, length))
    for i in range(2, length):
        choice = (rng.random(count) > SHARE).astype(int)
        text[:, i] = follows[text[:, i - 2], text[:, i - 1], choice]
    return text


def make_trained(out, steps):
    config = gated(SYMBOLS + 16, 32, 4, 2, 64, layers=2, head_dim=12, use_qk_norm=False, first_k_dense_replace=1, n_routed_experts=4,
                   num_experts_per_tok=2, n_shared_experts=1, moe_intermediate_size=32, n_group=1, topk_group=1,
                   routed_scaling_factor=1.0, norm_topk_prob=True, context=256) | rope(1e4, partial_rotary_factor=0.5)
    model = build("glm4moe", config, 1)
    head = make_head(model, 2)
    for part in (model, head):
        for name, parameter in part.named_parameters():  # where training begins
            with torch.no_grad():
                parameter.copy_(torch.ones_like(parameter) if parameter.dim() == 1 and name.endswith("norm.weight")
                                else torch.randn_like(parameter) * parameter.shape[-1] ** -0.5 if parameter.dim() > 1 else parameter * 0)
    own = [parameter for name, parameter in head.named_parameters() if name.startswith("layers.")]
    parameters = [*model.parameters(), *own]
    optimizer = torch.optim.Adam(parameters, lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    rng = np.random.Generator(np.random.PCG64(3))
    loss_of = torch.nn.CrossEntropyLoss()
    for step in range(steps):
        text = torch.from_numpy(sentences(rng, 48, 24))
        result = model(input_ids=text, output_hidden_states=True)
        guessed = head._project_to_logits(head.forward_layer(
            0, result.hidden_states[-1][:, :-1], torch.arange(1, text.shape[1])[None], MtpCache(config=head.config), input_ids=text[:, 1:]))
        loss = loss_of(result.logits[:, 1:-1].flatten(0, 1), text[:, 2:].flatten())
        further = loss_of(guessed[:, :-1].flatten(0, 1), text[:, 2:].flatten())
        optimizer.zero_grad()
        (loss + further).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        if step % 200 == 0 or step + 1 == steps:
            print(f"trained: step {step}: loss {loss:.3f}, of guesses {further:.3f}", flush=True)
    model.eval(), head.eval()
    write(out, "trained", ARCHITECTURES["glm4moe"], model, head, sentences(rng, 1, 24)[0].tolist())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=DATA)
    parser.add_argument("--only", help="this one alone")
    parser.add_argument("--steps", type=int, default=1600, help="of training")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        if options.only in (None, name):
            make_random(name, options.out)
    if options.only in (None, "trained"):
        make_trained(options.out, options.steps)


if __name__ == "__main__":
    main()
