// The pre-tokenizers that the setting tokenizer.ggml.pre may name. To add one: a line in kPreTokenizers, and its patterns if they are
// new.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tessera::detail {

struct PreTokenizerSpec {
  std::string_view name;
  // The patterns are applied one after another, each to the pieces that the one before has made. Each match is a piece, and so is the
  // text between two matches. The syntax is PCRE2's, except that \s and \S mean Unicode's White_Space (see pre_tokenizer.cpp).
  std::span<const std::string_view> patterns;
  bool ignore_merges;  // true: if a whole word is a token, it is encoded as that token, even if the merges would not make it
  bool add_bos;        // default for files that do not say (tokenizer.ggml.add_bos_token)
  bool nfc = false;    // true: text is brought into Unicode's normal form C before it is split
};

// The characters of the script Han, as members of a set in PCRE2's syntax, without the brackets.
extern const std::string_view kHanMembers;

// Returns the pre-tokenizer with this name; nullptr if it is not known.
[[nodiscard]] const PreTokenizerSpec* find_pre_tokenizer(std::string_view name) noexcept;
[[nodiscard]] std::string known_pre_tokenizers();  // "default, gpt-2, ..."

}  // namespace tessera::detail
