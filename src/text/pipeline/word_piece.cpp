#include "text/pipeline/word_piece.hpp"

#include <algorithm>

namespace tessera::detail {

WordPiece::Longest WordPiece::longest(std::string_view rest, bool first) const noexcept {
  const std::string_view prefix = first ? std::string_view() : std::string_view(rules_.prefix);
  Longest found{kNoToken, 0};
  PieceOrder::Range range{};
  const auto take = [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    range = range.depth == 0 ? texts_.starting_with(byte) : texts_.narrowed(range, byte, vocabulary_);
    return !range.empty();
  };
  for (const char c : prefix) {
    if (!take(c)) return found;
  }
  for (std::size_t i = 0; i < rest.size() && take(rest[i]); ++i) {
    if (const std::uint32_t id = texts_.whole(range, vocabulary_); id != kNoToken) found = {id, i + 1};
  }
  return found;
}

void WordPiece::encode(std::string_view word, TokenList& out) {
  const auto characters = static_cast<std::uint64_t>(
      std::count_if(word.begin(), word.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }));
  ids_.clear();
  bool known = characters <= rules_.longest_word;
  for (std::size_t at = 0; known && at < word.size();) {
    const Longest next = longest(word.substr(at), at == 0);
    known = next.id != kNoToken;
    if (known) ids_.push_back(next.id);
    at += next.size;
  }
  if (known) {
    for (const std::uint32_t id : ids_) out.add(id);
  } else if (vocabulary_.stand_in() != kNoToken) {
    out.add(vocabulary_.stand_in());
  }
}

}  // namespace tessera::detail
