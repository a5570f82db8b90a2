// The CUDA backend's steps: the uploads of a step, and the operations that are neither products nor attention.
#include "cuda/cuda_backend.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "backend/rope_table.hpp"
#include "core/error.hpp"
#include "cuda/kernels/elementwise.hpp"
#include "cuda/kernels/products/unpack.hpp"

namespace tessera::cuda {

Status CudaBackend::begin(const backend::StepTables& tables) {
  if (tables.rows.size() > max_rows_) {
    return detail::make_error(ErrorCode::internal, "a step of {} rows in a workspace for {}", tables.rows.size(),
                              max_rows_);
  }
  const Device::Scope scope(*device_);
  TESSERA_TRY_STATUS(scope.status());
  if (under_way_) TESSERA_TRY_STATUS(device_->synchronize());
  under_way_ = true;
  arena_.reset();
  rows_.assign(tables.rows.begin(), tables.rows.end());
  n_rows_ = rows_.size();
  wanted_ = tables.wanted;
  half_act_ = Act::count;

  turns_.clear();
  for (const backend::RopeTable& rope : tables.ropes) {
    const std::size_t pairs = rope.frequencies.size();
    TESSERA_TRY(const auto table, arena_.add<float>(n_rows_ * 2 * pairs));
    for (std::size_t row = 0; row < n_rows_; ++row) {
      backend::rope_table(rope, rows_[row].position, table.host + row * 2 * pairs);
    }
    turns_.push_back({.table = table.device, .pairs = static_cast<std::uint32_t>(pairs), .kind = rope.pairs});
  }

  // Sequences with the same KV layout form a set. Nearly always there is only one set.
  n_kv_sets_ = 0;
  for (const KvView& kv : tables.sequences) {
    const auto same = [&](const KvSet& set) { return *set.layout == *kv.layout; };
    const auto known = kv_sets_.begin() + static_cast<std::ptrdiff_t>(n_kv_sets_);
    if (std::find_if(kv_sets_.begin(), known, same) != known) continue;
    if (n_kv_sets_ == kv_sets_.size()) kv_sets_.emplace_back();
    kv_sets_[n_kv_sets_++].layout = kv.layout;
  }
  recurrent_.reset();
  for (std::size_t i = 0; i < n_kv_sets_; ++i) {
    TESSERA_TRY_STATUS(upload_pages(kv_sets_[i], tables.sequences));
    TESSERA_TRY_STATUS(upload_copies(kv_sets_[i], tables.sequences));
    TESSERA_TRY_STATUS(recurrent_.add(arena_, *kv_sets_[i].layout, rows_, tables.sequences));
  }
  TESSERA_TRY_STATUS(votes_.begin(*device_, arena_, tables.votes, rows_));
  TESSERA_TRY(wanted_list_, arena_.add<std::uint32_t>(tables.wanted));
  TESSERA_TRY_STATUS(selections_.set(arena_, tables.selections, [](std::span<const std::uint32_t> rows) { return rows; }));
  TESSERA_TRY_STATUS(low_rank_.begin(device_, arena_, tables.changes));
  TESSERA_TRY(draws_, arena_.add<backend::SampleRow>(tables.draws));
  TESSERA_TRY(drawn_, arena_.add<SampleResult>(tables.draws.size()));
  // Uploads the lists of all rows and of the wanted rows now, so that keep_rows() needs no upload.
  every_row_.resize(n_rows_);
  std::iota(every_row_.begin(), every_row_.end(), 0u);
  TESSERA_TRY_STATUS(upload_embeddings());
  TESSERA_TRY_STATUS(upload_lists(every_row_, tables.sequences, row_lists_[static_cast<std::size_t>(RowsNow::all)]));
  TESSERA_TRY_STATUS(upload_lists(wanted_, tables.sequences, row_lists_[static_cast<std::size_t>(RowsNow::wanted)]));
  TESSERA_TRY_STATUS(plan_attentions(tables.attentions, tables.sequences));
  use_lists(RowsNow::all);
  return arena_.flush();
}

// Uploads the addresses of the pages of a set's sequences, for each group of layers. Sequences of other sets get no pages. Only pages up to
// the last row's position are uploaded, since no later pages exist yet.
Status CudaBackend::upload_pages(KvSet& set, std::span<const KvView> sequences) {
  page_counts_.assign(sequences.size(), 0);
  for (const backend::RowTable& row : rows_) {
    const KvView& kv = sequences[row.sequence];
    if (*kv.layout != *set.layout) continue;
    const auto reach = [&](std::uint32_t sequence) { page_counts_[sequence] = std::max(page_counts_[sequence], kv.page_of(row.position) + 1); };
    reach(row.sequence);
    for (std::uint32_t i = 0; i < row.n_also; ++i) reach(row.also + i);
  }
  TESSERA_TRY(const auto first, arena_.add<std::uint32_t>(sequences.size()));
  std::uint32_t n = 0;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    first.host[i] = n;
    n += page_counts_[i];
  }
  set.tables.resize(set.layout->groups.size());
  for (std::size_t group = 0; group < set.tables.size(); ++group) {
    if (set.layout->groups[group].is_recurrent()) continue;
    TESSERA_TRY(const auto pages, arena_.add<std::uint64_t>(n));
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      for (std::uint32_t page = 0; page < page_counts_[i]; ++page) {
        pages.host[first.host[i] + page] = reinterpret_cast<std::uintptr_t>(sequences[i].pages[group][page]);
      }
    }
    set.tables[group].pages = pages.device;
    set.tables[group].first_page = first.device;
  }
  return {};
}

Status CudaBackend::upload_copies(KvSet& set, std::span<const KvView> sequences) {
  set.copies = {};
  std::size_t n = 0;
  for (const backend::RowTable& row : rows_) n += sequence_in(set, sequences, row.sequence) != kNoSequence ? row.n_also : 0;
  if (n == 0) return {};
  TESSERA_TRY(const auto rows, arena_.add<std::uint32_t>(n));
  TESSERA_TRY(const auto copies, arena_.add<std::uint32_t>(n));
  TESSERA_TRY(const auto positions, arena_.add<std::uint64_t>(n));
  std::uint32_t at = 0;
  for (std::uint32_t row = 0; row < rows_.size(); ++row) {
    if (sequence_in(set, sequences, rows_[row].sequence) == kNoSequence) continue;
    for (std::uint32_t i = 0; i < rows_[row].n_also; ++i, ++at) {
      rows.host[at] = row;
      copies.host[at] = rows_[row].also + i;
      positions.host[at] = rows_[row].position;
    }
  }
  set.copies = {.rows = rows.device, .sequences = copies.device, .positions = positions.device, .count = at};
  return {};
}

std::uint32_t CudaBackend::sequence_in(const KvSet& set, std::span<const KvView> sequences,
                                       std::uint32_t sequence) noexcept {
  return *sequences[sequence].layout == *set.layout ? sequence : kNoSequence;
}

// Copies the embeddings that rows have of their own to the device, one after another. embed() puts them in their rows.
Status CudaBackend::upload_embeddings() {
  embedding_places_.assign(n_rows_, kNoRow);
  n_embeddings_ = 0;
  for (std::size_t row = 0; row < n_rows_; ++row) {
    if (rows_[row].embedding == nullptr) continue;
    TESSERA_TRY_STATUS(device_->to_device(reinterpret_cast<CUdeviceptr>(embeddings_ + n_embeddings_ * embedding_dim_),
                                          rows_[row].embedding, embedding_dim_ * sizeof(float)));
    embedding_places_[row] = n_embeddings_++;
  }
  return {};
}

// Uploads a list that has of_rows(row), converted to T, for each of `rows`. Returns the list's address on the device.
template <class T, class Of>
Result<const T*> CudaBackend::upload_of(std::span<const std::uint32_t> rows, const Of& of_rows) {
  TESSERA_TRY(const auto list, arena_.add<T>(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) list.host[i] = static_cast<T>(of_rows(rows[i]));
  return list.device;
}

Status CudaBackend::upload_lists(std::span<const std::uint32_t> rows, std::span<const KvView> sequences,
                                 RowValues& lists) {
  const auto position = [&](std::uint32_t row) { return rows_[row].position; };
  TESSERA_TRY(lists.positions, upload_of<std::uint64_t>(rows, position));
  TESSERA_TRY(lists.ends, upload_of<std::uint64_t>(rows, [&](std::uint32_t row) { return rows_[row].end; }));
  TESSERA_TRY(lists.places, upload_of<std::uint32_t>(rows, position));
  TESSERA_TRY(lists.tokens, upload_of<std::uint32_t>(rows, [&](std::uint32_t row) {
                return rows_[row].embedding != nullptr ? kNoRow : static_cast<std::uint32_t>(rows_[row].token);
              }));
  TESSERA_TRY(lists.gathered, upload_of<std::uint32_t>(rows, [&](std::uint32_t row) { return rows_[row].token; }));
  TESSERA_TRY(lists.segments, upload_of<std::uint32_t>(rows, [&](std::uint32_t row) { return rows_[row].segment; }));
  lists.embeddings = nullptr;
  if (n_embeddings_ != 0) {
    TESSERA_TRY(lists.embeddings,
                upload_of<std::uint32_t>(rows, [&](std::uint32_t row) { return embedding_places_[row]; }));
  }
  lists.sequences.resize(n_kv_sets_);
  for (std::size_t set = 0; set < n_kv_sets_; ++set) {
    TESSERA_TRY(lists.sequences[set], upload_of<std::uint32_t>(rows, [&](std::uint32_t row) {
                  return sequence_in(kv_sets_[set], sequences, rows_[row].sequence);
                }));
  }
  return {};
}

// Makes the following operations work on all rows or on the wanted rows.
void CudaBackend::use_lists(RowsNow rows) {
  now_ = rows;
  half_act_ = Act::count;  // the rows in half_rows_ were those of the old lists, so they are no longer valid
  for (std::size_t set = 0; set < n_kv_sets_; ++set) {
    for (KvTables& tables : kv_sets_[set].tables) {
      tables.row_position = lists().positions;
      tables.row_end = lists().ends;
      tables.row_sequence = lists().sequences[set];
    }
  }
}

Status CudaBackend::end() {
  const Device::Scope scope(*device_);
  under_way_ = false;
  const Status fetched = votes_.fetch(*device_);
  TESSERA_TRY_STATUS(device_->synchronize());
  if (fetched) votes_.add();
  return fetched;
}

Status CudaBackend::gather_rows_of(const DeviceMatrix& table, const std::uint32_t* indices, Activation& out, UnpackStore store,
                                   float scale) {
  return launch(kernels_.forms[static_cast<std::size_t>(table.form)].unpack_rows, row_grid(), kUnpackThreads, 0,
                UnpackRowsArgs{.table = table,
                               .indices = indices,
                               .out = out.data,
                               .scale = scale,
                               .out_stride = static_cast<std::uint32_t>(out.columns),
                               .store = store});
}

Status CudaBackend::embed(const Matrix& table, float scale, Act x) {
  const Device::Scope scope(*device_);
  Activation& out = written(x);
  out.columns = matrix_of(table).inputs;
  if (lists().embeddings != nullptr) {
    TESSERA_TRY_STATUS(launch(kernels_.gather_rows, row_grid(), kRowThreads, 0,
                              GatherArgs{.rows = lists().embeddings,
                                         .in = embeddings_,
                                         .out = out.data,
                                         .n_rows = static_cast<std::uint32_t>(n_rows_),
                                         .columns = static_cast<std::uint32_t>(out.columns)}));
  }
  return gather_rows_of(matrix_of(table), lists().tokens, out, UnpackStore::set, scale);
}

Status CudaBackend::add_positions(const Matrix& table, Act, Act x) {
  const Device::Scope scope(*device_);
  return gather_rows_of(matrix_of(table), lists().places, written(x), UnpackStore::add, 1.0f);
}

Status CudaBackend::norm(const backend::Norm& norm, Act in, Act out) {
  const Device::Scope scope(*device_);
  const Activation& from = act(in);
  Activation& to = written(out);
  to.columns = from.columns;
  return launch(norm.kind == NormKind::rms ? kernels_.rms_norm : kernels_.layer_norm, row_grid(), kRowThreads, 0,
                NormArgs{.in = from.data,
                         .weight = vector_of(*norm.weight).data,
                         .bias = norm.bias != nullptr ? vector_of(*norm.bias).data : nullptr,
                         .out = to.data,
                         .columns = static_cast<std::uint32_t>(to.columns),
                         .eps = norm.eps});
}

Status CudaBackend::add_bias(const Vector& bias, Act x) {
  const Device::Scope scope(*device_);
  const Activation& at = written(x);
  return launch(
      kernels_.add_rows, row_grid(), kRowThreads, 0,
      AddArgs{
          .y = vector_of(bias).data, .x = at.data, .columns = static_cast<std::uint32_t>(at.columns), .y_stride = 0});
}

Status CudaBackend::add(Act y, Act x) {
  const Device::Scope scope(*device_);
  const Activation& at = written(x);
  const auto columns = static_cast<std::uint32_t>(at.columns);
  return launch(kernels_.add_rows, row_grid(), kRowThreads, 0,
                AddArgs{.y = act(y).data, .x = at.data, .columns = columns, .y_stride = columns});
}

Status CudaBackend::scale(float factor, Act x) {
  const Device::Scope scope(*device_);
  const Activation& at = written(x);
  return launch(kernels_.scale_rows, row_grid(), kRowThreads, 0,
                ScaleArgs{.x = at.data, .columns = static_cast<std::uint32_t>(at.columns), .factor = factor});
}

Status CudaBackend::activate(ActivationKind kind, Act x) {
  const Device::Scope scope(*device_);
  const Activation& at = written(x);
  return launch(kernels_.activate[static_cast<std::size_t>(kind)], row_grid(), kRowThreads, 0,
                ActivateArgs{.in = at.data, .out = at.data, .columns = static_cast<std::uint32_t>(at.columns)});
}

Status CudaBackend::activate_gated(ActivationKind kind, Act gate, Act up) {
  const Device::Scope scope(*device_);
  const Activation& at = written(up);
  return launch(kernels_.activate_gated[static_cast<std::size_t>(kind)], row_grid(), kRowThreads, 0,
                ActivateArgs{.in = act(gate).data, .out = at.data, .columns = static_cast<std::uint32_t>(at.columns)});
}

Status CudaBackend::select_rows(std::size_t selection, Act in, Act out) {
  const Device::Scope scope(*device_);
  const Activation& from = act(in);
  Activation& to = written(out);
  to.columns = from.columns;
  const RowLists::List& selected = selections_[selection];
  n_rows_ = selected.count;
  return launch(kernels_.gather_rows, row_grid(), kRowThreads, 0,
                GatherArgs{.rows = selected.rows,
                           .in = from.data,
                           .out = to.data,
                           .n_rows = selected.count,
                           .columns = static_cast<std::uint32_t>(to.columns)});
}

Status CudaBackend::keep_rows(std::span<const Act> acts) {
  const Device::Scope scope(*device_);
  n_rows_ = wanted_.size();
  votes_.stop();
  use_lists(RowsNow::wanted);
  const auto compact = [&](float* data, std::size_t columns) {
    return launch(kernels_.compact_rows, {.x = static_cast<std::uint32_t>((columns + kRowThreads - 1) / kRowThreads)},
                  kRowThreads, 0,
                  GatherArgs{.rows = wanted_list_,
                             .in = data,
                             .out = data,
                             .n_rows = static_cast<std::uint32_t>(n_rows_),
                             .columns = static_cast<std::uint32_t>(columns)});
  };
  for (const Act id : acts) TESSERA_TRY_STATUS(compact(act(id).data, act(id).columns));
  for (const RopeTurns& turns : turns_) {
    // Writing to the arena's memory on the device is allowed here: its tables have been uploaded already.
    TESSERA_TRY_STATUS(compact(const_cast<float*>(turns.table), 2 * std::size_t{turns.pairs}));
  }
  return {};
}

Status CudaBackend::read(Act x, std::uint32_t row, std::span<float> out) {
  const Device::Scope scope(*device_);
  const Activation& at = act(x);
  TESSERA_TRY_STATUS(device_->to_host(out.data(), reinterpret_cast<CUdeviceptr>(at.data + row * at.columns),
                                      std::min(out.size(), at.columns) * sizeof(float)));
  return device_->synchronize();
}

}  // namespace tessera::cuda
