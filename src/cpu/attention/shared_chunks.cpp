#include "cpu/attention/shared_chunks.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace tessera::cpu {

void SharedChunks::reserve(std::size_t rows) {
  readers_.reserve(rows);
  row_numbers_.reserve(rows);
  level_.reserve(rows / 2);
  next_.reserve(rows / 2);
  before_.reserve(rows);
}

// Compares the pages of readers a and b, from their first chunk on. Returns the index of the first page that differs; the readers share all
// pages before it. If no page differs, returns the index after the last page of the reader that ends first. Precondition: both begin with
// the same chunk (Reader::first).
std::size_t SharedChunks::first_difference(const Reader& a, const Reader& b) noexcept {
  const std::size_t end = std::min(a.last, b.last) * a.chunk_pages;
  std::size_t page = a.first * a.chunk_pages;
  while (page < end && a.pages[page] == b.pages[page]) ++page;
  return page;
}

// Returns whether reader a comes before reader b when readers are sorted. Among readers with the same first chunk, the addresses of their
// pages decide, compared from the first page on. So readers with equal beginnings lie side by side.
bool SharedChunks::is_before(const Reader& a, const Reader& b) noexcept {
  if (a.chunk_pages != b.chunk_pages) return a.chunk_pages < b.chunk_pages;
  if (a.first != b.first) return a.first < b.first;
  const std::size_t page = first_difference(a, b);
  if (page < std::min(a.last, b.last) * a.chunk_pages) return std::less<>{}(a.pages[page], b.pages[page]);
  return a.last != b.last ? a.last < b.last : a.block < b.block;
}

std::uint64_t SharedChunks::common_end(const Reader& a, const Reader& b) noexcept {
  if (a.chunk_pages != b.chunk_pages || a.first != b.first) return b.first;
  return first_difference(a, b) / a.chunk_pages;
}

bool SharedChunks::find(std::span<const backend::RowTable> rows, std::span<const KvView> sequences,
                        const backend::AttentionShape& shape, std::size_t most_rows,
                        std::span<RowBlock> blocks) noexcept {
  readers_.clear();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const RowBlock& block = blocks[i];
    if (block.rows > most_rows) continue;
    const backend::RowTable& row = rows[block.row];
    const KvLayerView kv = sequences[row.sequence].layer(shape.layer);
    const std::uint64_t end = row.position + block.rows;  // end of the window of the block's last row
    const std::uint64_t begin = shape.window != 0 && end > shape.window ? end - shape.window : 0;
    const Chunks whole{(begin + kChunk - 1) / kChunk, row.position / kChunk};
    if (whole.first >= whole.last) continue;
    readers_.push_back({.pages = kv.pages, .chunk_pages = kChunk / kv.page_tokens, .first = whole.first,
                        .last = whole.last, .common = whole.first, .block = i, .number = 0});
  }
  if (readers_.size() < 2) return false;
  std::sort(readers_.begin(), readers_.end(), is_before);
  for (std::size_t i = 1; i < readers_.size(); ++i) readers_[i].common = common_end(readers_[i - 1], readers_[i]);
  level_.clear();
  for (std::size_t begin = 0, end = 0; begin < readers_.size(); begin = end) {
    for (end = begin + 1; end < readers_.size() && readers_[end].first == readers_[begin].first;) ++end;
    add_nodes(begin, end, readers_[begin].first, level_);
  }
  if (level_.empty()) return false;

  row_numbers_.clear();
  for (Reader& reader : readers_) {
    const RowBlock& block = blocks[reader.block];
    reader.number = row_numbers_.size();
    for (std::size_t row = block.row; row < block.row + block.rows; ++row) {
      row_numbers_.push_back(static_cast<std::uint32_t>(row));
    }
  }
  before_.clear();
  for (const Node& node : level_) {
    for (std::size_t i = node.begin; i < node.end; ++i) {
      RowBlock& block = blocks[readers_[i].block];
      if (block.chunks.first < node.from) before_.push_back({block.row, block.rows, {block.chunks.first, node.from}});
      // The block keeps only the chunks after those that it shares with a neighbour: the reader before it or after it in the sorted list.
      // `after`: the end of the chunks that it shares with the next reader.
      const std::uint64_t after = i + 1 < node.end ? readers_[i + 1].common : node.from;
      block.chunks.first = std::max(after, i > node.begin ? readers_[i].common : node.from);
    }
  }
  return true;
}

void SharedChunks::add_nodes(std::size_t begin, std::size_t end, std::uint64_t from,
                             std::vector<Node>& to) const noexcept {
  while (begin < end) {
    Node node{begin, begin + 1, from, from};
    for (; node.end < end && readers_[node.end].common > from; ++node.end) {
      const std::uint64_t common = readers_[node.end].common;
      node.to = node.end == begin + 1 ? common : std::min(node.to, common);
    }
    if (node.end - begin > 1) to.push_back(node);
    begin = node.end;
  }
}

void SharedChunks::cut(std::size_t most_rows, std::vector<RowBlock>& blocks) const noexcept {
  blocks.clear();
  for (const Node& node : level_) {
    const std::size_t first = readers_[node.begin].number;
    const std::size_t end = node.end < readers_.size() ? readers_[node.end].number : row_numbers_.size();
    const std::size_t n = end - first, count = (n + most_rows - 1) / most_rows;
    for (std::size_t i = 0; i < count; ++i) {  // blocks of about equal size
      const std::size_t from = n * i / count, to = n * (i + 1) / count;
      blocks.push_back({first + from, to - from, {node.from, node.to}});
    }
  }
}

bool SharedChunks::descend() noexcept {
  next_.clear();
  for (const Node& node : level_) add_nodes(node.begin, node.end, node.to, next_);
  std::swap(level_, next_);
  return !level_.empty();
}

}  // namespace tessera::cpu
