#include "engine/load/kv_setup.hpp"

#include <algorithm>
#include <map>

#include <tessera/unstable/kv/page_cost.hpp>

#include "core/checked.hpp"
#include "core/error.hpp"
#include "engine/states.hpp"
#include "kv/page_id.hpp"
#include "model/draft_heads.hpp"
#include "model/spec/parts/recurrent_spec.hpp"

namespace tessera::detail {
namespace {

// Heap bytes for one page in a step: the page's number in the step's description, and its address in the execution of the step. Factor 2:
// lists grow by doubling, so up to half of a list's memory is unused.
constexpr std::uint64_t kBytesInStep = 2 * (sizeof(PageId) + sizeof(std::byte*));
// Heap bytes for the bookkeeping of one page: its entries in the pool, in the prefix index, in a sequence's tables and in a step.
constexpr std::uint64_t kBytesOfPage = 160 + kBytesInStep;
// Heap bytes of one node of the prefix index, including the node of its hash map.
constexpr std::uint64_t kBytesOfNode = 320;

KvPoolOptions pool_options(const KvLayout& layout, std::uint64_t context, std::uint64_t budget) {
  return {.budget = budget, .max_slab_pages = layout.pages(context)};
}

KvLayerNeeds needs_of(const ModelSpec& spec, const LayerSpec& layer) {
  return {.shape = {.kv_heads = layer.n_kv_heads, .key_dim = layer.key_dim, .value_dim = layer.value_dim,
                    .state_bytes = state_bytes(spec, layer),
                    .values = layer.is_latent() ? kv::Values::in_keys : kv::Values::beside_keys},
          // With global tokens the layout's window is 0, so that no page is freed: later tokens still see the global tokens.
          .window = layer.globals == 0 ? layer.window : 0,
          .shares = layer.keys_of != kOwnKeys ? layer.keys_of : KvLayerNeeds::kOwn};
}

// Returns the needs of hidden_layer(): each row's hidden state is stored as a key, cut into as few heads as kMaxHeadDim allows.
KvLayerNeeds needs_of_hidden(std::uint32_t width) noexcept {
  std::uint32_t heads = (width + kMaxHeadDim - 1) / kMaxHeadDim;
  while (width % heads != 0) ++heads;
  const std::uint32_t dim = width / heads;
  return {.shape = {.kv_heads = heads, .key_dim = dim, .value_dim = dim, .values = kv::Values::in_keys}, .dtype = DType::f32};
}

}  // namespace

namespace {

TokenBudget resolve_budget(const TokenBudget& budget, const TokenBudget& base) noexcept {
  TokenBudget resolved = budget.tokens == 0 ? base : budget;
  if (resolved.tokens == 0 || resolved.tokens == kNoTokenBudget) return {};
  if (resolved.recent != 0) return resolved;
  const auto most = static_cast<std::uint32_t>(tokens_left(resolved)) - std::min<std::uint32_t>(resolved.sinks, static_cast<std::uint32_t>(tokens_left(resolved)));
  switch (resolved.choice) {
    case TokenChoice::window: resolved.recent = most; break;
    case TokenChoice::h2o: resolved.recent = static_cast<std::uint32_t>(tokens_left(resolved) / 2); break;
    case TokenChoice::snapkv: resolved.recent = kAskingRows; break;
  }
  return resolved;
}

}  // namespace

WideLayers wide_layers(const KvOptions& options) noexcept {
  const bool none = options.wide.dtype == options.dtype || (options.wide.first == 0 && options.wide.last == 0);
  return options.wide.dtype == DType::automatic || none ? WideLayers{} : options.wide;
}

KvOptions resolve(const KvOptions& options, const KvOptions& base) {
  const bool has_types = options.dtype != DType::automatic || options.wide.dtype != DType::automatic;
  const TokenBudget budget = resolve_budget(options.budget, base.budget);
  // h2o needs the votes of rows in all parts of the prompt. Only computed rows vote, so no row may come from the prefix index.
  const bool must_compute = counts_attention(budget) && budget.choice == TokenChoice::h2o;
  const PrefixReuse prefix = must_compute ? PrefixReuse::off : options.prefix == PrefixReuse::automatic ? base.prefix : options.prefix;
  KvOptions resolved{.dtype = options.dtype == DType::automatic ? base.dtype : options.dtype,
                     .kind = options.kind == KvKind::automatic ? base.kind : options.kind,
                     .page_tokens = options.page_tokens == 0 ? base.page_tokens : options.page_tokens,
                     .prefix = prefix,
                     .salt = options.salt.empty() ? base.salt : options.salt,
                     .checkpoints = options.checkpoints == 0 ? base.checkpoints : options.checkpoints,
                     .budget = budget,
                     .wide = has_types ? options.wide : base.wide};
  resolved.wide = wide_layers(resolved);
  return resolved;
}

KvOptions default_kv_options() {
  return {.dtype = DType::automatic, .kind = KvKind::paged, .page_tokens = kDefaultPageTokens, .prefix = PrefixReuse::on,
          .checkpoints = kDefaultCheckpoints};
}

Status check(const KvOptions& options, const KvOptions& resolved) {
  if (resolved.kind != KvKind::contiguous && resolved.kind != KvKind::paged) {
    return make_error(ErrorCode::invalid_argument, "a KV cache of kind {}; choose contiguous or paged",
                      static_cast<int>(resolved.kind));
  }
  if (resolved.prefix != PrefixReuse::off && resolved.prefix != PrefixReuse::on) {
    return make_error(ErrorCode::invalid_argument, "a prefix reuse of {}; choose on or off", static_cast<int>(resolved.prefix));
  }
  if (resolved.kind == KvKind::contiguous && options.prefix == PrefixReuse::on) {
    return make_error(ErrorCode::invalid_argument, "a contiguous KV cache shares no prefixes; choose a paged one, or no reuse");
  }
  const bool is_h2o = resolved.budget.tokens != 0 && resolved.budget.choice == TokenChoice::h2o;
  if (is_h2o && options.prefix == PrefixReuse::on) {
    return make_error(ErrorCode::invalid_argument,
                      "tokens are chosen by what all rows have attended to (h2o), and rows that come from the prefix index have not "
                      "been computed; choose no reuse, or snapkv");
  }
  return {};
}

Status check_kv_types(const backend::Backend& backend, const KvLayout& layout) {
  for (const KvGroup& group : layout.groups) {
    for (const KvLayerLayout& layer : group.layers) {
      if (group.is_recurrent() || backend.holds_kv(layer.dtype)) continue;
      return make_error(ErrorCode::unsupported, "backend {} does not hold a KV cache of type {}; the cpu backend does", backend.name(),
                        to_string(layer.dtype));
    }
  }
  return {};
}

namespace {

// Applies `wide`: gives the first `wide.first` and the last `wide.last` layers the KV type `wide.dtype`. Counts only layers with keys and
// values of their own; a layer that reads another layer's keys and values gets that layer's type. Error: invalid_argument, `wide` names
// more layers than there are.
Status set_wide_layers(std::span<KvLayerNeeds> layers, const WideLayers& wide) {
  if (wide.dtype == DType::automatic) return {};
  const auto keeps = [](const KvLayerNeeds& layer) { return layer.shape.state_bytes == 0 && layer.shares == KvLayerNeeds::kOwn; };
  const auto n = static_cast<std::uint64_t>(std::ranges::count_if(layers, keeps));
  if (std::uint64_t{wide.first} + wide.last > n) {
    return make_error(ErrorCode::invalid_argument,
                      "a KV type of their own for the first {} and the last {} layers, and {} layers keep keys and values: choose at most "
                      "{} layers in all",
                      wide.first, wide.last, n, n);
  }
  std::uint64_t i = 0;
  for (KvLayerNeeds& layer : layers) {
    if (layer.shares != KvLayerNeeds::kOwn) layer.dtype = layers[layer.shares].dtype;
    if (!keeps(layer)) continue;
    if (i < wide.first || i >= n - wide.last) layer.dtype = wide.dtype;
    ++i;
  }
  return {};
}

}  // namespace

Result<KvLayout> kv_layout(const ModelSpec& spec, const KvOptions& resolved) {
  std::vector<KvLayerNeeds> layers;
  layers.reserve(spec.n_layers_with_heads() + 1);
  const auto add = [&](const LayerSpec& layer) -> Status {
    layers.push_back(needs_of(spec, layer));
    // A layer without a mixer (neither attention nor a recurrent block) stores nothing, but the layout must have a place for each layer.
    // So the layer shares the place of the layer before it, and never reads the keys and values there.
    if (layer.mixer != Mixer::none) return {};
    if (layers.size() == 1) {
      return make_error(ErrorCode::unsupported, "architecture \"{}\": layer 0 has no mixer; the KV cache needs one there", spec.architecture);
    }
    const auto of = static_cast<std::uint32_t>(layers.size() - 2);
    layers.back() = layers[of];
    if (layers[of].shares == KvLayerNeeds::kOwn) layers.back().shares = of;
    return {};
  };
  for (const LayerSpec& layer : spec.layers) TESSERA_TRY_STATUS(add(layer));
  TESSERA_TRY_STATUS(set_wide_layers(layers, resolved.wide));
  for (const LayerSpec& head : spec.draft_heads.layers) TESSERA_TRY_STATUS(add(head));
  if (keeps_hidden(spec, HiddenKept::as_state)) layers.push_back({.shape = {.state_bytes = spec.d_model * sizeof(float)}});  // hidden_layer()
  if (keeps_hidden(spec, HiddenKept::in_pages)) layers.push_back(needs_of_hidden(spec.d_model));
  return make_kv_layout(layers, resolved.dtype, resolved.page_tokens);
}

Result<KvBytes> kv_bytes(const KvLayout& layout, std::uint64_t context, const KvOptions& resolved, std::uint64_t budget) {
  // A window does not reduce the memory of its group: while one call appends a long prompt, all pages of the prompt are needed.
  const bool paged = resolved.kind == KvKind::paged;
  const PageCost cost = PageCost::of(layout, resolved.checkpoints, paged && resolved.prefix == PrefixReuse::on);
  const std::uint64_t pages = cost.pages(context);
  const auto too_large = [&] {
    return make_error(ErrorCode::invalid_argument, "a context of {} tokens is too large to address", context);
  };
  KvBytes bytes;
  std::map<std::uint64_t, std::uint64_t> pools;  // key: bytes of a page; value: number of pages of that size
  for (const PageCost::Group& group : cost.groups) {
    pools[group.page_bytes] += cost.pages_at_once(group, context);
    bytes.host += pages * (paged ? kBytesOfPage : sizeof(std::byte*) + kBytesInStep);
  }
  if (paged) bytes.host += pages * (kBytesOfNode + layout.page_tokens * sizeof(Token));
  for (const auto& [page_bytes, n] : pools) {
    const std::uint64_t slab = paged ? kv_slab_pages(page_bytes, pool_options(layout, context, budget)) : 1;
    const auto all = checked_multiply((n + slab - 1) / slab * slab, page_bytes);
    const auto sum = all ? checked_add(bytes.kv, *all) : std::nullopt;
    if (!sum) return too_large();
    bytes.kv = *sum;
  }
  return bytes;
}

Status check_budget(const KvLayout& layout, std::uint64_t budget) {
  const std::uint64_t least = PageCost::of(layout, kDefaultCheckpoints, false).bytes(1);
  if (budget == 0 || budget >= least) return {};
  return make_error(ErrorCode::invalid_argument,
                    "a KV budget of {} bytes is too small for any session: the first {} tokens of one take {}", budget,
                    layout.page_tokens, least);
}

Result<KvPools> make_kv_pools(const Engine::State& engine) {
  const EngineOptions& options = engine.options;
  const Plan& plan = engine.plan;
  const std::shared_ptr<Memory> of_backend = engine.backend->kv_memory();
  return KvPools::create({.memory = of_backend != nullptr ? of_backend.get() : options.memory,
                          .memory_owner = of_backend,
                          .budget = options.kv_budget,
                          .keep = options.kv_budget != 0 ? options.kv_budget : plan.kv,
                          .max_slab_pages = (plan.context + plan.page_tokens - 1) / plan.page_tokens,
                          .freed = options.freed_pages,
                          .file = options.kv_file,
                          .file_bytes = options.kv_file_bytes});
}

namespace {

// Returns the layout of the engine's own pages. If ranks in other processes have pages of their own, the layout has only rank 0's heads.
Result<KvLayout> own_kv_layout(const Engine::State& engine, const KvOptions& resolved) {
  TESSERA_TRY(KvLayout layout, kv_layout(engine.model.spec, resolved));
  if (engine.division == nullptr) return layout;
  return engine.division->own_layout_of(0, layout);
}

}  // namespace

std::shared_ptr<PrefixProbe> make_prefix_probe(const Engine::State& engine, const KvOptions& resolved) {
  const auto layout = own_kv_layout(engine, resolved);
  if (!layout) return nullptr;
  return std::make_shared<PrefixProbe>(*engine.kv_pools, *layout, prefix_identity(engine.identity, resolved));
}

bool leaves_windows(const TokenBudget& resolved, const KvLayout& layout) noexcept {
  const std::uint64_t recent = resolved.choice == TokenChoice::window ? tokens_left(resolved) - resolved.sinks : resolved.recent;
  return std::ranges::all_of(layout.groups, [&](const KvGroup& group) {
    return group.window == 0 || recent >= group.window + layout.page_tokens;
  });
}

namespace {

// Returns what a cache does with a page after the layers' window has passed all its tokens. Usually it frees the page. Exceptions:
// - A stream keeps the page: when tokens are removed, later tokens move up, and the window may see the page again.
// - With a token budget, a drop may remove tokens that a window sees, so that the window then reaches further back. If leaves_windows()
//   is true, that cannot happen, and the page is freed even after drops. If false, the page is kept.
PassedPages passed_pages(const KvOptions& resolved, const StreamOptions& stream, const KvLayout& layout) noexcept {
  if (stream.window != 0) return PassedPages::keep;
  if (resolved.budget.tokens == 0) return PassedPages::give_back;
  return leaves_windows(resolved.budget, layout) ? PassedPages::give_back_edited : PassedPages::keep;
}

Result<KvCache> cache_with(KvLayout layout, const Engine::State& engine, const KvOptions& resolved, std::uint64_t context, const StreamOptions& stream) {
  TESSERA_TRY_STATUS(check_kv_types(*engine.backend, layout));
  const std::shared_ptr<Memory> of_backend = engine.backend->kv_memory();
  KvCacheOptions options{.capacity = context, .checkpoints = resolved.checkpoints, .passed = passed_pages(resolved, stream, layout)};
  if (resolved.kind == KvKind::contiguous) {
    options.memory_owner = of_backend;
    Memory* memory = options.memory_owner != nullptr ? options.memory_owner.get() : engine.options.memory;
    return KvCache::contiguous(std::move(layout), options, *memory);
  }
  if (resolved.prefix == PrefixReuse::on) {
    options.prefix_identity = prefix_identity(engine.identity, resolved);
  }
  return KvCache::paged(std::move(layout), options, *engine.kv_pools);
}

}  // namespace

Result<KvCache> make_kv_cache(const Engine::State& engine, const KvOptions& resolved, std::uint64_t context,
                              const StreamOptions& stream) {
  TESSERA_TRY(KvLayout whole, kv_layout(engine.model.spec, resolved));
  if (engine.division == nullptr) return cache_with(std::move(whole), engine, resolved, context, stream);
  TESSERA_TRY(KvLayout own, engine.division->own_layout_of(0, whole));
  TESSERA_TRY(KvCache cache, cache_with(std::move(own), engine, resolved, context, stream));
  set_elsewhere(cache, {.parts = {engine.shared_from_this(), engine.other_parts.get()}, .whole = std::make_shared<const KvLayout>(std::move(whole))});
  return cache;
}

}  // namespace tessera::detail
