// The option --caches of tools that compare KV caches: a list of caches. Each cache is written TYPE, TYPE:N or TYPE:P%. TYPE is a KV type,
// as in --kv-dtype. With N or P%, not all tokens keep their keys and values: the cache has a token budget of N tokens, or of P percent of a
// sequence's tokens. After N or P%, ":window", ":h2o" or ":snapkv" may say how the tokens to keep are chosen (TokenChoice).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include <tessera/extend/kv/kv_layout.hpp>
#include <tessera/kv/token_budget.hpp>

namespace tessera::tool {

// A type of keys and values, and the number of tokens whose keys and values are kept.
struct CacheChoice {
  std::string name;  // the text of the option
  DType dtype = DType::f16;
  std::uint32_t tokens = 0;  // 0: `share` of a sequence's tokens
  double share = 1.0;
  TokenChoice choice = TokenChoice::window;

  // Returns the budget for a sequence of `length` tokens; kNoTokenBudget if all tokens are kept.
  [[nodiscard]] TokenBudget budget(std::size_t length) const;
};

inline constexpr const char* kCachesType = "TYPE[:N|P%[:window|h2o|snapkv]],...";

// Parses one cache. Throws CLI::ValidationError, which says what is wrong.
[[nodiscard]] CacheChoice parse_cache(std::string_view text);
CLI::Option* add_caches(CLI::App& app, std::vector<CacheChoice>& caches, const std::string& description);

}  // namespace tessera::tool
