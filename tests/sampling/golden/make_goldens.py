#!/usr/bin/env python3
"""What Hugging Face's logits processors keep of made-up logits, for test_sampling_golden.cpp.

Needs torch and transformers. Writes huggingface.txt: one case a line: name, option, then the kept tokens, or (repetition)
the logits as hexadecimal floats. The logits: token i has ((i * 7919 + 13) % 1009) / 64 - 8 for i < 300, exact in f32.
"""
import pathlib

import torch
from transformers.generation import logits_process as hf

logits = torch.tensor([[((i * 7919 + 13) % 1009) / 64 - 8 for i in range(300)]], dtype=torch.float32)
history = torch.tensor([[(i * i) % 300 for i in range(40)]])
lines = []


def kept(name, option, processor):
    out = processor(history, logits.clone())[0]
    lines.append(f"{name} {option} " + " ".join(str(i) for i in range(300) if out[i] > -float("inf")))


for k in (1, 10, 100):
    kept("top_k", k, hf.TopKLogitsWarper(k))
for p in (0.1, 0.5, 0.9, 0.99):
    kept("top_p", p, hf.TopPLogitsWarper(p))
    kept("typical_p", p, hf.TypicalLogitsWarper(p))
for p in (0.01, 0.1, 0.5):
    kept("min_p", p, hf.MinPLogitsWarper(p))
for penalty in (0.8, 1.3):
    out = hf.RepetitionPenaltyLogitsProcessor(penalty)(history, logits.clone())[0]
    lines.append(f"repetition {penalty} " + " ".join(float(x).hex() for x in out))
pathlib.Path(__file__).with_name("huggingface.txt").write_text("\n".join(lines) + "\n")
