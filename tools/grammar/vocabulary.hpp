// The vocabulary for masks: a model's, or that of several models together, which is larger.
#pragma once

#include <filesystem>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/grammar/compiled.hpp>
#include <tessera/text/tokenizer.hpp>

namespace tessera::grammar_tool {

struct Vocabulary {
  Tokenizer tokenizer;  // the first model's, whose tokens keep their ids
  GrammarVocabulary tokens;
};

[[nodiscard]] Result<Vocabulary> load_vocabulary(const std::vector<std::filesystem::path>& models);

}  // namespace tessera::grammar_tool
