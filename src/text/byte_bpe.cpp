#include "text/byte_bpe.hpp"

#include <limits>
#include <string>

#include "support/error.hpp"

namespace tessera::detail {
namespace {

constexpr std::string_view kMerges = "tokenizer.ggml.merges";

}  // namespace

Result<MergeTable> MergeTable::load(const GgufFile& file, const Vocabulary& vocabulary) {
  TESSERA_TRY(const GgufArray merges, file.array(kMerges));
  if (merges.type() != GgufType::string || merges.size() > std::numeric_limits<std::int32_t>::max() / 2) {
    return error_at(ErrorCode::corrupt_file, std::string(kMerges), "{} values of type {}: merges are strings",
                    merges.size(), to_string(merges.type()));
  }
  MergeTable table;
  table.merges_.reserve(static_cast<std::size_t>(merges.size()));
  table.table_.assign(table_slots(static_cast<std::size_t>(merges.size())), kNoRank);
  std::string joined;
  for (const std::string_view merge : merges.strings()) {
    const auto index = static_cast<std::uint32_t>(table.merges_.size());
    const std::size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merge.size()) {
      return error_at(ErrorCode::corrupt_file, std::string(kMerges),
                      "merge {} is not two tokens with a space between them", index);
    }
    const std::string_view left = merge.substr(0, space), right = merge.substr(space + 1);
    joined.assign(left).append(right);
    const Merge ids{vocabulary.find_ordinary(left), vocabulary.find_ordinary(right), vocabulary.find_ordinary(joined)};
    table.merges_.push_back(ids);
    if (ids.left == kNoToken || ids.right == kNoToken || ids.result == kNoToken) continue;  // never applies
    const std::size_t slot = table.slot_of(ids.left, ids.right);
    if (table.table_[slot] == kNoRank) table.table_[slot] = index;  // of a pair named twice the first counts
  }
  return table;
}

std::uint64_t MergeTable::plan_bytes(const GgufFile& file) noexcept {
  const auto merges = file.array(kMerges);
  if (!merges || merges->type() != GgufType::string) return 0;
  return merges->size() * sizeof(Merge) + table_slots(static_cast<std::size_t>(merges->size())) * sizeof(std::uint32_t);
}

std::uint64_t MergeTable::memory_bytes() const noexcept {
  return merges_.capacity() * sizeof(Merge) + table_.capacity() * sizeof(std::uint32_t);
}

// The pair's slot, or the empty one where it belongs.
std::size_t MergeTable::slot_of(std::uint32_t left, std::uint32_t right) const noexcept {
  const std::size_t mask = table_.size() - 1;
  std::size_t slot = hash_mix(hash_mix(left) ^ right) & mask;
  while (table_[slot] != kNoRank && !joins(table_[slot], left, right)) slot = (slot + 1) & mask;
  return slot;
}

std::uint32_t MergeTable::rank(std::uint32_t left, std::uint32_t right) const noexcept {
  return table_[slot_of(left, right)];
}

void ByteBpe::offer(std::uint32_t left, std::uint32_t right) {
  if (left == kNoSymbol || right == kNoSymbol) return;
  const std::uint32_t rank = merges_.rank(symbols_[left].id, symbols_[right].id);
  if (rank == MergeTable::kNoRank) return;
  queue_.push(rank, left, right, rank);
}

void ByteBpe::encode(std::string_view word, std::vector<Token>& out) {
  if (word.empty()) return;
  symbols_.clear();
  for (const char c : word) {
    const auto index = static_cast<std::uint32_t>(symbols_.size());
    symbols_.push_back({vocabulary_.byte_token(static_cast<unsigned char>(c)), index - 1, index + 1, true});
  }
  symbols_.back().next = kNoSymbol;

  queue_.clear();
  for (std::uint32_t i = 1; i < symbols_.size(); ++i) offer(i - 1, i);
  for (MergeCandidate best; queue_.pop(best);) {
    const std::uint32_t left = best.left(), rank = best.check;
    Symbol& a = symbols_[left];
    Symbol& b = symbols_[best.right];
    // A symbol that grew has another id, so ids that still fit are the pair that was offered.
    if (!a.alive || !b.alive || !merges_.joins(rank, a.id, b.id)) continue;
    a.id = merges_.result(rank);
    b.alive = false;
    a.next = b.next;
    if (b.next != kNoSymbol) symbols_[b.next].previous = left;
    offer(a.previous, left);
    offer(left, a.next);
  }
  for (std::uint32_t i = 0; i != kNoSymbol; i = symbols_[i].next) {
    const std::uint32_t id = symbols_[i].id != kNoToken ? symbols_[i].id : vocabulary_.unknown();
    if (id != kNoToken) out.push_back(static_cast<Token>(id));
  }
}

}  // namespace tessera::detail
