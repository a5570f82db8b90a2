// The CUDA backend's attention, and the operations that write keys and values to their pages.
#include <algorithm>
#include <array>
#include <iterator>

#include "backend/rope_table.hpp"
#include "core/error.hpp"
#include "cuda/cuda_backend.hpp"
#include "cuda/kernels/move_tokens.hpp"

namespace tessera::cuda {

namespace {

// Estimates how many thread blocks of attention fit a multiprocessor's shared memory at once; at least 1. Assumes 163 KB, the most that one
// block may have on compute capability 8.0. Each block takes 1 KB more than it asks for, because CUDA reserves that.
std::uint32_t blocks_at_once(std::uint32_t head_class, std::uint32_t query_class) noexcept {
  constexpr std::uint32_t kShared = 163 * 1024;
  return std::max(1u, kShared / (attention_shared_bytes(head_class, query_class) + 1024));
}

std::size_t place_of(std::span<const std::uint32_t> classes, std::uint32_t of) noexcept {
  return static_cast<std::size_t>(std::find(classes.begin(), classes.end(), of) - classes.begin());
}

}  // namespace

Status CudaBackend::head_norm(const Vector& weight, float eps, std::uint32_t n_heads, Act x) {
  const Device::Scope scope(*device_);
  const Activation& at = written(x);
  return launch(kernels_.head_norm, {.x = head_blocks(n_rows_ * n_heads)}, kHeadThreads, 0,
                HeadNormArgs{.x = at.data,
                             .weight = vector_of(weight).data,
                             .eps = eps,
                             .rows = static_cast<std::uint32_t>(n_rows_),
                             .heads = n_heads,
                             .dim = static_cast<std::uint32_t>(at.columns / n_heads)});
}

Status CudaBackend::rope(std::uint32_t table, std::uint32_t n_heads, Act x) {
  if (turns_[table].pairs == 0) return {};
  const Device::Scope scope(*device_);
  const Activation& at = written(x);
  return launch(kernels_.rope, {.x = head_blocks(n_rows_ * n_heads)}, kHeadThreads, 0,
                RopeArgs{.x = at.data,
                         .turns = turns_[table],
                         .rows = static_cast<std::uint32_t>(n_rows_),
                         .heads = n_heads,
                         .dim = static_cast<std::uint32_t>(at.columns / n_heads)});
}

Status CudaBackend::append_kv(std::uint32_t layer, Act k, Act v) {
  const Device::Scope scope(*device_);
  for (const KvSet& set : std::span(kv_sets_).first(n_kv_sets_)) {
    const KvLayer at = kv_layer(*set.layout, layer);
    TESSERA_TRY_STATUS(launch(kernels_.kv[kv_index(at.dtype)].append, {.x = head_blocks(n_rows_ * 2 * at.kv_heads)},
                              kHeadThreads, 0,
                              AppendKvArgs{.layer = at,
                                           .tables = tables_of(set, layer),
                                           .k = act(k).data,
                                           .v = act(v).data,
                                           .rows = static_cast<std::uint32_t>(n_rows_)}));
    TESSERA_TRY_STATUS(append_copies(set, layer, k, v));
  }
  return {};
}

// Writes the keys and values of rows with branches to the branches' pages too.
Status CudaBackend::append_copies(const KvSet& set, std::uint32_t layer, Act k, Act v) {
  if (set.copies.count == 0) return {};
  const KvLayer at = kv_layer(*set.layout, layer);
  return launch(kernels_.kv[kv_index(at.dtype)].append, {.x = head_blocks(std::uint64_t{set.copies.count} * 2 * at.kv_heads)}, kHeadThreads, 0,
                AppendKvArgs{.layer = at,
                             .tables = tables_of_copies(set, layer),
                             .k = act(k).data,
                             .v = act(v).data,
                             .rows = set.copies.count,
                             .source_rows = set.copies.rows});
}

Status CudaBackend::rope_append(const backend::HeadShape& shape, Act q, Act k, Act v) {
  // The kernel norms every row's heads of q and k, rotates them, and appends keys and values. Other steps and other orders of these steps,
  // and rows whose pages have several layouts, are left to the plain operations.
  const bool is_plain = !shape.norms_together && !shape.norms_behind_rope && shape.v_norm == nullptr && !shape.queries_alone;
  if (n_kv_sets_ != 1 || !is_plain) return Backend::rope_append(shape, q, k, v);
  const Device::Scope scope(*device_);
  const KvSet& set = kv_sets_[0];
  const KvLayer at = kv_layer(*set.layout, shape.layer);
  TESSERA_TRY_STATUS(launch(kernels_.kv[kv_index(at.dtype)].rope_append,
                            {.x = head_blocks(n_rows_ * (shape.n_heads + 2 * at.kv_heads))}, kHeadThreads, 0,
                            RopeAppendArgs{.layer = at,
                                           .tables = tables_of(set, shape.layer),
                                           .q = written(q).data,
                                           .k = written(k).data,
                                           .v = act(v).data,
                                           .q_norm = shape.q_norm != nullptr ? vector_of(*shape.q_norm).data : nullptr,
                                           .k_norm = shape.k_norm != nullptr ? vector_of(*shape.k_norm).data : nullptr,
                                           .turns = shape.rope != kNoRope ? turns_[shape.rope] : RopeTurns{},
                                           .eps = shape.eps,
                                           .rows = static_cast<std::uint32_t>(n_rows_),
                                           .heads = shape.n_heads}));
  return append_copies(set, shape.layer, k, v);
}

Status CudaBackend::latent_append(const backend::LatentShape& shape, Act turned_q, Act latent_q, Act turned_k, Act latent, Act q) {
  const auto turned = static_cast<std::uint32_t>(act(turned_k).columns), width = static_cast<std::uint32_t>(act(latent).columns);
  written(q).columns = std::size_t{shape.n_heads} * (turned + width);
  if (n_rows_ == 0) return {};
  const Device::Scope scope(*device_);
  for (std::size_t i = 0; i < n_kv_sets_; ++i) {
    const KvLayer at = kv_layer(*kv_sets_[i].layout, shape.layer);
    const std::uint32_t heads = i == 0 ? shape.n_heads : 0;
    LatentAppendArgs args{.layer = at,
                          .tables = tables_of(kv_sets_[i], shape.layer),
                          .turned_q = written(turned_q).data,
                          .latent_q = act(latent_q).data,
                          .turned_k = written(turned_k).data,
                          .latents = written(latent).data,
                          .q = act(q).data,
                          .norm = vector_of(*shape.norm).data,
                          .turns = shape.rope != kNoRope ? turns_[shape.rope] : RopeTurns{},
                          .eps = shape.eps,
                          .rows = static_cast<std::uint32_t>(n_rows_),
                          .heads = heads,
                          .turned = turned,
                          .latent = width,
                          .is_ready = i == 0 ? 0u : 1u};
    const Kernel kernel = kernels_.kv[kv_index(at.dtype)].latent_append;
    TESSERA_TRY_STATUS(launch(kernel, {.x = head_blocks(n_rows_ * (heads + 1))}, kHeadThreads, 0, args));
    const KvSet::Copies& copies = kv_sets_[i].copies;
    if (copies.count == 0) continue;
    args.tables = tables_of_copies(kv_sets_[i], shape.layer);
    args.rows = copies.count;
    args.heads = 0;
    args.is_ready = 1;
    args.source_rows = copies.rows;
    TESSERA_TRY_STATUS(launch(kernel, {.x = head_blocks(copies.count)}, kHeadThreads, 0, args));
  }
  return {};
}

AttentionHeads CudaBackend::heads_of(const backend::AttentionShape& shape, const KvLayer& layer) noexcept {
  return {.kv_heads = layer.kv_heads,
          .group = shape.n_heads / layer.kv_heads,
          .value_dim = layer.value_dim,
          .window = shape.window,
          .globals = shape.globals,
          .ahead = shape.ahead};
}

const CudaBackend::PlannedAttention* CudaBackend::planned(const AttentionHeads& heads, std::uint32_t key_dim,
                                                          std::size_t kv_set) const noexcept {
  const auto plans = std::span(attentions_).first(n_attentions_);
  const auto same = [&](const PlannedAttention& at) {
    return at.heads == heads && at.key_dim == key_dim && at.kv_set == kv_set;
  };
  const auto at = std::ranges::find_if(plans, same);
  return at != plans.end() ? &*at : nullptr;
}

// Plans the attention of `rows`, and adds the tiles to the step's tables.
Status CudaBackend::plan_of_rows(std::span<const std::uint32_t> rows, std::span<const KvView> sequences, RowsNow now,
                                 PlannedAttention& at) {
  planned_sequences_.clear();
  planned_positions_.clear();
  planned_ends_.clear();
  for (const std::uint32_t row : rows) {
    planned_sequences_.push_back(sequence_in(kv_sets_[at.kv_set], sequences, rows_[row].sequence));
    planned_positions_.push_back(rows_[row].position);
    planned_ends_.push_back(rows_[row].end);
  }
  const std::uint32_t head_class = cuda::head_class(at.key_dim, at.heads.value_dim);
  const AttentionLimits limits{.concurrent_blocks = static_cast<std::uint32_t>(device_->multiprocessors()) *
                                                    blocks_at_once(head_class, kQueryClasses[0]),
                               .partial_floats = partial_floats_};
  PlannedAttention::OfRows& of = at.of[static_cast<std::size_t>(now)];
  plan_attention({.sequences = planned_sequences_, .positions = planned_positions_, .ends = planned_ends_}, at.heads, limits, of.plan);
  for (std::size_t i = 0; i < std::size(kQueryClasses); ++i) {
    TESSERA_TRY(of.tiles[i], arena_.add<AttentionTile>(of.plan.launches[i].tiles));
  }
  return {};
}

// Plans each attention of the step twice: for all rows, and for the wanted rows, because the layer that calls
// keep_rows() may attend after it. Exception: if all rows are wanted, the one plan serves both.
Status CudaBackend::plan_attentions(std::span<const backend::AttentionShape> shapes,
                                    std::span<const KvView> sequences) {
  n_attentions_ = 0;
  for (const backend::AttentionShape& shape : shapes) {
    for (std::size_t set = 0; set < n_kv_sets_; ++set) {
      const KvLayer layer = kv_layer(*kv_sets_[set].layout, shape.layer);
      const AttentionHeads heads = heads_of(shape, layer);
      if (planned(heads, layer.key_dim, set) != nullptr) continue;
      if (n_attentions_ == attentions_.size()) attentions_.emplace_back();
      PlannedAttention& at = attentions_[n_attentions_];
      at.heads = heads;
      at.key_dim = layer.key_dim;
      at.kv_set = set;
      TESSERA_TRY_STATUS(plan_of_rows(every_row_, sequences, RowsNow::all, at));
      if (wanted_.size() != rows_.size()) TESSERA_TRY_STATUS(plan_of_rows(wanted_, sequences, RowsNow::wanted, at));
      ++n_attentions_;
    }
  }
  return {};
}

Status CudaBackend::attention(const backend::AttentionShape& shape, Act q, Act out) {
  const Device::Scope scope(*device_);
  const float* sinks = shape.sinks != nullptr ? vector_of(*shape.sinks).data : nullptr;
  const RowsNow rows_planned = wanted_.size() != rows_.size() ? now_ : RowsNow::all;
  for (std::size_t i = 0; i < n_kv_sets_; ++i) {
    const KvTables& tables = tables_of(kv_sets_[i], shape.layer);
    const KvLayer at = kv_layer(*kv_sets_[i].layout, shape.layer);
    const AttentionHeads heads = heads_of(shape, at);
    written(out).columns = std::size_t{shape.n_heads} * at.value_dim;
    const PlannedAttention* const plans = planned(heads, at.key_dim, i);
    if (plans == nullptr)
      return detail::make_error(ErrorCode::internal, "attention of layer {} is not among those of begin()",
                                shape.layer);
    if (shape.counts_votes && votes_.counts()) {
      TESSERA_TRY_STATUS(votes_.count(*device_, kernels_.kv[kv_index(at.dtype)].count_votes,
                                      VoteArgs{.layer = at,
                                               .tables = tables,
                                               .voters = nullptr,
                                               .q = act(q).data,
                                               .sinks = sinks,
                                               .scores = nullptr,
                                               .sums = nullptr,
                                               .window = shape.window,
                                               .globals = shape.globals,
                                               .heads = shape.n_heads,
                                               .group = heads.group,
                                               .stride = 0,
                                               .scale = shape.scale,
                                               .softcap = shape.softcap,
                                               .units = 0.0f,
                                               .padding = 0}));
    }
    const PlannedAttention::OfRows& of = plans->of[static_cast<std::size_t>(rows_planned)];
    const std::uint32_t head_class = cuda::head_class(at.key_dim, at.value_dim);
    const auto& kernels = kernels_.kv[kv_index(at.dtype)].attend[place_of(kHeadClasses, head_class)];
    for (std::size_t c = 0; c < std::size(kQueryClasses); ++c) {
      const AttentionLaunch& run = of.plan.launches[c];
      if (run.tiles.empty()) continue;
      const auto tiles = static_cast<std::uint32_t>(run.tiles.size());
      TESSERA_TRY_STATUS(launch(kernels[c], {.x = tiles, .y = at.kv_heads, .z = run.splits}, kAttentionThreads,
                                attention_shared_bytes(head_class, kQueryClasses[c]),
                                AttentionArgs{.layer = at,
                                              .tables = tables,
                                              .tiles = of.tiles[c],
                                              .q = act(q).data,
                                              .out = act(out).data,
                                              .partials = partials_,
                                              .window = heads.window,
                                              .group = heads.group,
                                              .scale = shape.scale,
                                              .sinks = sinks,
                                              .softcap = shape.softcap,
                                              .globals = heads.globals,
                                              .ahead = heads.ahead}));
      if (run.splits == 1) continue;
      TESSERA_TRY_STATUS(launch(kernels_.attention_merge, {.x = tiles, .y = at.kv_heads, .z = kQueryClasses[c]},
                                kAttentionThreads, 0,
                                AttentionMergeArgs{.tables = tables,
                                                   .tiles = of.tiles[c],
                                                   .out = act(out).data,
                                                   .partials = partials_,
                                                   .window = heads.window,
                                                   .group = heads.group,
                                                   .kv_heads = at.kv_heads,
                                                   .value_dim = at.value_dim,
                                                   .rotates = kv::rotates(at.dtype, kv::KeyOrValue::value) ? 1u : 0u,
                                                   .sinks = sinks,
                                                   .ahead = heads.ahead}));
    }
  }
  return {};
}

Status CudaBackend::move_tokens(const KvView& kv, const backend::KvMove& move,
                                std::span<const backend::RopeTable> ropes) {
  const Device::Scope scope(*device_);
  TESSERA_TRY_STATUS(scope.status());
  arena_.reset();
  const KvLayout& layout = *kv.layout;
  const std::size_t n_groups = layout.groups.size(), n_pages = kv.page_of(move.from + move.count - 1) + 1;
  TESSERA_TRY(const auto pages, arena_.add<std::uint64_t>(n_groups * n_pages));
  for (std::size_t i = 0; i < n_groups * n_pages; ++i) {
    pages.host[i] = reinterpret_cast<std::uintptr_t>(kv.pages[i / n_pages][i % n_pages]);
  }
  TESSERA_TRY(const auto layers, arena_.add<KvLayer>(layout.layers.size()));
  TESSERA_TRY(const auto turns, arena_.add<RopeTurns>(layout.layers.size()));
  TESSERA_TRY(const auto first_page, arena_.add<std::uint32_t>(layout.layers.size()));
  TESSERA_TRY(const auto skipped, arena_.add<std::uint64_t>(layout.layers.size()));
  // One launch moves all layers of a KV type. OfType has the launch's numbers: the most KV heads of a layer, bytes of shared memory, and
  // [first, end): the indices of the type's layers in the lists above (layers, turns, first_page, skipped).
  struct OfType {
    std::uint32_t heads = 0, shared = 0, first = 0, end = 0;
  };
  std::array<OfType, kKvTypes.size()> of_types;
  std::uint32_t n_places = 0;
  for (std::size_t type = 0; type < of_types.size(); ++type) {
    OfType& of = of_types[type];
    of.first = n_places;
    for (std::size_t i = 0; i < layout.layers.size(); ++i) {
      if (kv_index(layout.layer(i).dtype) != type || !layout.is_first_at_its_place(i)) continue;
      const KvLayer& layer = layers.host[n_places] = kv_layer(layout, i);
      first_page.host[n_places] = static_cast<std::uint32_t>(layout.layers[i].group * n_pages);
      skipped.host[n_places] = move.skipped(layout.layers[i].group);
      of.heads = std::max(of.heads, layer.kv_heads);
      of.shared = std::max(of.shared, move_shared_bytes(layer));
      const std::size_t pairs = ropes[i].frequencies.size();
      TESSERA_TRY(const auto table, arena_.add<float>(2 * pairs));
      backend::turn_back(ropes[i], move.from - move.to, table.span());
      turns.host[n_places++] = {.table = table.device, .pairs = static_cast<std::uint32_t>(pairs), .kind = ropes[i].pairs};
    }
    of.end = n_places;
  }
  Status status = arena_.flush();
  for (std::size_t type = 0; type < of_types.size() && status; ++type) {
    const OfType& of = of_types[type];
    if (of.first == of.end) continue;
    status = launch(kernels_.kv[type].move, {.x = of.heads, .y = 2, .z = of.end - of.first}, kMoveThreads, of.shared,
                    MoveTokensArgs{.layers = layers.device + of.first,
                                   .turns = turns.device + of.first,
                                   .pages = pages.device,
                                   .first_page = first_page.device + of.first,
                                   .skipped = skipped.device + of.first,
                                   .from = move.from,
                                   .to = move.to,
                                   .count = move.count});
  }
  // Device::wait() waits again if its first wait fails. The second result counts: an error that is gone by then came from an earlier
  // call, not from this kernel.
  const Status done = device_->check(device_->wait(device_->stream()), "move tokens");
  return status ? done : status;
}

}  // namespace tessera::cuda
