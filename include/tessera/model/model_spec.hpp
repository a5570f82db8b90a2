// What a model is, apart from its weights: the numbers that one forward pass reads. Made from a file's metadata by the
// architecture's table (model/architecture.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/core/result.hpp>

namespace tessera {

enum class Norm : std::int32_t { rms = 0, layer = 1 };
// Which elements of a head rotate together: (2i, 2i+1), or (i, i + rope_dim/2).
enum class RopePairs : std::int32_t { interleaved = 0, halves = 1 };
enum class Activation : std::int32_t { silu = 0, gelu_tanh = 1, gelu_erf = 2 };
enum class Ffn : std::int32_t {
  gated = 0,  // down(act(gate(x)) * up(x))
  plain = 1,  // down(act(up(x)))
};
enum class Block : std::int32_t {
  sequential = 0,  // x += attention(norm(x)); x += ffn(norm(x))
  parallel = 1,    // x += attention(norm(x)) + ffn(norm(x))
};
enum class Positions : std::int32_t { rope = 0, learned = 1 };

// Per layer, because models mix layer kinds.
struct LayerSpec {
  std::uint32_t n_heads = 0;
  std::uint32_t n_kv_heads = 0;
  std::uint32_t key_dim = 0;    // of one query or key head
  std::uint32_t value_dim = 0;  // of one value head
  std::uint32_t ffn_dim = 0;
  std::uint32_t window = 0;     // sliding window: position p sees keys p - window + 1 .. p; 0: all
  float scale = 0.0f;           // of the attention scores: 1 / sqrt(key_dim)
};

struct ModelSpec {
  std::string architecture;  // general.architecture
  std::string name;          // general.name, may be empty
  std::uint32_t vocab_size = 0;
  std::uint32_t d_model = 0;
  std::uint32_t context = 0;  // positions that the model knows

  Norm norm = Norm::rms;
  float norm_eps = 0.0f;
  Block block = Block::sequential;
  Ffn ffn = Ffn::gated;
  Activation activation = Activation::silu;

  Positions positions = Positions::rope;
  RopePairs rope_pairs = RopePairs::interleaved;
  std::uint32_t rope_dim = 0;          // elements of a head that rotate
  double rope_theta = 10000.0;         // frequency base
  double rope_linear_factor = 1.0;     // positions are divided by it (linear scaling)

  std::vector<LayerSpec> layers;

  [[nodiscard]] std::uint32_t n_layers() const noexcept { return static_cast<std::uint32_t>(layers.size()); }
};

}  // namespace tessera
