#!/usr/bin/env python3
"""Compares tessera-grammar with llguidance: the same schemas, instances and tokens, one thread each, by turns.

    python3 bench/compare/grammar.py FOLDER --vocab MODEL.gguf [MODEL.gguf ...] [--tool build/release/bin/tessera-grammar]

FOLDER has MaskBench files. Needs llguidance, gguf and tokenizers. The first model must have a byte-level BPE vocabulary, which cuts the
instances into tokens; the tokens of further models are added. All times are CPU times of the thread, as in tessera-grammar.
"""
import argparse
import collections
import ctypes
import json
import pathlib
import statistics
import subprocess
import sys
import time

import gguf
import tokenizers
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

CONTROL, BYTE = 3, 6


def letters():
    """Returns the byte for each letter with which GPT-2's vocabulary spells bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in plain]
    return {**{chr(byte): byte for byte in plain}, **{chr(256 + i): byte for i, byte in enumerate(rest)}}


class Tokens:
    """The tokenizer, in the form that llguidance requires."""

    def __init__(self, models):
        self.tokens, self.special_token_ids, self.bos_token_id = [], [], None
        known = set()
        for i, path in enumerate(models):
            fields = gguf.GGUFReader(path).fields
            texts = fields['tokenizer.ggml.tokens'].contents()
            types = fields['tokenizer.ggml.token_type'].contents()
            bpe = fields['tokenizer.ggml.model'].contents() == 'gpt2'
            if i == 0:
                if not bpe:
                    sys.exit('the first model must have a byte-level BPE vocabulary')
                self.eos_token_id = int(fields['tokenizer.ggml.eos_token_id'].contents())
                self.bpe = self.make_bpe(texts, fields['tokenizer.ggml.merges'].contents())
            to_byte = letters()
            for text, kind in zip(texts, types):
                if kind == CONTROL:
                    bytes_ = text.encode()
                elif kind == BYTE:
                    bytes_ = bytes([int(text[3:5], 16)])
                elif bpe and all(letter in to_byte for letter in text):
                    bytes_ = bytes(to_byte[letter] for letter in text)
                else:
                    bytes_ = text.replace('\u2581', ' ').encode()
                if i > 0 and (kind == CONTROL or not bytes_ or bytes_ in known):
                    continue
                if kind == CONTROL:
                    self.special_token_ids.append(len(self.tokens))
                known.add(bytes_)
                self.tokens.append(bytes_)

    @staticmethod
    def make_bpe(texts, merges):
        vocabulary = {text: i for i, text in enumerate(texts)}
        made = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, [tuple(merge.split(' ')) for merge in merges]))
        made.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
            [tokenizers.pre_tokenizers.Digits(individual_digits=True), tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)])
        return made

    def __call__(self, text):
        return self.bpe.encode(text.decode() if isinstance(text, bytes) else text, add_special_tokens=False).ids


def peers_run(folder, tokens):
    tokenizer = LLTokenizer(TokenizerWrapper(tokens))
    words = (tokenizer.vocab_size + 31) // 32
    buffer = (ctypes.c_uint32 * words)()
    address, size = ctypes.addressof(buffer), 4 * words
    found, mask_us, compile_ms = collections.Counter(), [], []
    for path in sorted(folder.glob('*.json')):
        file = json.loads(path.read_text())
        found['files'] += 1
        schema = json.dumps(file['schema'], ensure_ascii=False)
        start = time.thread_time_ns()
        matcher = LLMatcher(tokenizer, LLMatcher.grammar_from_json_schema(schema), log_level=0)
        if not matcher.is_error():
            matcher.unsafe_compute_mask_ptr(address, size)
        took = time.thread_time_ns() - start
        if matcher.is_error():
            found['refused'] += 1
            continue
        compile_ms.append(took / 1e6)
        clean = True
        for test in file['tests']:
            matcher.reset()
            accepted = True
            for token in tokens(json.dumps(test['data'], ensure_ascii=False, separators=(',', ':'))):
                start = time.thread_time_ns()
                matcher.unsafe_compute_mask_ptr(address, size)
                mask_us.append((time.thread_time_ns() - start) / 1e3)
                if matcher.is_error() or not buffer[token // 32] >> (token % 32) & 1 or not matcher.consume_token(token):
                    accepted = False
                    break
            accepted = accepted and matcher.is_accepting()
            if accepted != test['valid']:
                clean = False
                found['wrong_accepts' if accepted else 'wrong_rejects'] += 1
            if matcher.is_error():
                break
        found['clean'] += clean
    return {**found, 'mask_us': summary(mask_us), 'compile_ms': summary(compile_ms)}


def summary(values):
    values = sorted(values)
    return {'mean': statistics.fmean(values), 'max': values[-1],
            **{name: values[min(len(values) - 1, int(share * len(values)))] for name, share in (('p50', 0.5), ('p99', 0.99), ('p99_9', 0.999))}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', type=pathlib.Path)
    parser.add_argument('--vocab', nargs='+', required=True)
    parser.add_argument('--tool', default=str(pathlib.Path(__file__).resolve().parents[2] / 'build/release/bin/tessera-grammar'))
    parser.add_argument('--turns', type=int, default=3)
    options = parser.parse_args()
    tokens = Tokens(options.vocab)
    runs = {'tessera': [], 'llguidance': []}
    for _ in range(options.turns):
        command = [options.tool, '--bench', str(options.folder), '--json', *[word for path in options.vocab for word in ('--vocab', path)]]
        runs['tessera'].append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        runs['llguidance'].append(peers_run(options.folder, tokens))
    print(f'{len(tokens.tokens)} tokens, medians of {options.turns}')
    print(f'{"":22}{"tessera":>12}{"llguidance":>12}{"ratio":>9}')
    for name in ('files', 'clean', 'wrong_accepts', 'wrong_rejects', 'refused'):
        print(f'{name:22}' + ''.join(f'{runs[who][0].get(name, 0):12}' for who in runs))
    for kind in ('mask_us', 'compile_ms'):
        for name in ('mean', 'p50', 'p99', 'p99_9', 'max'):
            ours, theirs = (statistics.median(run[kind][name] for run in runs[who]) for who in runs)
            print(f'{kind + " " + name:22}{ours:12.2f}{theirs:12.2f}{ours / theirs:9.2f}')


if __name__ == '__main__':
    main()
