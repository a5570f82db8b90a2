#include "text/models/raw_bpe.hpp"

#include <algorithm>

#include "core/utf8.hpp"

namespace tessera::detail {

void RawBpe::encode(std::string_view text, TokenList& out) {
  unknown_before_ = false;
  while (!text.empty()) {
    // Newlines merge only with newlines, so the text is cut into runs of newlines and the text between them.
    const bool breaks = text.front() == '\n';
    const std::size_t size = std::min(breaks ? text.find_first_not_of('\n') : text.find('\n'), text.size());
    const std::string_view run = text.substr(0, size);
    for (std::size_t at = 0; at < size;) {
      const std::size_t end = cuts_.next(run, at);
      encode_part(run.substr(at, end - at), out);
      at = end;
    }
    text.remove_prefix(size);
  }
}

void RawBpe::encode_part(std::string_view text, TokenList& out) {
  const auto size = static_cast<std::uint32_t>(text.size());
  symbols_.starts.clear(size);
  ids_.clear();
  ids_.resize(size, kNoToken);
  for (std::uint32_t at = 0; at < size;) {
    symbols_.starts.insert(at);
    const Utf8Step step = utf8_step(text.substr(at));
    const std::uint32_t end = at + (step.kind == Utf8Kind::valid ? static_cast<std::uint32_t>(step.size) : 1u);
    if (step.kind == Utf8Kind::valid) ids_[at] = vocabulary_.find_ordinary(text[at] == ' ' ? kSpaceMark : text.substr(at, end - at));
    at = end;
  }
  symbols_.merge(
      size, [&](std::uint32_t left, std::uint32_t right, std::uint32_t) { return merges_.rank(ids_[left], ids_[right]); },
      [&](std::uint32_t left, std::uint32_t rank) { ids_[left] = merges_.result(rank); });
  if (size >= kLargeWord) symbols_.order.release();  // frees memory before the tokens need some
  out.reserve(symbols_.starts.count());
  for (std::uint32_t at = 0; at < size;) {
    const std::uint32_t end = symbols_.starts.next(at + 1);
    if (ids_[at] == kNoToken) {
      add_bytes(text[at] == ' ' ? kSpaceMark : text.substr(at, end - at), out);
    } else {
      out.add(ids_[at]);
      unknown_before_ = false;
    }
    at = end;
  }
}

void RawBpe::add_bytes(std::string_view character, TokenList& out) {
  const auto token = [&](char c) { return vocabulary_.byte_token(static_cast<unsigned char>(c)); };
  if (std::ranges::all_of(character, [&](char c) { return token(c) != kNoToken; })) {
    for (const char c : character) out.add(token(c));
    unknown_before_ = false;
    return;
  }
  if (!unknown_before_ && vocabulary_.stand_in() != kNoToken) out.add(vocabulary_.stand_in());
  unknown_before_ = true;
}

}  // namespace tessera::detail
