// Vocabularies and helpers of the grammar tests.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/extend/grammar/matcher.hpp>
#include <tessera/grammar/compiled.hpp>
#include <tessera/grammar/grammar.hpp>

#include "catch.hpp"

namespace grammar_rig {

using namespace tessera;

// All 256 bytes, then the texts; the last token ends the generation.
inline GrammarVocabulary vocabulary(const std::vector<std::string>& texts = {}) {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  tokens.insert(tokens.end(), texts.begin(), texts.end());
  tokens.emplace_back();
  const Token end = static_cast<Token>(tokens.size() - 1);
  auto made = GrammarVocabulary::create(tokens, {&end, 1});
  REQUIRE(made.has_value());
  return *std::move(made);
}

inline Token end_of(const GrammarVocabulary& v) { return static_cast<Token>(v.size() - 1); }

// Texts as tokens have them: pieces of words, several characters at once, parts of characters.
inline std::vector<std::string> random_texts(std::mt19937& random, std::size_t count) {
  const std::vector<std::string> parts{"a", "b", "ab", "z", "0", "12", " ", "\"", "\\", "{", "}", "[", "]", ",", ":", "\n",
                                       "true", "null", "-", ".", "e", "\xC3", "\xA9", "\xC3\xA9", "\xF0\x9F", "\x98\x80",
                                       "name", "u00", "_", "A", "\\u", "\x7F", "\xFF", "long-word-of-letters"};
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) {
    std::string text;
    for (auto n = 1 + random() % 4; n > 0; --n) text += parts[random() % parts.size()];
    texts.push_back(std::move(text));
  }
  return texts;
}

// How many random texts a comparison with another library tries at least: TESSERA_TEST_STRINGS, or what CI has time for.
inline std::uint64_t text_count(std::uint64_t usual) {
  const char* const given = std::getenv("TESSERA_TEST_STRINGS");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : usual;
}

inline bool has(std::span<const std::uint64_t> mask, Token token) {
  return (mask[static_cast<std::size_t>(token) / 64] >> (static_cast<std::size_t>(token) % 64) & 1) != 0;
}

inline std::vector<Token> tokens_of(std::span<const std::uint64_t> mask) {
  std::vector<Token> out;
  for (std::size_t t = 0; t < mask.size() * 64; ++t) {
    if (has(mask, static_cast<Token>(t))) out.push_back(static_cast<Token>(t));
  }
  return out;
}

inline CompiledGrammar compiled(const Result<Grammar>& grammar, const GrammarVocabulary& v) {
  if (!grammar) FAIL(grammar.error().text());
  auto made = CompiledGrammar::create(*grammar, v);
  if (!made) FAIL(made.error().text());
  return *std::move(made);
}

inline bool accepts(const CompiledGrammar& grammar, std::string_view text) {
  const auto checked = grammar.check(text);
  if (!checked) FAIL(checked.error().text());
  return checked->accepted;
}

}  // namespace grammar_rig
