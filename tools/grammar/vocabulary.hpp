// The tokens that masks are made of: a model's, or those of several models together, which makes a larger vocabulary.
#pragma once

#include <filesystem>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/grammar/compiled.hpp>
#include <tessera/text/tokenizer.hpp>

namespace tessera::grammar_tool {

struct Vocabulary {
  Tokenizer tokenizer;  // of the first model: its tokens keep their ids
  GrammarVocabulary tokens;
};

[[nodiscard]] Result<Vocabulary> load_vocabulary(const std::vector<std::filesystem::path>& models);

}  // namespace tessera::grammar_tool
