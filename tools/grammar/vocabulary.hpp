// The vocabulary for masks: the vocabulary of one model, or a larger one made of the vocabularies of several models.
#pragma once

#include <filesystem>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/grammar/compiled.hpp>
#include <tessera/text/tokenizer.hpp>

namespace tessera::grammar_tool {

struct Vocabulary {
  Tokenizer tokenizer;  // tokenizer of the first model, whose tokens keep their ids
  GrammarVocabulary tokens;
};

[[nodiscard]] Result<Vocabulary> load_vocabulary(const std::vector<std::filesystem::path>& models);

}  // namespace tessera::grammar_tool
