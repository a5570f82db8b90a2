// Finds the chunks of keys that several sequences of a step share, so that attention reads these keys once for the rows of all the
// sequences. Forks, samples, beams and sequences that took their beginning from the prefix index have the same pages at the same
// positions, so their page tables begin with the same addresses. Sorted by these addresses, sequences that share a beginning lie side by
// side, and their beginnings form a tree. For example, five sequences have the same system prompt of 1,024 tokens, and three of them go on
// with the same 512 tokens:
//
//   level 0   chunks 0 to 3   rows of all five
//   level 1   chunks 4, 5     rows of the three
//
// Two kinds of chunks are never shared: a chunk that a row sees only in part, and the chunk of the row's own position.
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

  // Looks for chunks that several blocks share in the layer of `shape`, among the blocks of at most `most_rows` rows. Returns whether
  // there are any. If there are, goes to level 0 of the tree, and shortens `blocks` to the chunks after the shared ones. Allocates
  // nothing if there are no more rows than reserved.
  bool find(std::span<const backend::RowTable> rows, std::span<const KvView> sequences,
            const backend::AttentionShape& shape, std::size_t most_rows, std::span<RowBlock> blocks) noexcept;

  // Returns the chunks before the shared ones, as blocks of the step's rows. There are such chunks only in layers with a window: the rows'
  // windows begin inside of them, so some keys of these chunks are not visible.
  [[nodiscard]] std::span<const RowBlock> before() const noexcept { return before_; }

  // Writes the blocks of the present level. Each has at most `most_rows` row numbers.
  void cut(std::size_t most_rows, std::vector<RowBlock>& blocks) const noexcept;
  // Goes to the next level. Returns false if there is none.
  bool descend() noexcept;

  [[nodiscard]] const std::uint32_t* row_numbers() const noexcept { return row_numbers_.data(); }

 private:
  // A reader is a block that may share chunks: the pages of its sequence, and the range of chunks whose keys all rows of the block see.
  struct Reader {
    std::byte* const* pages;
    std::size_t chunk_pages;    // pages of a chunk
    std::uint64_t first, last;  // these chunks: [first, last)
    std::uint64_t common;       // the reader before this one shares the chunks [first, common)
    std::size_t block;          // index of the block
    std::size_t number;         // index of its first row in row_numbers_
  };
  // Readers [begin, end) share the chunks [from, to), and no more.
  struct Node {
    std::size_t begin, end;
    std::uint64_t from, to;
  };

  [[nodiscard]] static std::size_t first_difference(const Reader& a, const Reader& b) noexcept;
  [[nodiscard]] static bool is_before(const Reader& a, const Reader& b) noexcept;
  [[nodiscard]] static std::uint64_t common_end(const Reader& a, const Reader& b) noexcept;
  // Adds a node to `to` for each run of consecutive readers in [begin, end) that share chunks from `from` on.
  void add_nodes(std::size_t begin, std::size_t end, std::uint64_t from, std::vector<Node>& to) const noexcept;

  std::vector<Reader> readers_;  // sorted by is_before()
  std::vector<std::uint32_t> row_numbers_;  // the readers' rows, as rows of the step
  std::vector<Node> level_, next_;
  std::vector<RowBlock> before_;
};

}  // namespace tessera::cpu
