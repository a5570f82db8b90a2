#include "text/special_tokens.hpp"

#include <algorithm>

namespace tessera::detail {
namespace {

bool is_special(TokenType type) noexcept {
  return type == TokenType::control || type == TokenType::user_defined || type == TokenType::unknown;
}

// Tokens that only their texts make special; more than end_of_generation.cpp lists.
constexpr std::size_t kSpare = 64;

// Better candidates are greater.
bool worse(const SpecialMatch& a, const SpecialMatch& b) noexcept {
  if (a.size != b.size) return a.size < b.size;
  if (a.id != b.id) return a.id > b.id;
  return a.begin > b.begin;
}

}  // namespace

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary) {
  std::size_t count = 0;
  for (std::uint32_t id = 0; id < vocabulary.size(); ++id) count += is_special(vocabulary.type(id)) ? 1 : 0;
  sorted_.reserve(count);
  for (std::uint32_t id = 0; id < vocabulary.size(); ++id) {
    if (!is_special(vocabulary.type(id)) || vocabulary.text(id).empty()) continue;
    sorted_.push_back(id);
    any_user_defined_ |= vocabulary.type(id) == TokenType::user_defined;
  }
  std::sort(sorted_.begin(), sorted_.end(), [&](std::uint32_t a, std::uint32_t b) {
    const int order = vocabulary.text(a).compare(vocabulary.text(b));
    return order != 0 ? order < 0 : a < b;
  });
  const auto same = [&](std::uint32_t a, std::uint32_t b) { return vocabulary.text(a) == vocabulary.text(b); };
  sorted_.erase(std::unique(sorted_.begin(), sorted_.end(), same), sorted_.end());  // the lowest id stays
  for (const std::uint32_t id : sorted_) ++first_byte_[static_cast<unsigned char>(vocabulary.text(id)[0]) + 1u];
  for (std::size_t byte = 0; byte < 256; ++byte) first_byte_[byte + 1] += first_byte_[byte];
}

std::uint64_t SpecialTokens::plan_bytes(const GgufFile& file) noexcept {
  std::uint64_t count = kSpare;
  if (const auto types = file.array("tokenizer.ggml.token_type"); types && types->is_integer()) {
    for (std::uint64_t i = 0; i < types->size(); ++i) {
      const std::int64_t type = types->integer(i);
      count += type >= 0 && type <= 6 && is_special(static_cast<TokenType>(type)) ? 1 : 0;
    }
  }
  return count * sizeof(std::uint32_t);
}

SpecialMatch SpecialTokens::longest_at(const Vocabulary& vocabulary, std::string_view text, std::uint32_t begin,
                                       std::size_t limit, Special special) const noexcept {
  SpecialMatch longest{begin, 0, kNoToken};
  const unsigned char first = static_cast<unsigned char>(text[begin]);
  auto low = sorted_.begin() + first_byte_[first], high = sorted_.begin() + first_byte_[first + 1u];
  // Each step keeps the tokens that agree with the text in one byte more; one that ends there stands first.
  for (std::size_t depth = 1; low != high; ++depth) {
    if (vocabulary.text(*low).size() == depth) {
      if (special == Special::parse || vocabulary.type(*low) == TokenType::user_defined) {
        longest = {begin, static_cast<std::uint32_t>(depth), *low};
      }
      ++low;
    }
    if (depth == limit) break;
    const auto next = static_cast<unsigned char>(text[begin + depth]);
    const auto byte = [&](std::uint32_t id) { return static_cast<unsigned char>(vocabulary.text(id)[depth]); };
    low = std::partition_point(low, high, [&](std::uint32_t id) { return byte(id) < next; });
    high = std::partition_point(low, high, [&](std::uint32_t id) { return byte(id) == next; });
  }
  return longest;
}

std::vector<SpecialMatch> SpecialTokens::find(const Vocabulary& vocabulary, std::string_view text,
                                              Special special) const {
  std::vector<SpecialMatch> found;
  if (sorted_.empty() || (special == Special::as_text && !any_user_defined_)) return found;

  std::vector<SpecialMatch> candidates;  // a heap: of every position, the longest token that can still stand there
  for (std::uint32_t begin = 0; begin < text.size(); ++begin) {
    const SpecialMatch match = longest_at(vocabulary, text, begin, text.size() - begin, special);
    if (match.size > 0) candidates.push_back(match);
  }
  if (candidates.empty()) return found;
  std::make_heap(candidates.begin(), candidates.end(), worse);

  std::vector<bool> taken(text.size());
  while (!candidates.empty()) {
    std::pop_heap(candidates.begin(), candidates.end(), worse);
    const SpecialMatch match = candidates.back();
    candidates.pop_back();
    if (taken[match.begin]) continue;
    // What is taken already is at least as long as this match: an overlap covers its first byte or its last.
    if (!taken[match.begin + match.size - 1]) {
      std::fill_n(taken.begin() + match.begin, match.size, true);
      found.push_back(match);
      continue;
    }
    std::uint32_t limit = 1;
    while (!taken[match.begin + limit]) ++limit;
    const SpecialMatch shorter = longest_at(vocabulary, text, match.begin, limit, special);
    if (shorter.size == 0) continue;
    candidates.push_back(shorter);
    std::push_heap(candidates.begin(), candidates.end(), worse);
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return found;
}

}  // namespace tessera::detail
