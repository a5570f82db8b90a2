// Compiled grammars by their content: the second request with the same schema has it at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <tessera/core/result.hpp>
#include <tessera/grammar/compiled.hpp>
#include <tessera/grammar/grammar.hpp>

namespace tessera {

// A grammar as a request states it.
struct GrammarSource {
  enum class Kind : std::int32_t { json_schema = 0, regex = 1, ebnf = 2 };
  Kind kind;
  std::string_view text;
  JsonSchemaOptions options = {};  // of a schema

  // Likewise, of all of it.
  [[nodiscard]] std::string key() const;
};

// Holds at most so many, and so many bytes of them; the one that was not asked for the longest goes first. Requests that
// use it keep it. May be called from several threads; two that ask for the same new grammar may both compile it.
class GrammarCache {
 public:
  struct Options {
    std::size_t entries = 256;
    std::size_t memory_bytes = std::size_t{1} << 30;
    GrammarLimits limits = {};
  };
  [[nodiscard]] static Result<GrammarCache> create(const GrammarVocabulary& vocabulary, const Options& options) noexcept;
  GrammarCache() noexcept;  // an empty handle (docs/headers.md)
  GrammarCache(GrammarCache&&) noexcept;
  GrammarCache& operator=(GrammarCache&&) noexcept;
  ~GrammarCache();

  // Errors are not remembered.
  [[nodiscard]] Result<CompiledGrammar> get(const GrammarSource& source) noexcept;
  [[nodiscard]] std::size_t size() const noexcept;

 private:
  struct State;
  explicit GrammarCache(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
