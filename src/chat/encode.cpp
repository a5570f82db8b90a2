// Encodes the text that a chat template has rendered. Control tokens are made only from text that the template itself has written, never
// from the text of messages.
#include <algorithm>
#include <array>

#include <tessera/chat/chat_template.hpp>

#include "core/empty.hpp"
#include "core/error.hpp"

namespace tessera {

using namespace detail;

namespace {

struct Match {
  std::size_t begin, size;
  Token id;
};

// The texts of tokens that become control tokens when text is encoded with Special::parse, but not with Special::as_text.
class ControlNames {
 public:
  explicit ControlNames(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
    for (std::size_t i = 0; i < tokenizer.vocab_size(); ++i) {
      const auto id = static_cast<Token>(i);
      const TokenType type = tokenizer.type(id);
      if ((type == TokenType::control || type == TokenType::unknown) && !tokenizer.text(id).empty()) sorted_.push_back(id);
    }
    std::sort(sorted_.begin(), sorted_.end(), [&](Token a, Token b) {
      const int order = tokenizer.text(a).compare(tokenizer.text(b));
      return order != 0 ? order < 0 : a < b;
    });
    for (std::size_t i = sorted_.size(); i > 0; --i) first_[byte(sorted_[i - 1], 0)] = {i - 1, sorted_.size()};
    for (std::size_t i = 0; i < sorted_.size(); ++i) first_[byte(sorted_[i], 0)].second = i + 1;
  }

  // Calls fn(match) for each of the texts that begins at offset `begin`, the shortest text first.
  template <class Fn>
  void for_each_at(std::string_view text, std::size_t begin, Fn&& fn) const {
    const auto [from, to] = first_[static_cast<unsigned char>(text[begin])];
    auto low = sorted_.begin() + static_cast<std::ptrdiff_t>(from), high = sorted_.begin() + static_cast<std::ptrdiff_t>(to);
    for (std::size_t depth = 1; low != high; ++depth) {
      if (tokenizer_.text(*low).size() == depth) {
        fn(Match{begin, depth, *low});
        // If several tokens have the same text, the one with the lowest id counts.
        while (low != high && tokenizer_.text(*low).size() == depth) ++low;
      }
      if (begin + depth == text.size()) return;
      const auto next = static_cast<unsigned char>(text[begin + depth]);
      low = std::partition_point(low, high, [&](Token id) { return byte(id, depth) < next; });
      high = std::partition_point(low, high, [&](Token id) { return byte(id, depth) == next; });
    }
  }

 private:
  [[nodiscard]] unsigned char byte(Token id, std::size_t at) const {
    return static_cast<unsigned char>(tokenizer_.text(id)[at]);
  }
  const Tokenizer& tokenizer_;
  std::vector<Token> sorted_;                                         // sorted by text, then by id
  std::array<std::pair<std::size_t, std::size_t>, 256> first_{};      // [first byte of a text]: range in sorted_
};

// Returns the names of control tokens in [begin, end) of the text, in ascending order and without overlaps. If names overlap, the longest
// name of all is taken first, then the longest that does not overlap it, and so on, as in the tokenizer.
std::vector<Match> names_within(const ControlNames& names, std::string_view text, std::size_t begin, std::size_t end) {
  std::vector<Match> found;
  for (std::size_t at = begin; at < end; ++at) {
    names.for_each_at(text, at, [&](const Match& match) {
      if (at + match.size <= end) found.push_back(match);
    });
  }
  std::sort(found.begin(), found.end(), [](const Match& a, const Match& b) {
    if (a.size != b.size) return a.size > b.size;
    return a.id != b.id ? a.id < b.id : a.begin < b.begin;
  });
  std::vector<bool> taken(end - begin);
  std::vector<Match> placed;
  for (const Match& match : found) {
    const auto first = taken.begin() + static_cast<std::ptrdiff_t>(match.begin - begin);
    const auto last = first + static_cast<std::ptrdiff_t>(match.size);
    if (std::find(first, last, true) != last) continue;
    std::fill(first, last, true);
    placed.push_back(match);
  }
  std::sort(placed.begin(), placed.end(), [](const Match& a, const Match& b) { return a.begin < b.begin; });
  return placed;
}

}  // namespace

Result<std::vector<Token>> RenderedText::encode(const Tokenizer& tokenizer) const noexcept {
  return guard([&]() -> Result<std::vector<Token>> {
    if (tokenizer.vocab_size() == 0) return no_tokenizer_error();
    const std::string whole = text();
    const ControlNames names(tokenizer);
    bool forged = false;  // true: a control token's name in the text has bytes of a message, so it must not become that token
    std::size_t begin = 0;
    for (std::size_t i = 0; i < spans.size() && !forged; ++i) {
      const std::size_t end = begin + spans[i].text.size();
      const bool ours = spans[i].origin == TextOrigin::from_template;
      for (std::size_t at = begin; at < end && !forged; ++at) {
        names.for_each_at(whole, at, [&](const Match& match) { forged |= !ours || at + match.size > end; });
      }
      begin = end;
    }
    if (!forged) return tokenizer.encode(whole, {.bos = Bos::never, .special = Special::parse});

    std::vector<Token> out;
    std::size_t done = 0;
    const auto encode_up_to = [&](std::size_t to) -> Status {
      if (to == done) return {};
      TESSERA_TRY(const auto part, tokenizer.encode(std::string_view(whole).substr(done, to - done), {.bos = Bos::never}));
      out.insert(out.end(), part.begin(), part.end());
      done = to;
      return {};
    };
    begin = 0;
    for (const RenderedSpan& span : spans) {
      const std::size_t end = begin + span.text.size();
      if (span.origin == TextOrigin::from_template) {
        for (const Match& match : names_within(names, whole, begin, end)) {
          TESSERA_TRY_STATUS(encode_up_to(match.begin));
          out.push_back(match.id);
          done = match.begin + match.size;
        }
      }
      begin = end;
    }
    TESSERA_TRY_STATUS(encode_up_to(whole.size()));
    return out;
  });
}

}  // namespace tessera
