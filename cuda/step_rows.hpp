// The rows of a step on the device: the tables that begin() uploads, and the present rows, on which operations work. The present rows are
// at first all rows of the step; after keep(), the wanted rows (whose outputs the caller needs); after select(), the rows of a selection.
// The lists of values for each row (RowValues) exist for all rows and for the wanted rows: keep() switches to the second. There are no
// lists for a selection, because operations after select() read none, unless the selection has all rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "cuda/kernels/heads.hpp"
#include "cuda/kernels/kv.hpp"
#include "cuda/row_lists.hpp"
#include "cuda/step_arena.hpp"

namespace tessera::cuda {

// All rows of a step, or the wanted rows.
enum class RowsNow : std::uint8_t { all, wanted };
inline constexpr std::size_t kRowsNow = 2;

// Lists on the device with one entry for each row.
struct RowValues {
  const std::uint64_t* positions = nullptr;
  const std::uint64_t* ends = nullptr;       // RowTable::end
  const std::uint32_t* tokens = nullptr;     // kNoRow for a row that has an embedding instead of a token
  const std::uint32_t* gathered = nullptr;   // tokens, also those of rows that have an embedding (RowTable::token)
  const std::uint32_t* segments = nullptr;
  const std::uint32_t* places = nullptr;     // positions as indices into a table of learned positions
  const std::uint32_t* embeddings = nullptr;  // index of the row's embedding, or kNoRow; nullptr if no row of the step has one
  // [KV sets][rows]: the row's sequence, or kNoSequence if it is of another set.
  std::vector<const std::uint32_t*> sequences = {};
};

// A KV set: the rows of a step whose sequences have the same KV layout. A kernel that reads or writes pages is launched once for each set.
// In a set's launch, the rows of other sets are skipped: their entry in RowValues::sequences is kNoSequence.
struct KvSet {
  // Rows whose keys and values go to branches too (backend::RowTable::also): for each such copy its row, sequence and position.
  struct Copies {
    const std::uint32_t* rows = nullptr;
    const std::uint32_t* sequences = nullptr;
    const std::uint64_t* positions = nullptr;
    std::uint32_t count = 0;
  };
  const KvLayout* layout = nullptr;
  std::vector<KvTables> tables = {};  // [group of layers]
  Copies copies = {};

  // Returns the page tables of the layer's group.
  [[nodiscard]] const KvTables& tables_of(std::size_t layer) const noexcept { return tables[layout->layers[layer].group]; }
  // Returns the same tables, with the branches' copies in place of rows.
  [[nodiscard]] KvTables tables_of_copies(std::size_t layer) const noexcept {
    KvTables of = tables_of(layer);
    of.row_sequence = copies.sequences;
    of.row_position = copies.positions;
    return of;
  }
};

class StepRows {
 public:
  // Allocates the buffer for the embeddings that rows have of their own. take(bytes) returns memory of the device.
  template <class Take>
  void lay_out(const backend::WorkspaceShape& shape, Take take) noexcept {
    embedding_dim_ = shape.columns[static_cast<std::size_t>(backend::Act::x)];
    embeddings_ = reinterpret_cast<float*>(take(shape.rows * embedding_dim_ * sizeof(float)));
  }

  // Begins a step: adds its rows' tables to the arena, and starts the copies of embeddings. All rows are present. `tables` must live until
  // the step ends.
  Status begin(const Device& device, StepArena& arena, const backend::StepTables& tables);

  // Make the wanted rows, or the rows of a selection, the present rows.
  void keep() noexcept;
  const RowLists::List& select(std::size_t selection) noexcept {
    count_ = selections_[selection].count;
    return selections_[selection];
  }

  // Returns the number of present rows.
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  [[nodiscard]] RowsNow now() const noexcept { return now_; }
  [[nodiscard]] const RowValues& values() const noexcept { return values_[static_cast<std::size_t>(now_)]; }
  [[nodiscard]] std::span<const KvSet> kv_sets() const noexcept { return std::span(kv_sets_).first(n_kv_sets_); }
  [[nodiscard]] const RopeTurns& turns(std::uint32_t rope) const noexcept { return turns_[rope]; }
  [[nodiscard]] std::span<const RopeTurns> turns() const noexcept { return turns_; }
  [[nodiscard]] const float* embeddings() const noexcept { return embeddings_; }
  [[nodiscard]] const std::uint32_t* wanted_on_device() const noexcept { return wanted_list_; }

  // The step in the host's memory.
  [[nodiscard]] std::span<const backend::RowTable> rows() const noexcept { return rows_; }
  [[nodiscard]] std::span<const std::uint32_t> every_row() const noexcept { return every_row_; }  // 0, 1, 2, ...
  [[nodiscard]] std::span<const std::uint32_t> wanted() const noexcept { return wanted_; }
  [[nodiscard]] std::span<const KvView> sequences() const noexcept { return sequences_; }
  // Returns whether the wanted rows are fewer than all rows.
  [[nodiscard]] bool drops_rows() const noexcept { return wanted_.size() != rows_.size(); }
  // Returns `sequence`, or kNoSequence if it belongs to another set.
  [[nodiscard]] std::uint32_t sequence_in(const KvSet& set, std::uint32_t sequence) const noexcept {
    return *sequences_[sequence].layout == *set.layout ? sequence : kNoSequence;
  }

 private:
  Status upload_turns(StepArena& arena, std::span<const backend::RopeTable> ropes);
  void find_kv_sets();
  Status upload_pages(StepArena& arena, KvSet& set);
  Status upload_copies(StepArena& arena, KvSet& set);
  Status upload_embeddings(const Device& device);
  Status upload_values(StepArena& arena, std::span<const std::uint32_t> rows, RowValues& values);
  void use(RowsNow rows) noexcept;

  float* embeddings_ = nullptr;  // [rows][embedding_dim_]: the embeddings that a step's rows have of their own, one after another
  std::uint64_t embedding_dim_ = 0;

  std::vector<backend::RowTable> rows_;
  std::span<const KvView> sequences_;
  std::span<const std::uint32_t> wanted_;       // StepTables::wanted
  const std::uint32_t* wanted_list_ = nullptr;  // the same list on the device
  RowLists selections_;                         // StepTables::selections on the device
  RowValues values_[kRowsNow];                  // by RowsNow
  RowsNow now_ = RowsNow::all;
  std::uint32_t count_ = 0;
  std::vector<std::uint32_t> every_row_;
  std::vector<std::uint32_t> embedding_places_;  // [rows]: index in embeddings_, or kNoRow
  std::uint32_t n_embeddings_ = 0;
  std::vector<KvSet> kv_sets_;  // the first n_kv_sets_ are in use
  std::size_t n_kv_sets_ = 0;
  std::vector<std::uint32_t> page_counts_;  // memory for upload_pages()
  std::vector<RopeTurns> turns_;            // [StepTables::ropes]
};

}  // namespace tessera::cuda
