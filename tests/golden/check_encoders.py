#!/usr/bin/env python3
"""Compares vectors of random encoders, and scores of random rankers, with transformers.

Needs: pip install torch transformers tokenizers numpy

    check_encoders.py --embed PATH [--count N] [--seed S] [--type NAME ...]

Draws N configurations of each type (make_encoder_goldens.py has their classes). Exits with 1 if a value differs by more than 1e-4.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers

from make_encoder_goldens import PAIRS, base_of, build, tokenizer_of

TOLERANCE = 1e-4


def pick(rng, *options):
    return options[int(rng.integers(len(options)))]


def shape(rng, **more):
    """What all types draw: widths, layers, and a context of at least the longest text."""
    heads = int(rng.integers(1, 7))
    return dict(vocab_size=int(rng.integers(96, 200)), hidden_size=heads * 2 * int(rng.integers(3, 17)), num_hidden_layers=int(rng.integers(1, 5)),
                num_attention_heads=heads, intermediate_size=int(rng.integers(5, 120)), max_position_embeddings=512, **more)


def bert(rng, **more):
    return shape(rng, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, layer_norm_eps=pick(rng, 1e-12, 1e-5, 1e-2), **more)


def roberta(rng, **more):
    return bert(rng, type_vocab_size=1, pad_token_id=1, bos_token_id=0, eos_token_id=2, **more)


def rope(rng):
    # With a base of 100, transformers' float32 angles alone differ from the true ones so much that vectors differ by 1.4e-4.
    return {"rope_parameters": {"rope_type": "default", "rope_theta": pick(rng, 1000.0, 20000.0, 160000.0)}}


def modern(rng):
    config = shape(rng, local_attention=2 * int(rng.integers(1, 100)), norm_eps=pick(rng, 1e-5, 1e-2), pad_token_id=0, bos_token_id=1,
                   cls_token_id=1, eos_token_id=2, sep_token_id=2)
    period = int(rng.integers(1, 4))
    return config | {"layer_types": ["full_attention" if i % period == 0 else "sliding_attention" for i in range(config["num_hidden_layers"])]}


def grouped(rng, **more):
    config = shape(rng, rms_norm_eps=pick(rng, 1e-6, 1e-2), pad_token_id=0, bos_token_id=1, eos_token_id=2, **more)
    heads = config["num_attention_heads"]
    return config | {"num_key_value_heads": pick(rng, *[n for n in range(1, heads + 1) if heads % n == 0])}


def gemma(rng):
    config = grouped(rng, head_dim=2 * int(rng.integers(2, 20)), sliding_window=2 * int(rng.integers(1, 200)), use_bidirectional_attention=True)
    return config | {"layer_types": [pick(rng, "full_attention", "sliding_attention") for _ in range(config["num_hidden_layers"])]}


TYPES = {
    "bert": (transformers.BertModel, transformers.BertConfig, lambda rng: bert(rng, type_vocab_size=int(rng.integers(1, 4)))),
    "roberta": (transformers.RobertaModel, transformers.RobertaConfig, lambda rng: roberta(rng) | {"max_position_embeddings": 514}),
    "xlm-roberta": (transformers.XLMRobertaModel, transformers.XLMRobertaConfig, lambda rng: roberta(rng) | {"max_position_embeddings": 514}),
    "nomic": (transformers.NomicBertModel, transformers.NomicBertConfig, lambda rng: shape(rng, layer_norm_eps=pick(rng, 1e-12, 1e-2)) | rope(rng)),
    "jina3": (transformers.JinaEmbeddingsV3Model, transformers.JinaEmbeddingsV3Config, lambda rng: roberta(rng) | rope(rng)),
    "gte": (transformers.GteModel, transformers.GteConfig, lambda rng: bert(rng, type_vocab_size=pick(rng, 0, 1, 2)) | rope(rng)),
    "modernbert": (transformers.ModernBertModel, transformers.ModernBertConfig, modern),
    "eurobert": (transformers.EuroBertModel, transformers.EuroBertConfig,
                 lambda rng: grouped(rng, attention_bias=bool(rng.integers(2)), mlp_bias=bool(rng.integers(2)), mask_token_id=3) | rope(rng)),
    "embedding-gemma": (transformers.Gemma3TextModel, transformers.Gemma3TextConfig, gemma),
    "bert-rank": (transformers.BertForSequenceClassification, transformers.BertConfig, lambda rng: bert(rng, num_labels=pick(rng, 1, 2))),
    "xlm-roberta-rank": (transformers.XLMRobertaForSequenceClassification, transformers.XLMRobertaConfig, lambda rng: roberta(rng, num_labels=1)),
}


def run(command, lines):
    done = subprocess.run([str(part) for part in command], input="".join(line + "\n" for line in lines), capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-400:])
    return done.stdout.splitlines()


def vectors_of(embed, folder, model, rng):
    """(ours, transformers')"""
    most = model.config.max_position_embeddings - 2
    lengths = [1, 2, int(rng.integers(3, 40)), int(rng.integers(40, most)), most]
    texts = [rng.integers(5, model.config.vocab_size, length) for length in lengths]
    with torch.no_grad():
        expected = [base_of(model)(torch.tensor(text)[None]).last_hidden_state[0].mean(0).numpy() for text in texts]
    lines = run([embed, folder, "--ids", "--raw", "--pooling", "mean"], [" ".join(map(str, text)) for text in texts])
    return np.array([json.loads(line)["embedding"] for line in lines]), np.stack(expected)


def scores_of(embed, folder, model):
    tokenizer = tokenizer_of(model.config)
    tokenizer.save(str(folder / "tokenizer.json"))
    ours, expected = [], []
    for query, document in PAIRS:
        encoded = tokenizer.encode(query, document)
        inputs = {"input_ids": torch.tensor([encoded.ids])}
        if model.config.type_vocab_size > 1:
            inputs["token_type_ids"] = torch.tensor([encoded.type_ids])
        with torch.no_grad():
            expected.append(float(model(**inputs).logits[0, -1]))
        ours.append(float(run([embed, folder, "--rerank", query, document], [])[0].split()[0]))
    return np.array(ours), np.array(expected)


def check(embed, name, index, seed, folder):
    rng = np.random.Generator(np.random.PCG64([seed, index, sorted(TYPES).index(name)]))
    model_class, config_class, draw = TYPES[name]
    config = draw(rng)
    try:
        model = build(model_class, config_class(**config), int(rng.integers(1 << 30)))
        model.save_pretrained(folder)
        model.double()  # float32 is itself up to 1e-4 from this
        ours, expected = scores_of(embed, folder, model) if name.endswith("-rank") else vectors_of(embed, folder, model, rng)
        difference = np.abs(ours - expected).max() / max(1.0, np.abs(expected).max())
    except RuntimeError as error:
        print(f"{name} {index}: FAILED, {error}\n  {config}", flush=True)
        return np.inf
    if difference > TOLERANCE:
        print(f"{name} {index}: FAILED, differs by {difference:.1e}\n  {config}", flush=True)
    return difference


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--embed", required=True, help="path of tessera-embed")
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--type", choices=TYPES, nargs="+", default=list(TYPES))
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.type:
            differences = [check(options.embed, name, i, options.seed, pathlib.Path(temporary) / f"{name}-{i}") for i in range(options.count)]
            bad = sum(not difference <= TOLERANCE for difference in differences)
            print(f"{name}: {options.count - bad} of {options.count} within {TOLERANCE:g}, the largest difference {max(differences):.1e}", flush=True)
            failed += bad
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
