#include "text/pipeline/word_bpe.hpp"

#include "core/utf8.hpp"

namespace tessera::detail {

MarkCuts::MarkCuts(const Vocabulary& vocabulary, const WordBpeRules& rules) noexcept {
  // Cuts are possible only if the mark is a token of the vocabulary. If it were unknown, it could be fused with unknown characters before
  // it into one unknown token, and a cut before the mark would prevent that.
  any_ = rules.prefix.empty() && rules.suffix.empty() && vocabulary.find_ordinary(kSpaceMark) != kNoToken;
  for (std::uint32_t id = 0; any_ && id < vocabulary.size(); ++id) {
    const std::string_view text = vocabulary.text(id);
    for (std::size_t at = text.find(kSpaceMark, 1); at != text.npos; at = text.find(kSpaceMark, at + 1)) {
      joined_[static_cast<unsigned char>(text[at - 1])] = true;
    }
  }
}

std::size_t MarkCuts::next(std::string_view word, std::size_t from) const noexcept {
  if (!any_) return word.size();
  for (std::size_t at = word.find(kSpaceMark, from + 1); at != word.npos; at = word.find(kSpaceMark, at + 1)) {
    if (!joined_[static_cast<unsigned char>(word[at - 1])]) return at;
  }
  return word.size();
}

void WordBpe::encode(std::string_view word, TokenList& out) {
  if (rules_.ignore_merges) {
    if (const std::uint32_t id = vocabulary_.find_ordinary(word); id != kNoToken) return out.add(id);
  }
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t end = cuts_.next(word, at);
    encode_part(word.substr(at, end - at), at == 0, end == word.size(), out);
    at = end;
  }
}

std::uint32_t WordBpe::token_of(std::string_view character, bool first, bool last) {
  const bool prefixed = !first && !rules_.prefix.empty(), suffixed = last && !rules_.suffix.empty();
  if (!prefixed && !suffixed) return vocabulary_.find_mergeable(character);
  scratch_.assign(prefixed ? std::string_view(rules_.prefix) : std::string_view());
  scratch_.append(character);
  if (suffixed) scratch_.append(rules_.suffix);
  return vocabulary_.find_mergeable(scratch_);
}

bool WordBpe::add_bytes(std::string_view character) {
  if (!rules_.byte_fallback) return false;
  const auto token = [&](char c) { return vocabulary_.byte_token(static_cast<unsigned char>(c)); };
  for (const char c : character) {
    if (token(c) == kNoToken) return false;
  }
  for (const char c : character) ids_.push_back(token(c));
  return true;
}

void WordBpe::encode_part(std::string_view part, bool first, bool last, TokenList& out) {
  ids_.clear();
  ids_.reserve(part.size());
  bool after_unknown = false;
  for (std::size_t at = 0; at < part.size();) {
    const Utf8Step step = utf8_step(part.substr(at));
    const std::string_view character = part.substr(at, step.size);
    const bool ends = at + step.size == part.size();
    const std::uint32_t id = step.kind == Utf8Kind::valid ? token_of(character, first && at == 0, last && ends) : kNoToken;
    at += step.size;
    if (id != kNoToken) {
      ids_.push_back(id);
      after_unknown = false;
    } else if (!add_bytes(character)) {
      if (!(after_unknown && rules_.fuse_unknown) && vocabulary_.stand_in() != kNoToken) ids_.push_back(vocabulary_.stand_in());
      after_unknown = true;
    }
  }
  const auto size = static_cast<std::uint32_t>(ids_.size());
  if (size == 0) return;
  symbols_.starts.fill(size);
  symbols_.merge(
      size, [&](std::uint32_t left, std::uint32_t right, std::uint32_t) { return merges_.rank(ids_[left], ids_[right]); },
      [&](std::uint32_t left, std::uint32_t rank) { ids_[left] = merges_.result(rank); });
  if (size >= kLargeWord) symbols_.order.release();  // frees memory before the tokens need some
  out.reserve(symbols_.starts.count());
  for (std::uint32_t i = 0; i < size; i = symbols_.starts.next(i + 1)) out.add(ids_[i]);
}

}  // namespace tessera::detail
