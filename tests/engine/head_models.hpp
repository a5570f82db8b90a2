// The draft heads of tests/golden/data/heads, which are in files of their own, and the models of tests/golden/data that they belong to.
#pragma once

#include <string>
#include <vector>

#include "engine/models.hpp"

namespace tessera::test {

// A model, the path of its heads, and the file with what they guess.
struct HeadCase {
  std::string model, kind, guesses;

  [[nodiscard]] std::filesystem::path folder() const { return golden_dir() / "heads" / model; }
  [[nodiscard]] std::filesystem::path file() const { return folder() / kind; }
  [[nodiscard]] std::string name() const { return model + "/" + kind; }
  [[nodiscard]] bool is_medusa() const { return kind == "medusa"; }
};

inline const std::vector<HeadCase>& head_cases() {
  static const std::vector<HeadCase> cases{
      {"llama-gqa", "medusa", "medusa"}, {"llama-gqa", "eagle", "eagle"}, {"llama-gqa", "eagle3", "eagle3"}, {"llama-gqa", "eagle3.gguf", "eagle3"},
      {"qwen3", "medusa", "medusa"},     {"qwen3", "eagle", "eagle"},     {"qwen3", "eagle3", "eagle3"},
  };
  return cases;
}

inline EngineOptions with_heads(const HeadCase& heads, EngineOptions options = {}) {
  options.draft_heads = heads.file();
  if (options.threads == 0) options.threads = 2;
  return options;
}
inline Engine load_heads(const HeadCase& heads, EngineOptions options = {}) {
  return must(Engine::load(golden_dir() / (heads.model + ".gguf"), with_heads(heads, std::move(options))));
}

}  // namespace tessera::test
