#!/usr/bin/env python3
"""Writes pre_tokenizers.txt: how Hugging Face's tokenizers splits random Unicode texts, for test_pre_tokenizer.cpp.

Needs the package `tokenizers` (made with 0.23). The pre-tokenizers are those of the models' own tokenizer.json files,
of Kimi its tokenization_kimi.py, not our patterns. A line "text HEX" is followed by a line "NAME LENGTHS" for each pre-tokenizer, lengths in bytes.
"""
import pathlib
import random
import unicodedata

from tokenizers import pre_tokenizers as P, Regex
S=lambda r,b='isolated',inv=False: P.Split(Regex(r),b,inv)
G=lambda: P.ByteLevel(add_prefix_space=False,use_regex=True)
B=lambda: P.ByteLevel(add_prefix_space=False,use_regex=False)
llama3=r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
qwen2=r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
tekken=r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
gpt4o=r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
qwen35=qwen2.replace(r"?\p{L}+",r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]+",r"[^\s\p{L}\p{M}\p{N}]+")
seed=r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"
cjk="[一-龥\u0800-一가-\ud7ff]+"
cased="\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝ\u1f5f-\u1f7dᾀ-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌ\u1fd0-\u1fd3\u1fd6-\u1fdbῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"
upper,lower,suffix=r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]",r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]",r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
kimi=r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?"+upper+"*"+lower+"+"+suffix+r"|[^\r\n\p{L}\p{N}]?"+upper+"+"+lower+"*"+suffix+r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
refs={
 'gpt-2':G(),
 'starcoder':P.Sequence([P.Digits(individual_digits=True),G()]),
 'llama-bpe':P.Sequence([S(llama3),B()]),'qwen2':P.Sequence([S(qwen2),B()]),
 'qwen35':P.Sequence([S(qwen35),B()]),'seed-coder':P.Sequence([S(seed),B()]),
 'tekken':P.Sequence([S(tekken),B()]),'gpt-4o':P.Sequence([S(gpt4o),B()]),
 'falcon':P.Sequence([P.Punctuation('contiguous'),G(),S("[0-9][0-9][0-9]")]),
 'deepseek-coder':P.Sequence([S("[\r\n]"),S("\\s?\\p{L}+"),S("\\s?\\p{P}+"),S(cjk),P.Digits(individual_digits=True),B()]),
 'deepseek-llm':P.Sequence([S("[\r\n]"),S(cased),S("\\s?[!-/:-~！-／：-～‘-‟　-。]+"),S("\\s+$"),S(cjk),P.Digits(individual_digits=False),B()]),
 'deepseek-v3':P.Sequence([S(r"\p{N}{1,3}"),S("[一-龥\u3040-ゟ゠-ヿ]+"),S("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"),B()]),
 'kimi-k2':P.Sequence([S(kimi),B()]),
 'bloom':P.Sequence([S(" ?[^(\\s|[.,!?…。，、।۔،])]+"),B()]),
}
random.seed(20)
pools=[list(" \t\n\r  '"),list("abcXYZstremvld'"),list("0123456789²½Ⅷ٣"),list(".,!?;:-_$+<=>^~|`(){}[]/\\#@&%*\""),
 list("éßñçАбвгдЖΩλ"),list("中文字日本語かなカナ한국어กខค្ាमिन्"),list("\u00a0\u0085\u2003\u3000\u2028\u180e\u200b\ufeff\u1680"),list("🚀😶‍🌫️✅🦙€£¥×÷©"),list("e\u0301\u0300ſKıİẞǅ")]


def random_text():
    text = ""
    mode = random.random()
    for _ in range(random.randint(1, 24)):
        if mode < 0.15:
            c = random.randint(1, 0x3000 if mode < 0.1 else 0x1FFFF)
            if not 0xD800 <= c < 0xE000:
                text += chr(c)
        else:
            text += random.choice(random.choice(pools)) * random.choice([1, 1, 1, 2, 3, 4])
    return text


# What a Unicode version does not assign yet, libraries of other versions may classify otherwise.
texts = [t for t in (random_text() for _ in range(110)) if t and all(unicodedata.category(c) != "Cn" for c in t)]
# Letters beside Han: its ideographs, marks of iteration, numbers and radicals.
texts += ["getUserName\u4e2d\u6587Text's", "  \u4e2d\u6587  ab \u4eba\u3005\u3007x", "A\u4e2dB \u6587c", "\u30ab\u30bf\u30ab\u30ca\u6f22\u5b57\u304b\u306a",
          "!\u2e80\u2f00a \u3021\u3001\u3002\u4e00", "\u0301\u4e2d\u0301\u6587e\u0301", "12\u4e2d3456\u3007\n\n\u4e2d", "\U00020000\U0002f800x\ufa0e'll\uf900"]
with open(pathlib.Path(__file__).parent / "pre_tokenizers.txt", "w") as file:
    for text in texts:
        file.write(f"text {text.encode().hex()}\n")
        for name, pre in refs.items():
            # ByteLevel spells one character a byte
            file.write(" ".join([name] + [str(len(piece)) for piece, _ in pre.pre_tokenize_str(text)]) + "\n")
