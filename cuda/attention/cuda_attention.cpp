// The CUDA backend's attention, and the operations that write keys and values to their pages.
#include <algorithm>
#include <array>

#include "backend/rope_table.hpp"
#include "core/error.hpp"
#include "cuda/cuda_backend.hpp"
#include "cuda/kernels/move_tokens.hpp"

namespace tessera::cuda {

Status CudaBackend::head_norm(const Vector& weight, float eps, std::uint32_t n_heads, Act x) {
  const Device::Scope scope(*device_);
  const Activation& at = written(x);
  return launch(kernels_.head_norm, {.x = head_blocks(std::uint64_t{rows_.count()} * n_heads)}, kHeadThreads, 0,
                HeadNormArgs{.x = at.data,
                             .weight = vector_of(weight).data,
                             .eps = eps,
                             .rows = rows_.count(),
                             .heads = n_heads,
                             .dim = static_cast<std::uint32_t>(at.columns / n_heads)});
}

Status CudaBackend::rope(std::uint32_t table, std::uint32_t n_heads, Act x) {
  if (rows_.turns(table).pairs == 0) return {};
  const Device::Scope scope(*device_);
  const Activation& at = written(x);
  return launch(kernels_.rope, {.x = head_blocks(std::uint64_t{rows_.count()} * n_heads)}, kHeadThreads, 0,
                RopeArgs{.x = at.data,
                         .turns = rows_.turns(table),
                         .rows = rows_.count(),
                         .heads = n_heads,
                         .dim = static_cast<std::uint32_t>(at.columns / n_heads)});
}

Status CudaBackend::append_kv(std::uint32_t layer, Act k, Act v) {
  const Device::Scope scope(*device_);
  for (const KvSet& set : rows_.kv_sets()) {
    const KvLayer at = kv_layer(*set.layout, layer);
    TESSERA_TRY_STATUS(launch(kernels_.kv[kv_index(at.dtype)].append, {.x = head_blocks(std::uint64_t{rows_.count()} * 2 * at.kv_heads)},
                              kHeadThreads, 0,
                              AppendKvArgs{.layer = at,
                                           .tables = set.tables_of(layer),
                                           .k = act(k).data,
                                           .v = act(v).data,
                                           .rows = rows_.count()}));
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
                             .tables = set.tables_of_copies(layer),
                             .k = act(k).data,
                             .v = act(v).data,
                             .rows = set.copies.count,
                             .source_rows = set.copies.rows});
}

Status CudaBackend::rope_append(const backend::HeadShape& shape, Act q, Act k, Act v) {
  // If the layer does exactly the following in this order, and all rows have the same layout of pages, one fused kernel computes it: it
  // norms each head of q and k separately, rotates the heads, and appends keys and values to the pages. If not, Backend::rope_append()
  // calls a separate operation for each of these.
  const bool is_plain = !shape.norms_together && !shape.norms_behind_rope && shape.v_norm == nullptr && !shape.queries_alone;
  if (rows_.kv_sets().size() != 1 || !is_plain) return Backend::rope_append(shape, q, k, v);
  const Device::Scope scope(*device_);
  const KvSet& set = rows_.kv_sets().front();
  const KvLayer at = kv_layer(*set.layout, shape.layer);
  TESSERA_TRY_STATUS(launch(kernels_.kv[kv_index(at.dtype)].rope_append,
                            {.x = head_blocks(std::uint64_t{rows_.count()} * (shape.n_heads + 2 * at.kv_heads))}, kHeadThreads, 0,
                            RopeAppendArgs{.layer = at,
                                           .tables = set.tables_of(shape.layer),
                                           .q = written(q).data,
                                           .k = written(k).data,
                                           .v = act(v).data,
                                           .q_norm = values_of(shape.q_norm),
                                           .k_norm = values_of(shape.k_norm),
                                           .turns = shape.rope != kNoRope ? rows_.turns(shape.rope) : RopeTurns{},
                                           .eps = shape.eps,
                                           .rows = rows_.count(),
                                           .heads = shape.n_heads}));
  return append_copies(set, shape.layer, k, v);
}

Status CudaBackend::latent_append(const backend::LatentShape& shape, Act turned_q, Act latent_q, Act turned_k, Act latent, Act q) {
  const auto turned = static_cast<std::uint32_t>(act(turned_k).columns), width = static_cast<std::uint32_t>(act(latent).columns);
  written(q).columns = std::size_t{shape.n_heads} * (turned + width);
  if (rows_.count() == 0) return {};
  const Device::Scope scope(*device_);
  for (std::size_t i = 0; i < rows_.kv_sets().size(); ++i) {
    const KvSet& set = rows_.kv_sets()[i];
    const KvLayer at = kv_layer(*set.layout, shape.layer);
    const std::uint32_t heads = i == 0 ? shape.n_heads : 0;
    LatentAppendArgs args{.layer = at,
                          .tables = set.tables_of(shape.layer),
                          .turned_q = written(turned_q).data,
                          .latent_q = act(latent_q).data,
                          .turned_k = written(turned_k).data,
                          .latents = written(latent).data,
                          .q = act(q).data,
                          .norm = vector_of(*shape.norm).data,
                          .turns = shape.rope != kNoRope ? rows_.turns(shape.rope) : RopeTurns{},
                          .eps = shape.eps,
                          .rows = rows_.count(),
                          .heads = heads,
                          .turned = turned,
                          .latent = width,
                          .is_ready = i == 0 ? 0u : 1u};
    const Kernel kernel = kernels_.kv[kv_index(at.dtype)].latent_append;
    TESSERA_TRY_STATUS(launch(kernel, {.x = head_blocks(std::uint64_t{rows_.count()} * (heads + 1))}, kHeadThreads, 0, args));
    const KvSet::Copies& copies = set.copies;
    if (copies.count == 0) continue;
    args.tables = set.tables_of_copies(shape.layer);
    args.rows = copies.count;
    args.heads = 0;
    args.is_ready = 1;
    args.source_rows = copies.rows;
    TESSERA_TRY_STATUS(launch(kernel, {.x = head_blocks(copies.count)}, kHeadThreads, 0, args));
  }
  return {};
}

Status CudaBackend::attention(const backend::AttentionShape& shape, Act q, Act out) {
  const Device::Scope scope(*device_);
  for (std::size_t i = 0; i < rows_.kv_sets().size(); ++i) {
    const KvSet& set = rows_.kv_sets()[i];
    written(out).columns = std::size_t{shape.n_heads} * kv_layer(*set.layout, shape.layer).value_dim;
    if (shape.counts_votes && votes_.counts()) TESSERA_TRY_STATUS(count_votes(shape, set, q));
    TESSERA_TRY_STATUS(attention_.attend(
        *device_, kernels_, rows_, {.shape = shape, .kv_set = i, .sinks = values_of(shape.sinks), .q = act(q).data, .out = act(out).data}));
  }
  return {};
}

Status CudaBackend::count_votes(const backend::AttentionShape& shape, const KvSet& set, Act q) {
  const KvLayer at = kv_layer(*set.layout, shape.layer);
  return votes_.count(*device_, kernels_.kv[kv_index(at.dtype)].count_votes,
                      VoteArgs{.layer = at,
                               .tables = set.tables_of(shape.layer),
                               .voters = nullptr,
                               .q = act(q).data,
                               .sinks = values_of(shape.sinks),
                               .scores = nullptr,
                               .sums = nullptr,
                               .window = shape.window,
                               .globals = shape.globals,
                               .heads = shape.n_heads,
                               .group = heads_of(shape, at).group,
                               .stride = 0,
                               .scale = shape.scale,
                               .softcap = shape.softcap,
                               .units = 0.0f,
                               .padding = 0});
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
  // Each launch moves the tokens of all layers of one KV type. OfType has the numbers of such a launch. heads: the largest number of KV
  // heads that one of the layers has. shared: bytes of shared memory. [first, end): which entries of the lists above (layers, turns,
  // first_page, skipped) belong to the type's layers.
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
  // Waits for the kernels. If the wait fails, Device::wait() waits a second time and returns the result of the second wait. Here the second
  // result is the right one: an error that only the first wait returned came from an earlier call, not from these kernels.
  const Status done = device_->check(device_->wait(device_->stream()), "move tokens");
  return status ? done : status;
}

}  // namespace tessera::cuda
