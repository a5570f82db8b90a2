#include "text/models/spm_bpe.hpp"

#include <algorithm>
#include <bit>

#include "core/utf8.hpp"

namespace tessera::detail {
namespace {

// Converts a token's score to a priority for the merge loop, where the smallest priority comes first: the higher the score, the smaller
// the result. No score becomes MinTree::kNever; the largest result is 0xFF800000, for the score -infinity.
std::uint32_t priority_of(float score) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(score);
  return (bits & 0x80000000u) != 0 ? bits : ~(bits | 0x80000000u);
}

}  // namespace

SpaceCuts::SpaceCuts(const Vocabulary& vocabulary) noexcept {
  for (std::uint32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view text = vocabulary.text(id);
    for (std::size_t at = text.find(kSpaceMark, 1); at != std::string_view::npos; at = text.find(kSpaceMark, at + 1)) {
      joined_[static_cast<unsigned char>(text[at - 1])] = true;
    }
  }
}

std::size_t SpaceCuts::next(std::string_view text, std::size_t from) const noexcept {
  constexpr std::string_view begins = " \xE2";
  for (std::size_t at = text.find_first_of(begins, from + 1); at != std::string_view::npos;
       at = text.find_first_of(begins, at + 1)) {
    if (text[at] != ' ' && !text.substr(at).starts_with(kSpaceMark)) continue;
    const char before = text[at - 1] == ' ' ? kSpaceMark.back() : text[at - 1];
    if (!joined_[static_cast<unsigned char>(before)]) return at;
  }
  return text.size();
}

// Returns the symbol with each space replaced by U+2581, as the vocabulary has it.
std::string_view SpmBpe::escaped(std::string_view symbol) {
  if (symbol.find(' ') == std::string_view::npos) return symbol;
  scratch_.clear();
  for (const char c : symbol) {
    if (c == ' ') {
      scratch_.append(kSpaceMark);
    } else {
      scratch_.push_back(c);
    }
  }
  return scratch_;
}

std::uint32_t SpmBpe::find(std::string_view symbol) {
  return symbol.size() > vocabulary_.longest_text() ? kNoToken : vocabulary_.find_ordinary(escaped(symbol));
}

void SpmBpe::emit(std::string_view symbol, TokenList& out) {
  if (const std::uint32_t id = find(symbol); id != kNoToken) return out.add(id);
  const std::string_view bytes = escaped(symbol);
  const auto token = [&](char c) { return vocabulary_.byte_token(static_cast<unsigned char>(c)); };
  if (std::ranges::all_of(bytes, [&](char c) { return token(c) != kNoToken; })) {
    for (const char c : bytes) out.add(token(c));
  // If there are no byte tokens, the character becomes the unknown token, as in SentencePiece.
  } else if (vocabulary_.stand_in() != kNoToken) {
    out.add(vocabulary_.stand_in());
  }
}

void SpmBpe::encode(std::string_view text, TokenList& out) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = cuts_.next(text, at);
    encode_part(text.substr(at, end - at), out);
    at = end;
  }
}

void SpmBpe::encode_part(std::string_view text, TokenList& out) {
  const auto size = static_cast<std::uint32_t>(text.size());
  symbols_.starts.clear(size);
  for (std::uint32_t at = 0; at < size;) {
    symbols_.starts.insert(at);
    const Utf8Step step = utf8_step(text.substr(at));
    at += step.kind == Utf8Kind::valid ? static_cast<std::uint32_t>(step.size) : 1u;
  }
  symbols_.merge(
      size,
      [&](std::uint32_t left, std::uint32_t, std::uint32_t end) {
        const std::uint32_t id = find(text.substr(left, end - left));
        return id == kNoToken ? MinTree::kNever : priority_of(vocabulary_.score(id));
      },
      [](std::uint32_t, std::uint32_t) {});
  if (size >= kLargeWord) symbols_.order.release();  // frees memory before the tokens need some
  out.reserve(symbols_.starts.count());
  for (std::uint32_t at = 0; at < size;) {
    const std::uint32_t end = symbols_.starts.next(at + 1);
    emit(text.substr(at, end - at), out);
    at = end;
  }
}

}  // namespace tessera::detail
