// Helpers of the tests of ranks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/models.hpp"

namespace tessera::test {

inline EngineOptions divided(std::uint32_t ranks, RankSplit split = RankSplit::heads) {
  EngineOptions options;
  options.ranks = ranks;
  options.rank_split = split;
  options.threads = ranks;
  return options;
}

// Loads the model on several ranks. Returns nothing if it has fewer columns than ranks.
inline std::optional<Engine> load_divided(const std::string& name, const EngineOptions& options) {
  auto engine = Engine::load(golden_dir() / (name + ".gguf"), options);
  if (engine) return *std::move(engine);
  INFO(name << " on " << options.ranks << " ranks: " << engine.error().text());
  CHECK(engine.error().code() == ErrorCode::unsupported);
  CHECK(engine.error().text().find("ranks") != std::string::npos);
  return std::nullopt;
}

inline std::vector<Token> golden_tokens(const std::string& name) { return read_tokens(golden_dir() / (name + ".tokens.txt")); }

}  // namespace tessera::test
