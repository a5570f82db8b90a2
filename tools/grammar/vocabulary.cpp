#include "vocabulary.hpp"

#include <string>
#include <unordered_set>
#include <utility>

#include "model_place.hpp"
#include "system/program.hpp"

namespace tessera::grammar_tool {

namespace {

Result<Tokenizer> tokenizer_of(const std::filesystem::path& path) {
  const auto model = tool::open_named_model(tool::text_of(path));
  if (!model) return model.error();
  return Tokenizer::from_settings((*model)->settings());
}

}  // namespace

Result<Vocabulary> load_vocabulary(const std::vector<std::filesystem::path>& models) {
  auto first = tokenizer_of(models.front());
  if (!first) return std::move(first).error();
  auto own = GrammarVocabulary::create(*first);
  if (!own) return std::move(own).error();
  if (models.size() == 1) return Vocabulary{*std::move(first), *std::move(own)};

  std::vector<std::string> tokens;
  std::vector<Token> ends;
  std::unordered_set<std::string> known;
  for (std::size_t i = 0; i < own->size(); ++i) {
    const auto token = static_cast<Token>(i);
    tokens.emplace_back(own->bytes(token));
    known.insert(tokens.back());
    if (first->is_end_of_generation(token)) ends.push_back(token);
  }
  for (std::size_t m = 1; m < models.size(); ++m) {
    const auto more = tokenizer_of(models[m]);
    if (!more) return more.error();
    const auto vocabulary = GrammarVocabulary::create(*more);
    if (!vocabulary) return vocabulary.error();
    for (std::size_t i = 0; i < vocabulary->size(); ++i) {
      std::string bytes(vocabulary->bytes(static_cast<Token>(i)));
      if (!bytes.empty() && known.insert(bytes).second) tokens.push_back(std::move(bytes));
    }
  }
  auto together = GrammarVocabulary::create(tokens, ends);
  if (!together) return std::move(together).error();
  return Vocabulary{*std::move(first), *std::move(together)};
}

}  // namespace tessera::grammar_tool
