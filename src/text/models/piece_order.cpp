#include "text/models/piece_order.hpp"

#include <algorithm>

namespace tessera::detail {
namespace {

// Returns whether the piece can occur in a text. A vocabulary writes a space as U+2581, which becomes a space in the piece and matches a
// space of a text. A token that is spelled with a real space never matches anything.
bool can_be_found(const Vocabulary& vocabulary, std::uint32_t id) noexcept {
  const TokenType type = vocabulary.type(id);
  if (type != TokenType::normal && type != TokenType::user_defined) return false;
  const std::string_view piece = vocabulary.piece(id);
  return !piece.empty() && piece.size() <= PieceOrder::kLongestPiece &&
         vocabulary.text(id).find(' ') == std::string_view::npos;
}

// For texts that are compared with the vocabulary's own spelling (Spelling::text): returns whether the token can occur in such a text.
bool can_be_spelled(const Vocabulary& vocabulary, std::uint32_t id) noexcept {
  const bool can_be = vocabulary.is_ordinary(id) || vocabulary.type(id) == TokenType::unknown;
  return can_be && !vocabulary.text(id).empty() && vocabulary.text(id).size() <= PieceOrder::kLongestPiece;
}

}  // namespace

bool PieceOrder::build(const Vocabulary& vocabulary, const std::stop_token& stop, Spelling spelling) {
  spelling_ = spelling;
  order_.reserve(vocabulary.size());
  for (std::uint32_t id = 0; id < vocabulary.size(); ++id) {
    if (is_stopped(stop, id)) return false;
    if (spelling == Spelling::piece ? can_be_found(vocabulary, id) : can_be_spelled(vocabulary, id)) order_.push_back(id);
  }
  std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    const int order = spelled(a, vocabulary).compare(spelled(b, vocabulary));
    return order != 0 ? order < 0 : a < b;
  });
  const auto same = [&](std::uint32_t a, std::uint32_t b) { return spelled(a, vocabulary) == spelled(b, vocabulary); };
  order_.erase(std::unique(order_.begin(), order_.end(), same), order_.end());
  for (unsigned byte = 0; byte <= 256; ++byte) {
    first_[byte] = static_cast<std::uint32_t>(
        std::partition_point(order_.begin(), order_.end(),
                             [&](std::uint32_t id) { return static_cast<unsigned char>(spelled(id, vocabulary)[0]) < byte; }) -
        order_.begin());
  }
  return !stop.stop_requested();
}

PieceOrder::Range PieceOrder::narrowed(Range range, unsigned char byte, const Vocabulary& vocabulary) const noexcept {
  const auto at_depth = [&](std::uint32_t id) { return static_cast<unsigned char>(spelled(id, vocabulary)[range.depth]); };
  if (range.end - range.begin == 1) {  // a fast path: after a few bytes most ranges have only one piece
    const std::string_view piece = spelled(order_[range.begin], vocabulary);
    const bool goes_on = piece.size() > range.depth && static_cast<unsigned char>(piece[range.depth]) == byte;
    return {range.begin, range.end - (goes_on ? 0 : 1), range.depth + 1};
  }
  const std::uint32_t begin = range.begin + (whole(range, vocabulary) != kNoToken ? 1 : 0);  // skips the piece that ends at this depth
  const auto first = std::partition_point(order_.begin() + begin, order_.begin() + range.end,
                                          [&](std::uint32_t id) { return at_depth(id) < byte; });
  const auto last = std::partition_point(first, order_.begin() + range.end,
                                         [&](std::uint32_t id) { return at_depth(id) <= byte; });
  return {static_cast<std::uint32_t>(first - order_.begin()), static_cast<std::uint32_t>(last - order_.begin()), range.depth + 1};
}

}  // namespace tessera::detail
