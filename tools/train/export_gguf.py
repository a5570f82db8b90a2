#!/usr/bin/env python3
"""Writes a checkpoint as a GGUF v3 file of the `llama` architecture.

    export_gguf.py --checkpoint build/train/default.pt --out models/tessera-stories.gguf \\
        --greedy models/tessera-stories.greedy.json

Matrices are Q8_0 (or F32 with --type f32), norms F32. The head is tied, so there is no
output.weight. --greedy also writes the text that PyTorch computes in float32 from the
numbers of the file (quantised and read back), as a reference for an engine.
"""
from __future__ import annotations

import argparse
import json
import os

import gguf
import numpy as np
import torch

from model import Config, Llama

END_OF_TEXT_ID = 0


def add_tokenizer(out: gguf.GGUFWriter, path: str, vocab_size: int) -> None:
    with open(path, encoding="utf-8") as f:
        model = json.load(f)["model"]
    by_id = {i: t for t, i in model["vocab"].items()}
    tokens = [by_id[i] for i in range(vocab_size)]
    # Newer files of the tokenizers library keep a merge as a pair, older ones as one string.
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    kinds = [gguf.TokenType.NORMAL] * vocab_size
    kinds[END_OF_TEXT_ID] = gguf.TokenType.CONTROL
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    out.add_token_list(tokens)
    out.add_token_types(kinds)
    out.add_token_merges(merges)
    out.add_bos_token_id(END_OF_TEXT_ID)
    out.add_eos_token_id(END_OF_TEXT_ID)
    out.add_add_bos_token(True)


def write(path: str, name: str, cfg: Config, weights: dict, tokenizer: str, kind: str) -> None:
    out = gguf.GGUFWriter(path + ".part", "llama")
    out.add_name(name)
    out.add_license("MIT")
    out.add_description("Small children's stories; trained from nothing on generated text by tools/train of tessera.")
    out.add_languages(["en"])
    out.add_context_length(cfg.context)
    out.add_embedding_length(cfg.dim)
    out.add_block_count(cfg.n_layers)
    out.add_feed_forward_length(cfg.ffn_dim)
    out.add_head_count(cfg.n_heads)
    out.add_head_count_kv(cfg.n_kv_heads)
    out.add_key_length(cfg.head_dim)
    out.add_value_length(cfg.head_dim)
    out.add_layer_norm_rms_eps(cfg.norm_eps)
    out.add_rope_dimension_count(cfg.head_dim)
    out.add_rope_freq_base(cfg.rope_theta)
    out.add_vocab_size(cfg.vocab_size)
    out.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0 if kind == "q8_0" else gguf.LlamaFileType.ALL_F32)
    out.add_quantization_version(gguf.GGML_QUANT_VERSION)
    add_tokenizer(out, tokenizer, cfg.vocab_size)
    # The model's parameters already have the names of the file.
    for key, w in weights.items():
        data = w.detach().float().cpu().numpy()
        if data.ndim == 2 and kind == "q8_0":
            q8 = gguf.GGMLQuantizationType.Q8_0
            out.add_tensor(key, gguf.quants.quantize(data, q8), raw_dtype=q8)
        else:
            out.add_tensor(key, data)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    os.replace(path + ".part", path)


def read_back(path: str, cfg: Config) -> Llama:
    """Returns a float32 model with the numbers of the file."""
    model = Llama(cfg).eval()
    state = {t.name: torch.from_numpy(np.array(gguf.quants.dequantize(t.data, t.tensor_type), dtype=np.float32))
             for t in gguf.GGUFReader(path).tensors}
    model.load_state_dict(state)
    return model


@torch.no_grad()
def greedy(model: Llama, n: int) -> dict:
    # Uses no KV cache: each step computes the whole sequence, which is the simplest arithmetic.
    ids, first = [END_OF_TEXT_ID], None
    margin = float("inf")
    for _ in range(n):
        logits = model(torch.tensor([ids]))[0, -1]
        if first is None:
            first = logits.tolist()
        top = logits.topk(2).values
        margin = min(margin, (top[0] - top[1]).item())
        ids.append(int(logits.argmax()))
    return {"prompt_ids": ids[:1], "greedy_ids": ids[1:],
            # If two tokens are as close as this margin, another order of summing may choose the other token.
            "smallest_margin": round(margin, 6), "first_logits": [float(f"{x:.8g}") for x in first]}


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--checkpoint", default="build/train/default.pt")
    ap.add_argument("--tokenizer", default="build/train/tokenizer.json")
    ap.add_argument("--out", default="models/tessera-stories.gguf")
    ap.add_argument("--name", default="tessera-stories")
    ap.add_argument("--type", choices=["q8_0", "f32"], default="q8_0")
    ap.add_argument("--greedy", help="also write the greedy continuation to this JSON file")
    ap.add_argument("--max-bytes", type=int, default=6_000_000, help="for q8_0: fail above this size")
    args = ap.parse_args()

    saved = torch.load(args.checkpoint, map_location="cpu", weights_only=True)
    cfg = Config(**saved["config"])
    write(args.out, args.name, cfg, saved["model"], args.tokenizer, args.type)
    size = os.path.getsize(args.out)
    n = sum(w.numel() for w in saved["model"].values())
    print(f"{args.out}: {n:,} parameters, {size:,} bytes, step {saved['step']}, validation loss {saved['val_loss']:.4f}")
    if args.type == "q8_0" and size > args.max_bytes:
        raise SystemExit(f"more than {args.max_bytes:,} bytes")
    model = read_back(args.out, cfg)
    if args.greedy:
        answer = greedy(model, 199)
        with open(args.greedy, "w", encoding="utf-8") as f:
            json.dump(answer, f)
            f.write("\n")
        print(f"{args.greedy}: smallest margin between first and second choice {answer['smallest_margin']:.4f}")


if __name__ == "__main__":
    main()
