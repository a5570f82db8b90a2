// The pre-tokenizers that tokenizer.ggml.pre may name. To add one: a line in kPreTokenizers, and its patterns if they are new.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tessera::detail {

struct PreTokenizerSpec {
  std::string_view name;
  // Patterns, applied one after another, each to the pieces that the one before left. A match is a piece, and so is the text between two
  // matches. PCRE2 syntax, except that \s and \S mean Unicode's White_Space (see pre_tokenizer.cpp).
  std::span<const std::string_view> patterns;
  bool ignore_merges;  // true: a word that is a token as a whole is not built by merges
  bool add_bos;        // add_bos if tokenizer.ggml.add_bos_token is absent
  bool nfc = false;    // true: text between special tokens is brought into Unicode's normal form C before it is split
};

// Returns a pre-tokenizer; nullptr if the name is not known.
[[nodiscard]] const PreTokenizerSpec* find_pre_tokenizer(std::string_view name) noexcept;
[[nodiscard]] std::string known_pre_tokenizers();  // "default, gpt-2, ..."

}  // namespace tessera::detail
