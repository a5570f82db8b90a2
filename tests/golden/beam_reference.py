"""Beam search by transformers on the models of this folder: what the library's must be equal to."""
import numpy as np
import torch
import transformers

EARLY = {"likely": False, "first": True, "never": "never"}


def search(model, prompt, beams, results, max_tokens, length_penalty, early, ends):
    """The best sequences that follow the prompt, as (score, tokens), the best first."""
    config = transformers.GenerationConfig(
        num_beams=beams, num_return_sequences=results, max_new_tokens=max_tokens, do_sample=False,
        length_penalty=length_penalty, early_stopping=EARLY[early], eos_token_id=list(ends) or None, pad_token_id=0,
        bos_token_id=0, use_cache=False, output_scores=True, return_dict_in_generate=True)
    model.generation_config.eos_token_id = None  # a configuration's own would take the place of none
    with torch.no_grad():
        out = model.generate(torch.tensor([prompt]), generation_config=config,
                             attention_mask=torch.ones(1, len(prompt), dtype=torch.int64))
    sequences = []
    for tokens, score, indices in zip(out.sequences, out.sequences_scores, out.beam_indices):
        length = int((indices >= 0).sum())
        sequences.append((float(score), [int(t) for t in tokens[len(prompt):len(prompt) + length]]))
    return sequences


def settings(seed, vocab, context=64):
    """Of one search, without its ends: they must be tokens that occur, and so depend on the model."""
    rng = np.random.Generator(np.random.PCG64([seed, 2]))
    beams = int(rng.integers(1, 7)) + 1
    prompt = [int(t) for t in rng.integers(0, vocab, size=int(rng.integers(1, 24)))]
    return {"prompt": prompt, "beams": beams, "results": int(rng.integers(1, beams + 1)),
            "max_tokens": int(rng.integers(4, min(18, context - len(prompt)))),
            "length_penalty": float(rng.choice([-1.0, 0.0, 0.5, 1.0, 2.0])),
            "early": str(rng.choice(list(EARLY)))}


def ends_for(model, how, seed):
    """One to three tokens that end a sequence: some of those that a search without ends finds."""
    rng = np.random.Generator(np.random.PCG64([seed, 3]))
    free = search(model, **{**how, "results": how["beams"], "ends": [model.config.vocab_size - 1]})
    found = [token for _, tokens in free for token in tokens[1:]]
    return sorted({int(t) for t in rng.choice(found, size=int(rng.integers(1, 4)))})


def agree(model, how, sequences):
    """Whether float64 finds the same: else two candidates are too close for a test."""
    exact = search(model.double(), **how)
    model.float()
    return same(exact, sequences, 2e-5)


def same(found, sequences, tolerance):
    """Equal tokens, and scores within the tolerance of the larger of 1 and their size."""
    return ([tokens for _, tokens in found] == [tokens for _, tokens in sequences]
            and all(abs(a - b) <= tolerance * max(1, abs(b)) for (a, _), (b, _) in zip(found, sequences)))
