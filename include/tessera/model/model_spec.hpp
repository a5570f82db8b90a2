// What a model is, apart from its weights: the numbers that one forward pass reads. Made from a file's metadata by the
// architecture's table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/core/operation_kinds.hpp>
#include <tessera/core/result.hpp>

namespace tessera {

enum class Ffn : std::int32_t {
  gated = 0,  // down(act(gate(x)) * up(x))
  plain = 1,  // down(act(up(x)))
};
enum class Block : std::int32_t {
  sequential = 0,  // x += attention(norm(x)); x += ffn(norm(x))
  parallel = 1,    // x += attention(norm(x)) + ffn(norm(x))
};
enum class Positions : std::int32_t {
  rope = 0,     // what each layer's rope says; nothing in layers without one
  learned = 1,  // a table of embeddings, added to the tokens'
};

// Rotary positions (Su et al. 2021) of one kind. A layer uses one kind or none.
struct RopeSpec {
  RopePairs pairs = RopePairs::interleaved;
  std::uint32_t dim = 0;       // elements of a head that rotate: its first ones
  double theta = 10000.0;      // frequency base
  double linear_factor = 1.0;  // positions are divided by it (linear scaling)
};

// One layer: its mixer (attention), then its feed-forward network. Models mix layers of several kinds.
struct LayerSpec {
  std::uint32_t n_heads = 0;
  std::uint32_t n_kv_heads = 0;
  std::uint32_t key_dim = 0;     // of one query or key head
  std::uint32_t value_dim = 0;   // of one value head
  std::uint32_t rope = kNoRope;  // index into ModelSpec::ropes
  std::uint32_t window = 0;      // sliding window: position p sees keys p - window + 1 .. p; 0: all
  float scale = 0.0f;            // of the attention scores: 1 / sqrt(key_dim)

  Ffn ffn = Ffn::gated;
  ActivationKind activation = ActivationKind::silu;
  std::uint32_t ffn_dim = 0;

  float residual_scale = 1.0f;  // of what attention and the FFN add to the residual stream
};

struct ModelSpec {
  std::string architecture;  // general.architecture
  std::string name;          // general.name, may be empty
  std::uint32_t vocab_size = 0;
  std::uint32_t d_model = 0;
  std::uint32_t context = 0;  // positions that the model knows

  NormKind norm = NormKind::rms;
  float norm_eps = 0.0f;
  Block block = Block::sequential;
  Positions positions = Positions::rope;
  float embedding_scale = 1.0f;  // of the tokens' embeddings
  float logit_scale = 1.0f;

  std::vector<RopeSpec> ropes;  // those that layers name
  std::vector<LayerSpec> layers;

  [[nodiscard]] std::uint32_t n_layers() const noexcept { return static_cast<std::uint32_t>(layers.size()); }
};

}  // namespace tessera
