#include "text/models/byte_bpe.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "core/error.hpp"

namespace tessera::detail {

Result<MergeTable> MergeTable::load(const ValueList& merges, const Vocabulary& vocabulary, const std::stop_token& stop) {
  MergeTable table;
  table.merges_.reserve(static_cast<std::size_t>(merges.size()));
  std::string joined;
  for (const std::string_view merge : merges.strings()) {
    if (is_stopped(stop, table.merges_.size())) return loading_stopped();
    const std::size_t space = merge.find(' ', 1);  // there is a space, because the metadata was checked
    const std::string_view left = merge.substr(0, space), right = merge.substr(space + 1);
    joined.assign(left).append(right);
    table.merges_.push_back(
        {vocabulary.find_ordinary(left), vocabulary.find_ordinary(right), vocabulary.find_ordinary(joined)});
  }
  TESSERA_TRY_STATUS(table.index(stop));
  return table;
}

Result<MergeTable> MergeTable::load_parts(const ValueList& parts, std::size_t prefix, const Vocabulary& vocabulary,
                                          const std::stop_token& stop) {
  MergeTable table;
  table.merges_.reserve(static_cast<std::size_t>(parts.size() / 2));
  std::string joined;
  const auto strings = parts.strings();
  for (auto at = strings.begin(); at != strings.end(); ++at) {
    if (is_stopped(stop, table.merges_.size())) return loading_stopped();
    const std::string_view left = *at, right = *++at;
    joined.assign(left).append(right.substr(std::min(prefix, right.size())));
    table.merges_.push_back(
        {vocabulary.find_mergeable(left), vocabulary.find_mergeable(right), vocabulary.find_mergeable(joined)});
  }
  TESSERA_TRY_STATUS(table.index(stop));
  return table;
}

Status MergeTable::index(const std::stop_token& stop) {
  const auto& pairs = merges_;
  const auto hash_of = [&](std::uint32_t i) -> std::optional<std::uint64_t> {
    const Pair& pair = pairs[i];
    // A part or the result is no token, so this merge can never apply.
    if (pair.left == kNoToken || pair.right == kNoToken || pair.result == kNoToken) return std::nullopt;
    return hash_mix(hash_mix(pair.left) ^ pair.right);
  };
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    if (pairs[a].left != pairs[b].left) return pairs[a].left < pairs[b].left;
    return pairs[a].right != pairs[b].right ? pairs[a].right < pairs[b].right : a < b;
  };
  if (!by_pair_.build(static_cast<std::uint32_t>(pairs.size()), hash_of, before, stop)) return loading_stopped();
  return {};
}

std::uint64_t MergeTable::plan_bytes(std::uint64_t merges) noexcept {
  return merges * sizeof(Pair) + HashedOrder::plan_bytes(merges);
}

std::uint64_t MergeTable::memory_bytes() const noexcept {
  return merges_.capacity() * sizeof(Pair) + by_pair_.memory_bytes();
}

std::uint32_t MergeTable::rank(std::uint32_t left, std::uint32_t right) const noexcept {
  static_assert(MinTree::kNever == HashedOrder::kNone);
  const std::uint64_t wanted = std::uint64_t{left} << 32 | right;
  std::uint32_t found = by_pair_.find(hash_mix(hash_mix(left) ^ right), [&](std::uint32_t i) {
    return (std::uint64_t{merges_[i].left} << 32 | merges_[i].right) <=> wanted;
  });
  if (shares_ranks_ && found != HashedOrder::kNone) {
    while (found > 0 && merges_[found - 1].result == merges_[found].result) --found;
  }
  return found;
}

void ByteBpe::add(std::uint32_t id, TokenList& out) const {
  if (id == kNoToken) id = vocabulary_.stand_in();
  if (id != kNoToken) out.add(id);
}

void ByteBpe::encode(std::string_view word, TokenList& out) {
  if (word.size() < 2) {
    if (!word.empty()) add(vocabulary_.byte_token(static_cast<unsigned char>(word[0])), out);
    return;
  }
  const auto size = static_cast<std::uint32_t>(word.size());
  ids_.clear();
  ids_.reserve(size);  // allocates exactly this size, if at all
  for (const char c : word) ids_.push_back(vocabulary_.byte_token(static_cast<unsigned char>(c)));
  symbols_.starts.fill(size);
  symbols_.merge(
      size, [&](std::uint32_t left, std::uint32_t right, std::uint32_t) { return merges_.rank(ids_[left], ids_[right]); },
      [&](std::uint32_t left, std::uint32_t rank) { ids_[left] = merges_.result(rank); });
  if (size >= kLargeWord) symbols_.order.release();  // frees memory before the tokens need some
  out.reserve(symbols_.starts.count());
  for (std::uint32_t i = 0; i < size; i = symbols_.starts.next(i + 1)) add(ids_[i], out);
}

}  // namespace tessera::detail
