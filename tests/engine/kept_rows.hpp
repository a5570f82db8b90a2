// Backend::keep_rows() on any backend: what follows the rows goes with them.
#pragma once

#include <array>
#include <cstring>
#include <random>
#include <vector>

#include <tessera/kv/kv_cache.hpp>

#include "backend/backend.hpp"
#include "engine/models.hpp"

namespace tessera::test {

// A backend with the weights of one attention layer, and steps of rows of two sequences.
class KeptRows {
 public:
  static constexpr std::uint32_t kModel = 64, kHeads = 4, kKvHeads = 2, kDim = 16, kVocab = 37, kPositions = 32;
  static constexpr std::size_t kRows = 23;

  explicit KeptRows(backend::Backend& backend) : b_(backend) {
    const std::uint64_t outputs[] = {kHeads * kDim, kKvHeads * kDim, kKvHeads * kDim, kVocab, kPositions};
    std::uint64_t bytes = 0, staging = 0;
    for (const std::uint64_t n : outputs) {
      bytes += b_.matrix_bytes({DType::f32, n, kModel});
      staging = std::max(staging, b_.staging_bytes({DType::f32, n, kModel}));
    }
    must(b_.reserve_weights(bytes, staging));
    for (const std::uint64_t n : outputs) weights_.push_back(random_matrix(n));
    b_.finish_loading();
    backend::WorkspaceShape shape{.rows = kRows,
                                  .output_rows = 1,
                                  .ropes = 2,
                                  .rope_dims = 2 * (4 + 8),
                                  .max_heads = kHeads,
                                  .max_group = kHeads / kKvHeads,
                                  .max_key_dim = kDim,
                                  .max_value_dim = kDim};
    for (std::uint64_t& columns : shape.columns) columns = kModel;
    must(b_.reserve_workspace(shape));
  }

  // What is in x, q, k and attention's output at the end, and in the pages: of a step whose rows are kept from the
  // beginning, and of a step that has all rows until stage `when`.
  enum class When { alone, before_embedding, before_products, before_rope, before_attention };
  [[nodiscard]] std::vector<std::vector<float>> compute(When when) {
    const std::vector<backend::RowTable> all = tables();
    std::vector<std::uint32_t> keep;
    std::vector<backend::RowTable> kept;
    // The first rows of each sequence, so that those that are kept see no keys but each other's.
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      if (all[i].position >= (all[i].sequence == 0 ? 6 : 4)) continue;
      keep.push_back(i);
      kept.push_back(all[i]);
    }
    const std::vector<KvCache> caches = make_caches();
    const KvView views[] = {caches[0].view(), caches[1].view()};
    const std::vector<double> fast = {1.0, 0.5, 0.25, 0.125}, slow = {0.9, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.01};
    const backend::RopeTable ropes[] = {{RopePairs::interleaved, fast}, {RopePairs::halves, slow}};
    const std::span<const std::uint32_t> wanted = when == When::alone ? std::span<const std::uint32_t>() : keep;
    const backend::AttentionShape attention{.layer = 0, .n_heads = kHeads, .scale = 0.25f};
    must(b_.begin({.rows = when == When::alone ? kept : all,
                   .sequences = views,
                   .ropes = ropes,
                   .wanted = wanted,
                   .attentions = {&attention, 1}}));
    using backend::Act;
    const auto keep_at = [&](When stage, std::initializer_list<Act> acts) {
      if (stage == when) must(b_.keep_rows(std::vector<Act>(acts)));
    };
    keep_at(When::before_embedding, {});
    must(b_.embed(*weights_[3], 1.0f, Act::x));
    must(b_.add_positions(*weights_[4], Act::linear, Act::x));
    keep_at(When::before_products, {Act::x});
    const backend::LinearPart parts[] = {
        {weights_[0], nullptr, Act::q}, {weights_[1], nullptr, Act::k}, {weights_[2], nullptr, Act::v}};
    must(b_.linear_group(parts, Act::x));
    keep_at(When::before_rope, {Act::x, Act::q, Act::k, Act::v});
    must(b_.rope(0, kHeads, Act::q));
    must(b_.rope(1, kHeads, Act::q));
    must(b_.rope_append({.layer = 0, .n_heads = kHeads, .n_kv_heads = kKvHeads, .rope = 1}, Act::q, Act::k, Act::v));
    keep_at(When::before_attention, {Act::x, Act::q, Act::k});
    must(b_.attention(attention, Act::q, Act::attn));
    std::vector<std::vector<float>> values;
    for (const Act act : {Act::x, Act::q, Act::k, Act::attn}) {
      const std::size_t columns = act == Act::k ? kKvHeads * kDim : kModel;
      std::vector<float>& at = values.emplace_back(keep.size() * columns);
      for (std::uint32_t i = 0; i < keep.size(); ++i) must(b_.read(act, i, std::span(at).subspan(i * columns, columns)));
    }
    must(b_.end());
    return values;
  }

 private:
  static std::vector<backend::RowTable> tables() {
    std::vector<backend::RowTable> rows;
    std::uint64_t next[2] = {0, 0};
    for (std::size_t i = 0; i < kRows; ++i) {
      const std::uint32_t sequence = i % 3 == 1 ? 1 : 0;
      rows.push_back({.token = static_cast<Token>((7 * i + 3) % kVocab), .sequence = sequence, .position = next[sequence]++});
    }
    return rows;
  }

  const backend::Matrix* random_matrix(std::uint64_t outputs) {
    std::mt19937 random(static_cast<std::uint32_t>(weights_.size()) + 1);
    std::normal_distribution<float> normal(0.0f, 0.2f);
    std::vector<float> values(outputs * kModel);
    for (float& value : values) value = normal(random);
    return must(b_.add_matrix({DType::f32, outputs, kModel}, [&](std::uint64_t first, std::uint64_t count, std::span<std::byte> out) {
      std::memcpy(out.data(), values.data() + first * kModel, count * kModel * sizeof(float));
      return Status();
    }));
  }

  std::vector<KvCache> make_caches() {
    const KvLayerShape shape{.kv_heads = kKvHeads, .key_dim = kDim, .value_dim = kDim};
    const std::shared_ptr<Memory> memory = b_.kv_memory();
    std::vector<KvCache> caches;
    for (int i = 0; i < 2; ++i) {
      caches.push_back(must(KvCache::contiguous(must(make_kv_layout({&shape, 1}, DType::f32)), {.capacity = kPositions},
                                                memory != nullptr ? *memory : system_memory())));
      must(caches.back().reserve(kRows));
      caches.back().commit(kRows);
    }
    return caches;
  }

  backend::Backend& b_;
  std::vector<const backend::Matrix*> weights_;
};

// Whenever rows are kept: from then on everything is as in a step of these rows alone.
inline void check_kept_rows(backend::Backend& backend) {
  KeptRows rows(backend);
  using When = KeptRows::When;
  const auto alone = rows.compute(When::alone);
  for (const When when : {When::before_embedding, When::before_products, When::before_rope, When::before_attention}) {
    INFO("kept at stage " << static_cast<int>(when));
    const auto kept = rows.compute(when);
    for (std::size_t i = 0; i < alone.size(); ++i) CHECK(same_bits(kept[i], alone[i]));
  }
}

}  // namespace tessera::test
