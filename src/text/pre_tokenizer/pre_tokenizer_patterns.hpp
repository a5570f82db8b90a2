// The pre-tokenizers that tokenizer.ggml.pre may name. To add one: a line in kPreTokenizers, and its patterns if they
// are new.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tessera::detail {

struct PreTokenizerSpec {
  std::string_view name;
  // Applied one after another, each to the pieces that the one before left: what matches is a piece, and what lies
  // between matches is one too. PCRE2 syntax, except that \s and \S mean Unicode's White_Space (see pre_tokenizer.cpp).
  std::span<const std::string_view> patterns;
  bool ignore_merges;  // a word that is a token as a whole is not built by merges
  bool add_bos;        // where tokenizer.ggml.add_bos_token is absent
  bool nfc = false;    // text between special tokens is brought into Unicode's normal form C before it is split
};

// nullptr if the name is not known.
[[nodiscard]] const PreTokenizerSpec* find_pre_tokenizer(std::string_view name) noexcept;
[[nodiscard]] std::string known_pre_tokenizers();  // "default, gpt-2, ..."

}  // namespace tessera::detail
