#include "cuda/step_rows.hpp"

#include <algorithm>
#include <numeric>

#include "backend/rope_table.hpp"
#include "core/error.hpp"
#include "cuda/kernels/elementwise.hpp"

namespace tessera::cuda {

namespace {

// Uploads a list with one entry for each row of `rows`: of_rows(row), converted to T. Returns the list's address on the device.
template <class T, class Of>
Result<const T*> upload_of(StepArena& arena, std::span<const std::uint32_t> rows, const Of& of_rows) {
  TESSERA_TRY(const auto list, arena.add<T>(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) list.host[i] = static_cast<T>(of_rows(rows[i]));
  return list.device;
}

}  // namespace

Status StepRows::begin(const Device& device, StepArena& arena, const backend::StepTables& tables) {
  rows_.assign(tables.rows.begin(), tables.rows.end());
  count_ = static_cast<std::uint32_t>(rows_.size());
  sequences_ = tables.sequences;
  wanted_ = tables.wanted;
  TESSERA_TRY_STATUS(upload_turns(arena, tables.ropes));
  find_kv_sets();
  for (KvSet& set : std::span(kv_sets_).first(n_kv_sets_)) {
    TESSERA_TRY_STATUS(upload_pages(arena, set));
    TESSERA_TRY_STATUS(upload_copies(arena, set));
  }
  TESSERA_TRY(wanted_list_, arena.add<std::uint32_t>(wanted_));
  TESSERA_TRY_STATUS(selections_.set(arena, tables.selections, [](std::span<const std::uint32_t> rows) { return rows; }));
  // Uploads the lists of all rows and of the wanted rows now, so that keep() needs no upload.
  every_row_.resize(count_);
  std::iota(every_row_.begin(), every_row_.end(), 0u);
  TESSERA_TRY_STATUS(upload_embeddings(device));
  TESSERA_TRY_STATUS(upload_values(arena, every_row_, values_[static_cast<std::size_t>(RowsNow::all)]));
  TESSERA_TRY_STATUS(upload_values(arena, wanted_, values_[static_cast<std::size_t>(RowsNow::wanted)]));
  use(RowsNow::all);
  return {};
}

void StepRows::keep() noexcept {
  count_ = static_cast<std::uint32_t>(wanted_.size());
  use(RowsNow::wanted);
}

Status StepRows::upload_turns(StepArena& arena, std::span<const backend::RopeTable> ropes) {
  turns_.clear();
  for (const backend::RopeTable& rope : ropes) {
    const std::size_t pairs = rope.frequencies.size();
    TESSERA_TRY(const auto table, arena.add<float>(rows_.size() * 2 * pairs));
    for (std::size_t row = 0; row < rows_.size(); ++row) backend::rope_table(rope, rows_[row].position, table.host + row * 2 * pairs);
    turns_.push_back({.table = table.device, .pairs = static_cast<std::uint32_t>(pairs), .kind = rope.pairs});
  }
  return {};
}

// Sequences with the same KV layout form a set. Nearly always there is only one set.
void StepRows::find_kv_sets() {
  n_kv_sets_ = 0;
  for (const KvView& kv : sequences_) {
    if (std::ranges::any_of(kv_sets(), [&](const KvSet& set) { return *set.layout == *kv.layout; })) continue;
    if (n_kv_sets_ == kv_sets_.size()) kv_sets_.emplace_back();
    kv_sets_[n_kv_sets_++].layout = kv.layout;
  }
}

// Uploads, for each group of layers, the addresses of the pages of all sequences whose KV layout is that of `set`. Sequences with another
// layout get no pages in this table. Only pages up to the last row's position are uploaded, since no later pages exist yet.
Status StepRows::upload_pages(StepArena& arena, KvSet& set) {
  page_counts_.assign(sequences_.size(), 0);
  for (const backend::RowTable& row : rows_) {
    const KvView& kv = sequences_[row.sequence];
    if (*kv.layout != *set.layout) continue;
    const auto reach = [&](std::uint32_t sequence) { page_counts_[sequence] = std::max(page_counts_[sequence], kv.page_of(row.position) + 1); };
    reach(row.sequence);
    for (std::uint32_t i = 0; i < row.n_also; ++i) reach(row.also + i);
  }
  TESSERA_TRY(const auto first, arena.add<std::uint32_t>(sequences_.size()));
  std::uint32_t n = 0;
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    first.host[i] = n;
    n += page_counts_[i];
  }
  set.tables.resize(set.layout->groups.size());
  for (std::size_t group = 0; group < set.tables.size(); ++group) {
    if (set.layout->groups[group].is_recurrent()) continue;
    TESSERA_TRY(const auto pages, arena.add<std::uint64_t>(n));
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      for (std::uint32_t page = 0; page < page_counts_[i]; ++page) {
        pages.host[first.host[i] + page] = reinterpret_cast<std::uintptr_t>(sequences_[i].pages[group][page]);
      }
    }
    set.tables[group].pages = pages.device;
    set.tables[group].first_page = first.device;
  }
  return {};
}

Status StepRows::upload_copies(StepArena& arena, KvSet& set) {
  set.copies = {};
  std::size_t n = 0;
  for (const backend::RowTable& row : rows_) n += sequence_in(set, row.sequence) != kNoSequence ? row.n_also : 0;
  if (n == 0) return {};
  TESSERA_TRY(const auto rows, arena.add<std::uint32_t>(n));
  TESSERA_TRY(const auto copies, arena.add<std::uint32_t>(n));
  TESSERA_TRY(const auto positions, arena.add<std::uint64_t>(n));
  std::uint32_t at = 0;
  for (std::uint32_t row = 0; row < rows_.size(); ++row) {
    if (sequence_in(set, rows_[row].sequence) == kNoSequence) continue;
    for (std::uint32_t i = 0; i < rows_[row].n_also; ++i, ++at) {
      rows.host[at] = row;
      copies.host[at] = rows_[row].also + i;
      positions.host[at] = rows_[row].position;
    }
  }
  set.copies = {.rows = rows.device, .sequences = copies.device, .positions = positions.device, .count = at};
  return {};
}

// Copies the embeddings that rows have of their own to the device, one after another. CudaBackend::embed() puts them in their rows.
Status StepRows::upload_embeddings(const Device& device) {
  embedding_places_.assign(rows_.size(), kNoRow);
  n_embeddings_ = 0;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    if (rows_[row].embedding == nullptr) continue;
    TESSERA_TRY_STATUS(device.to_device(reinterpret_cast<CUdeviceptr>(embeddings_ + n_embeddings_ * embedding_dim_), rows_[row].embedding,
                                        embedding_dim_ * sizeof(float)));
    embedding_places_[row] = n_embeddings_++;
  }
  return {};
}

Status StepRows::upload_values(StepArena& arena, std::span<const std::uint32_t> rows, RowValues& values) {
  const auto position = [&](std::uint32_t row) { return rows_[row].position; };
  TESSERA_TRY(values.positions, upload_of<std::uint64_t>(arena, rows, position));
  TESSERA_TRY(values.ends, upload_of<std::uint64_t>(arena, rows, [&](std::uint32_t row) { return rows_[row].end; }));
  TESSERA_TRY(values.places, upload_of<std::uint32_t>(arena, rows, position));
  TESSERA_TRY(values.tokens, upload_of<std::uint32_t>(arena, rows, [&](std::uint32_t row) {
                return rows_[row].embedding != nullptr ? kNoRow : static_cast<std::uint32_t>(rows_[row].token);
              }));
  TESSERA_TRY(values.gathered, upload_of<std::uint32_t>(arena, rows, [&](std::uint32_t row) { return rows_[row].token; }));
  TESSERA_TRY(values.segments, upload_of<std::uint32_t>(arena, rows, [&](std::uint32_t row) { return rows_[row].segment; }));
  values.embeddings = nullptr;
  if (n_embeddings_ != 0) {
    TESSERA_TRY(values.embeddings, upload_of<std::uint32_t>(arena, rows, [&](std::uint32_t row) { return embedding_places_[row]; }));
  }
  values.sequences.resize(n_kv_sets_);
  for (std::size_t set = 0; set < n_kv_sets_; ++set) {
    TESSERA_TRY(values.sequences[set], upload_of<std::uint32_t>(arena, rows, [&](std::uint32_t row) {
                  return sequence_in(kv_sets_[set], rows_[row].sequence);
                }));
  }
  return {};
}

// Makes the page tables name all rows or the wanted rows.
void StepRows::use(RowsNow rows) noexcept {
  now_ = rows;
  for (std::size_t set = 0; set < n_kv_sets_; ++set) {
    for (KvTables& tables : kv_sets_[set].tables) {
      tables.row_position = values().positions;
      tables.row_end = values().ends;
      tables.row_sequence = values().sequences[set];
    }
  }
}

}  // namespace tessera::cuda
