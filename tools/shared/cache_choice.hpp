// --caches, as the tools that compare KV caches have it: a list of TYPE (as of --kv-dtype), TYPE:N or TYPE:P%, each with :CHOICE behind it.
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

// A type of keys and values, and how many tokens keep theirs.
struct CacheChoice {
  std::string name;  // as it was written
  DType dtype = DType::f16;
  std::uint32_t tokens = 0;  // 0: a share of a sequence's
  double share = 1.0;
  TokenChoice choice = TokenChoice::window;

  // For a sequence of so many tokens; kNoTokenBudget where all are kept.
  [[nodiscard]] TokenBudget budget(std::size_t length) const;
};

inline constexpr const char* kCachesType = "TYPE[:N|P%[:window|h2o|snapkv]],...";

// Throws CLI::ValidationError, which names what is wrong.
[[nodiscard]] CacheChoice parse_cache(std::string_view text);
CLI::Option* add_caches(CLI::App& app, std::vector<CacheChoice>& caches, const std::string& description);

}  // namespace tessera::tool
