#!/usr/bin/env python3
"""Makes tokenizer.json files and what PyPI's `tokenizers` encodes and decodes with them, for test_tokenizer_json.cpp.

  make_tokenizer_json_goldens.py random COUNT SEED OUT     small random tokenizers with all constructs
  make_tokenizer_json_goldens.py files TEXTS OUT FILE...   TEXTS texts for each of these tokenizer.json files

OUT has a line of JSON for each tokenizer: {"name", "json" (a text) or "path", "cases": [[text, ids, ids without special tokens, decoded]]}.
The committed tokenizer_json.jsonl is: random 36 1. Needs: pip install tokenizers (made with 0.23.3)."""
import json
import random
import sys
import unicodedata as ucd

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

WORDS = """the quick brown fox jumps over the lazy dog Tokenizers cut text into words and the words into pieces don't we'll they're
Hello world naïve café résumé Straße ÅNGSTRÖM 12345 3.14 2024-01-01 foo_bar CamelCase HTTPServer if (x == 1) { return y; } ...
中文 字符 日本語 テキスト 한국어 문장 Привет мир Ελληνικά עברית العربية हिन्दी ไทย emoji 😀 👩‍👩‍👧‍👦 🇩🇪 ½ ² Ⅷ ﬁ ǅ İstanbul""".split()
PIECES = [" ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", "\u00a0", "\u3000", "\u200b", "\u200d", "\ufeff", "\u2581", "▁▁", "a\u0301", "e\u0323\u0307",
          "\u0301", "\ufffd", "\u0000", "\u0007", "\u007f", "\u0085", "\u2028", "\u00ad", "\u0130", "ſ", "K", "ß", "ẞ", "ﷺ", "각", "각", "𝒜", "①",
          "<s>", "</s>", "<unk>", "[CLS]", "[MASK]", "<|im|>", "<|im|", "im", "<tool>", " <tool> ", "x<tool>y", "<0x41>", "##a", "</w>", "Ġa",
          "'s", "'S", "'ll", "don't", "'", "a'b", "...", "!!!", "?!", "()", "[]", "{}", "$1", "€", "+=", "_", "__x__", "0", "00", "1234567", "٣٤",
          "١٢٣", "a" * 50, "ab" * 20, "é" * 9, "\u0915\u094d\u0937", "👩‍👩‍👧‍👦", "🇩🇪🇫🇷", "\U0001f600" * 3, "😀", "\U000e0041", "日本", "中", "한", "ﾊﾟ"]


def assigned(draw):
    while True:
        character = chr(draw())
        if ucd.category(character) != "Cn":
            return character


def text_of(rng, longest=12):
    out = []
    for _ in range(rng.randrange(longest)):
        kind = rng.random()
        if kind < 0.5:
            out.append(rng.choice(WORDS))
        elif kind < 0.92:
            out.append(rng.choice(PIECES))
        else:
            # Characters of Unicode 14 and before: libraries have tables of different versions.
            out.append(assigned(lambda: rng.choice([rng.randrange(0x20, 0x7F), rng.randrange(0xA0, 0x2000), rng.randrange(0x2000, 0xD800),
                                       rng.randrange(0xE000, 0xFFFD), rng.randrange(0x10000, 0x1FFFF)])))
        if rng.random() < 0.6:
            out.append(" ")
    return "".join(out)


def cases_of(tokenizer, texts):
    tokenizer.no_truncation()
    tokenizer.no_padding()
    special = {i for i, t in tokenizer.get_added_tokens_decoder().items() if t.special}
    model = json.loads(tokenizer.to_str())["model"]
    unknown = model.get("unk_id") if model["type"] == "Unigram" else tokenizer.token_to_id(model.get("unk_token") or "")
    normal = tokenizer.normalizer.normalize_str if tokenizer.normalizer is not None else (lambda text: text)
    changed = {i for i, t in tokenizer.get_added_tokens_decoder().items() if t.normalized and normal(t.content) != t.content}
    names = {i: t for i, t in tokenizer.get_added_tokens_decoder().items() if t.special and i != unknown}
    frame = tokenizer.encode("").ids
    cases = []
    for text in texts:
        try:
            tokenizer.encode_special_tokens = False
            ids = tokenizer.encode(text).ids
            tokenizer.encode_special_tokens = True
            plain = tokenizer.encode(text, add_special_tokens=False).ids
        except Exception:  # a Unigram model without an unknown token refuses what it does not know; tessera leaves that out
            continue
        if any(ids.count(i) > frame.count(i) + (normal(text) if token.normalized else text).count(token.content) for i, token in names.items() if i in ids):
            continue  # the model made a special token of a text that does not have its name
        decoded = tokenizer.decode(ids)
        if any(i in special and i != unknown for i in plain):
            plain = None  # the model itself made a special token of the text; tessera never does
        if unknown in ids or any(i in ids for i in changed):
            decoded = None  # tessera decodes an unknown token to nothing, special or not, and an added token as it is written
        cases.append([text, ids, plain, decoded])
    return cases


def random_normalizer(rng):
    kinds = [lambda: normalizers.NFC(), lambda: normalizers.NFD(), lambda: normalizers.NFKC(), lambda: normalizers.NFKD(),
             lambda: normalizers.Lowercase(), lambda: normalizers.StripAccents(), lambda: normalizers.Replace(" ", "▁"),
             lambda: normalizers.Replace(Regex(rng.choice([r"\s+", r" {2,}", r"[0-9]+", r"(?i)the", r"\p{Han}"])), rng.choice([" ", "", "X"])),
             lambda: normalizers.Prepend("▁"), lambda: normalizers.Strip(rng.random() < 0.5, rng.random() < 0.5),
             lambda: normalizers.BertNormalizer(rng.random() < 0.8, rng.random() < 0.8, rng.choice([None, True, False]), rng.random() < 0.5),
             lambda: normalizers.Nmt()]
    if rng.random() < 0.25:
        return None
    return normalizers.Sequence([rng.choice(kinds)() for _ in range(rng.randrange(1, 4))])


BEHAVIORS = ["removed", "isolated", "contiguous", "merged_with_previous", "merged_with_next"]
PATTERNS = [r"\s+", r"\w+", r"[^\w\s]+", r"\p{N}{1,3}", r"(?i:'s|'t|'re)|\p{L}+", r"[a-z&&[^aeiou]]+", r"[^(\s|[.,!?])]+", r"[\p{L}\p{M}]+", r"\d",
            r" ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", r"\p{Han}+", r"[一-龥ࠀ-一가-퟿]+", r"\p{N}{1,2}+", r"[^\r\n\p{L}\p{N}]?\p{L}+",
            r"\s*[\r\n]+|\s+(?!\S)|\s+", r"\S", r"[[:punct:]]", r"\p{Punct}", r"\b", r"\B.", r"[[:word:]]+",
            r"[^\W\d]+", r"[[:graph:]]+", r"\p{Katakana}+|\p{Hiragana}", r"a(?i)b|c", r"[[:alpha:]&&[^a-z]]", r"\p{Lower}\p{Latin}"]


def random_pre_tokenizer(rng, byte_level, metaspace):
    def split():
        pattern = Regex(rng.choice(PATTERNS)) if rng.random() < 0.75 else rng.choice([" ", "a", "the", "."])
        return pre_tokenizers.Split(pattern, rng.choice(BEHAVIORS), rng.random() < 0.25)
    kinds = [split, split, lambda: pre_tokenizers.Digits(rng.random() < 0.5), lambda: pre_tokenizers.Whitespace(),
             lambda: pre_tokenizers.WhitespaceSplit(), lambda: pre_tokenizers.BertPreTokenizer(), lambda: pre_tokenizers.Punctuation(rng.choice(BEHAVIORS)),
             lambda: pre_tokenizers.CharDelimiterSplit(rng.choice(["-", " ", "e"])), lambda: pre_tokenizers.FixedLength(rng.randrange(1, 9))]
    steps = [rng.choice(kinds)() for _ in range(rng.randrange(0, 3))]
    if metaspace:
        steps.append(pre_tokenizers.Metaspace(rng.choice(["▁", "▁", "_"]), rng.choice(["always", "first", "never"]), rng.random() < 0.7))
    if byte_level:
        steps.append(pre_tokenizers.ByteLevel(rng.random() < 0.4, use_regex=rng.random() < 0.6))
    if not steps:
        return None
    return steps[0] if len(steps) == 1 else pre_tokenizers.Sequence(steps)


def random_tokenizer(rng):
    kind = rng.choice(["bytes", "bytes", "bytes", "chars", "chars", "unigram", "unigram", "word_piece", "word_piece", "word_level"])
    specials = ["<unk>", "<s>", "</s>", "[CLS]", "[MASK]"]
    size = rng.randrange(150, 330)
    corpus = [" ".join(rng.choice(WORDS) for _ in range(20)) for _ in range(60)]
    metaspace = kind in ("unigram", "chars") and rng.random() < 0.6
    if kind == "bytes":
        tokenizer = Tokenizer(models.BPE())
        trainer = trainers.BpeTrainer(vocab_size=size + 256, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=specials, show_progress=False)
        tokenizer.decoder = decoders.ByteLevel()
    elif kind == "chars":
        suffix = "</w>" if rng.random() < 0.25 and not metaspace else None
        prefix = "##" if suffix is None and rng.random() < 0.15 else None
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=rng.random() < 0.5, end_of_word_suffix=suffix, continuing_subword_prefix=prefix))
        extra = [f"<0x{b:02X}>" for b in range(256)] if rng.random() < 0.5 else []
        trainer = trainers.BpeTrainer(vocab_size=size + len(extra), special_tokens=specials, end_of_word_suffix=suffix, continuing_subword_prefix=prefix, show_progress=False)
        tokenizer.decoder = decoders.BPEDecoder(suffix) if suffix else decoders.WordPiece(prefix) if prefix else decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    elif kind == "unigram":
        tokenizer = Tokenizer(models.Unigram())
        trainer = trainers.UnigramTrainer(vocab_size=size, special_tokens=specials, unk_token="<unk>", show_progress=False)
        tokenizer.decoder = decoders.Metaspace("▁", rng.choice(["always", "first", "never"]))
    elif kind == "word_piece":
        tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>", max_input_chars_per_word=rng.choice([100, 8])))
        trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=specials, show_progress=False)
        tokenizer.decoder = decoders.WordPiece("##", rng.random() < 0.7)
    else:
        tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
        trainer = trainers.WordLevelTrainer(vocab_size=80, special_tokens=specials, show_progress=False)
    normalizer = random_normalizer(rng)
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    pre = random_pre_tokenizer(rng, kind == "bytes", metaspace)
    if pre is not None:
        tokenizer.pre_tokenizer = pre
    tokenizer.train_from_iterator(corpus, trainer)
    added = ["<|im|>", "<tool>", "im", "don't", " the", "中", "É", "ab", "  "]
    rng.shuffle(added)
    for text in added[: rng.randrange(0, 6)]:
        token = AddedToken(text, lstrip=rng.random() < 0.3, rstrip=rng.random() < 0.3, single_word=rng.random() < 0.3, normalized=rng.random() < 0.5)
        changes = token.normalized and normalizer is not None and normalizer.normalize_str(text) != text
        # tessera never makes a special token of a text in which it is not found as an added token
        learned = token.single_word and not text.startswith("<")  # the model may have the token where it is not found as an added one
        tokenizer.add_special_tokens([token]) if rng.random() < 0.3 and not changes and not learned else tokenizer.add_tokens([token])
    frame = rng.randrange(5)
    s, e = tokenizer.token_to_id("<s>"), tokenizer.token_to_id("</s>")
    if frame == 0:
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", s), ("</s>", e)])
    elif frame == 1:
        tokenizer.post_processor = processors.RobertaProcessing(("</s>", e), ("<s>", s))
    elif frame == 2:
        tokenizer.post_processor = processors.BertProcessing(("</s>", e), ("<s>", s))
    elif frame == 3:
        tokenizer.post_processor = processors.Sequence([processors.ByteLevel(), processors.TemplateProcessing(single="<s> $0", pair="<s> $A $B", special_tokens=[("<s>", s)])])
    saved = json.loads(tokenizer.to_str())
    if kind == "chars" and extra:
        saved["model"]["byte_fallback"] = True
        highest = max([*saved["model"]["vocab"].values(), *(t["id"] for t in saved["added_tokens"])])
        for i, text in enumerate(extra):
            saved["model"]["vocab"].setdefault(text, highest + 1 + i)
    if saved["model"]["type"] == "BPE":
        saved["model"]["ignore_merges"] = rng.random() < 0.3
        if rng.random() < 0.3 and not any(" " in part for merge in saved["model"]["merges"] for part in merge):
            saved["model"]["merges"] = [" ".join(merge) for merge in saved["model"]["merges"]]
    return kind, json.dumps(saved, ensure_ascii=rng.random() < 0.2, separators=(",", ":"))


def main():
    if sys.argv[1] == "random":
        count, seed = int(sys.argv[2]), int(sys.argv[3])
        with open(sys.argv[4], "w") as out:
            made = 0
            number = 0
            while made < count:
                number += 1
                rng = random.Random(seed * 1_000_003 + number)
                try:
                    kind, text = random_tokenizer(rng)
                    tokenizer = Tokenizer.from_str(text)
                    cases = cases_of(tokenizer, [text_of(rng) for _ in range(24)])
                except BaseException as error:  # trainers panic on some corpora
                    if isinstance(error, KeyboardInterrupt):
                        raise
                    continue
                made += 1
                print(json.dumps({"name": f"{kind} {seed}/{number}", "json": text, "cases": cases}, ensure_ascii=False, separators=(",", ":")), file=out)
    else:
        with open(sys.argv[3], "w") as out:
            for path in sys.argv[4:]:
                rng = random.Random(path)
                tokenizer = Tokenizer.from_file(path)
                cases = cases_of(tokenizer, [text_of(rng, 40) for _ in range(int(sys.argv[2]))])
                print(json.dumps({"name": path, "path": path, "cases": cases}, ensure_ascii=False, separators=(",", ":")), file=out)


main()
