// Compiled grammars (CompiledGrammar), and the vocabulary for which a grammar is compiled (GrammarVocabulary). A compiled grammar is
// immutable, and all requests that use it share it. It has a cache (with a lock) of what matching has computed, so that later requests with
// the same grammar are faster.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/extend/core/hash.hpp>
#include <tessera/grammar/grammar.hpp>
#include <tessera/text/tokenizer.hpp>

namespace tessera {

namespace grammar {
struct TokenTrie;
struct Compiled;
}  // namespace grammar

// The bytes of a vocabulary's tokens, arranged so that a grammar's mask (the set of the tokens that may come next) is computed fast. To make
// a GrammarVocabulary of 128k tokens takes about 100 ms, so make only one for each tokenizer; copies share the bytes.
//
//   auto vocabulary = GrammarVocabulary::create(engine.tokenizer());
class GrammarVocabulary {
 public:
  GrammarVocabulary() noexcept = default;  // an empty handle (docs/headers.md)
  // Makes a vocabulary of a Tokenizer's tokens. Errors: invalid_state, an empty tokenizer.
  [[nodiscard]] static Result<GrammarVocabulary> create(const Tokenizer& tokenizer) noexcept;
  // Makes a vocabulary of the caller's own tokens. tokens: the bytes that each token adds to a text; empty for a token that is never part
  // of a text (a control token). ends: the tokens that end a text. tokenizer: the fingerprint of the Tokenizer that has these tokens, if
  // there is one; engines with another tokenizer then refuse samplers that use a grammar of this vocabulary. Zero: no engine refuses.
  [[nodiscard]] static Result<GrammarVocabulary> create(std::span<const std::string> tokens, std::span<const Token> ends,
                                                        const Hash128& tokenizer = {}) noexcept;
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] std::size_t memory_bytes() const noexcept;
  [[nodiscard]] std::string_view bytes(Token token) const noexcept;
  [[nodiscard]] Hash128 tokenizer() const noexcept;  // the tokenizer's fingerprint; zero: not known

  struct State;
  [[nodiscard]] const State* state() const noexcept { return state_.get(); }  // for the library itself; nullptr: empty

 private:
  explicit GrammarVocabulary(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

// Limits of the memory and work of matching. An operation that would exceed a limit returns over_budget and changes nothing.
struct GrammarLimits {
  std::size_t memory_bytes = std::size_t{48} << 20;  // bytes of the cached states of matching
  std::uint64_t step_work = 500'000;               // most steps of matching for one mask or one accepted token; a step takes at most about 100 ns
};

// The result of CompiledGrammar::check(): says whether the grammar allows a text and, if not, at which byte the text goes wrong.
struct TextCheck {
  bool accepted = false;
  std::size_t at = 0;      // index of the first byte that is not allowed; the text's size if the text is too short or accepted
  std::string expected;    // says in words which bytes are allowed at `at`; empty if accepted
};

// A grammar that is compiled for a vocabulary: it can match texts, and say which tokens of the vocabulary may come next. An immutable
// handle; copies share the grammar. Threads: several threads may call every function at once.
//
//   auto vocabulary = GrammarVocabulary::create(engine.tokenizer());
//   auto grammar = Grammar::json_schema(R"({"type": "integer"})");
//   auto compiled = CompiledGrammar::create(*grammar, *vocabulary);
//   if (auto check = compiled->check("12a"); check && !check->accepted) std::fputs(check->expected.c_str(), stderr);
class CompiledGrammar {
 public:
  CompiledGrammar() noexcept = default;  // an empty handle (docs/headers.md)
  // Compiles a grammar for a vocabulary. Errors: invalid_argument, a grammar that allows no text; over_budget.
  [[nodiscard]] static Result<CompiledGrammar> create(const Grammar& grammar, const GrammarVocabulary& vocabulary,
                                                      const GrammarLimits& limits = {}) noexcept;
  [[nodiscard]] Result<TextCheck> check(std::string_view text) const noexcept;
  [[nodiscard]] const GrammarVocabulary& vocabulary() const noexcept;
  [[nodiscard]] std::size_t memory_bytes() const noexcept;

 private:
  friend class Matcher;
  explicit CompiledGrammar(std::shared_ptr<const grammar::Compiled> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<const grammar::Compiled> state_;
};

}  // namespace tessera
