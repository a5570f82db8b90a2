// Which chunks of keys several sequences of a step have in common. Forks, samples, beams and adopted prefixes have the
// same pages at the same positions, so their page tables begin with the same addresses. Sorted by these, the sequences
// that share a beginning lie side by side, and their beginnings are a tree. For example, of five sequences over one
// system prompt of 1,024 tokens three go on with the same 512:
//
//   level 0   chunks 0 to 3   rows of all five
//   level 1   chunks 4, 5     rows of the three
//
// Chunks that a row sees a part of are its own, and so is the chunk of its own position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "cpu/products/row_block.hpp"

namespace tessera::cpu {

class SharedChunks {
 public:
  void reserve(std::size_t rows);

  // Looks at those `blocks` of a step's rows that have at most `most_rows` rows, and goes to level 0 of what they share in
  // this layer. Returns whether they share anything; if so, what comes after the shared chunks is all that is left in
  // `blocks`. Allocates nothing if there are no more rows than reserved.
  bool find(std::span<const backend::RowTable> rows, std::span<const KvView> sequences,
            const backend::AttentionShape& shape, std::size_t most_rows, std::span<RowBlock> blocks) noexcept;

  // What comes before the shared chunks, at the beginning of windows: rows of the step.
  [[nodiscard]] std::span<const RowBlock> before() const noexcept { return before_; }

  // The blocks of the present level, of at most `most_rows` row numbers each.
  void cut(std::size_t most_rows, std::vector<RowBlock>& blocks) const noexcept;
  // To the next level; false if there is none.
  bool descend() noexcept;

  [[nodiscard]] const std::uint32_t* row_numbers() const noexcept { return row_numbers_.data(); }

 private:
  // A block that may share: sequences' pages, and the chunks that all of its rows see all of.
  struct Reader {
    std::byte* const* pages;
    std::size_t chunk_pages;    // of a chunk
    std::uint64_t first, last;  // chunks [first, last)
    std::uint64_t common;       // those before it are shared with the reader before this one; first: none
    std::size_t block;          // index
    std::size_t number;         // of its first row in row_numbers_
  };
  // Readers [begin, end) have the chunks [from, to) in common, and no more.
  struct Node {
    std::size_t begin, end;
    std::uint64_t from, to;
  };

  [[nodiscard]] static std::size_t first_difference(const Reader& a, const Reader& b) noexcept;
  [[nodiscard]] static bool is_before(const Reader& a, const Reader& b) noexcept;
  [[nodiscard]] static std::uint64_t common_end(const Reader& a, const Reader& b) noexcept;
  // Of readers [begin, end), those that share chunks behind `from` with a neighbour.
  void add_nodes(std::size_t begin, std::size_t end, std::uint64_t from, std::vector<Node>& to) const noexcept;

  std::vector<Reader> readers_;  // sorted
  std::vector<std::uint32_t> row_numbers_;  // of the readers' rows
  std::vector<Node> level_, next_;
  std::vector<RowBlock> before_;
};

}  // namespace tessera::cpu
