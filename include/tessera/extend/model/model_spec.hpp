// What a model is, apart from its weights: the numbers that one forward pass reads. Made from a file's metadata by the
// architecture's table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/extend/core/operation_kinds.hpp>

namespace tessera {

enum class Ffn : std::int32_t {
  gated = 0,  // down(act(gate(x)) * up(x))
  plain = 1,  // down(act(up(x)))
  experts = 2,  // the weighted sum of some of many gated ones, which a router chooses for each token
  none = 3,     // the layer is its mixer alone
  dense_and_experts = 4,  // a gated one that all tokens take, and beside it experts; each between norms of its own
  plain_experts = 5,      // as experts, of plain ones
};
// How a layer's rows see others of their sequence. All but attention keep a state of fixed size instead of keys and values.
enum class Mixer : std::int32_t {
  attention = 0,
  none = 1,               // the layer is its FFN alone
  delta_net = 2,          // gated delta rule (Yang et al. 2024)
  short_convolution = 3,  // LFM2's (Liquid AI 2025): a gated convolution of a few tokens
  mamba2 = 4,             // a selective state space (Dao and Gu 2024)
};
// What attention's output is multiplied by before its last product.
enum class OutputGate : std::int32_t { none = 0, sigmoid = 1 };
// Whether the weights of a token's experts are divided by their sum.
enum class Renormalise : std::int32_t { no = 0, yes = 1 };
enum class Block : std::int32_t {
  sequential = 0,  // x += attention(norm(x)); x += ffn(norm(x))
  parallel = 1,    // x += attention(norm(x)) + ffn(norm(x))
};
enum class Positions : std::int32_t {
  rope = 0,     // what each layer's rope says; nothing in layers without one
  learned = 1,  // a table of embeddings, added to the tokens'
};

// Whether a file's MTP heads are read, which guess further tokens.
enum class MtpHeads : std::int32_t { leave_out = 0, load = 1 };

// Whose factors divide the frequencies of a LongRoPE model (Ding et al. 2024): those for the context that it was first
// trained with, or those beyond.
enum class LongRope : std::int32_t { none = 0, short_context = 1, long_context = 2 };

// What the norms of queries and keys see as one.
enum class HeadNorms : std::int32_t {
  each = 0,      // a head
  together = 1,  // all heads of a token
};
enum class HeadNormPlace : std::int32_t { before_rope = 0, behind_rope = 1 };
// Logits that belong to no key and join the sum of each softmax over keys: weight that goes nowhere.
enum class Sinks : std::int32_t { none = 0, one_a_head = 1 };
// Whether each head's values are normed; such a norm has no weight.
enum class ValueNorm : std::int32_t { none = 0, unweighted = 1 };
// Of LayerSpec::keys_of: a layer has keys and values of its own.
inline constexpr std::uint32_t kOwnKeys = ~std::uint32_t{0};

// Rotary positions (Su et al. 2021) of one kind. A layer uses one kind or none.
struct RopeSpec {
  RopePairs pairs = RopePairs::interleaved;
  std::uint32_t dim = 0;       // elements of a head that rotate: its first ones
  double theta = 10000.0;      // frequency base
  double linear_factor = 1.0;  // positions are divided by it (linear scaling)
  // YaRN (Peng et al. 2023): pairs up to the first keep their frequency, from the second on they are divided, and
  // between them it goes over linearly. As it stands here all pairs are divided.
  double first_slowed = -1.0, all_slowed = 0.0;
  LongRope factors = LongRope::none;
  float magnitude = 1.0f;  // rotated elements are multiplied by it
};

// One layer: its mixer, then its feed-forward network. Models mix layers of several kinds.
struct LayerSpec {
  Mixer mixer = Mixer::attention;

  // Mixer::attention alone.
  std::uint32_t n_heads = 0;
  std::uint32_t n_kv_heads = 0;
  std::uint32_t key_dim = 0;     // of one query or key head
  std::uint32_t value_dim = 0;   // of one value head
  std::uint32_t rope = kNoRope;  // index into ModelSpec::ropes
  std::uint32_t window = 0;      // sliding window: position p sees keys p - window + 1 .. p; 0: all
  std::uint32_t globals = 0;     // behind a window: every position sees the first so many keys too (Longformer; Beltagy et al. 2020)
  float scale = 0.0f;            // of the attention scores: 1 / sqrt(key_dim)
  float score_softcap = 0.0f;    // then scores s become softcap * tanh(s / softcap); 0: none
  Sinks sinks = Sinks::none;
  HeadNorms head_norms = HeadNorms::each;  // where queries and keys are normed
  HeadNormPlace head_norm_place = HeadNormPlace::before_rope;
  ValueNorm value_norm = ValueNorm::none;
  std::uint32_t keys_of = kOwnKeys;  // an earlier layer, whose keys and values this one reads instead of its own
  OutputGate output_gate = OutputGate::none;

  // Latent attention alone (DeepSeek-AI 2024). Its one KV head is what rotates and then the latent, which is the value too: key_dim is
  // both, value_dim the latent. Matrices of each head lead from its query to the latent, and from what it attends to to its value.
  std::uint32_t plain_dim = 0;       // of a head's query, what does not rotate; 0: attention is not latent
  std::uint32_t head_value_dim = 0;  // of a head's value
  std::uint32_t query_rank = 0;      // of the two products that make queries; 0: it is one

  // Recurrent mixers alone; a short convolution has no heads.
  std::uint32_t conv_width = 0;  // tokens that a row's convolution sees, its own included
  std::uint32_t state_heads = 0, state_groups = 0;
  std::uint32_t state_keys = 0, state_values = 0;  // a head's state is so many numbers by so many
  StateGroups group_order = StateGroups::blocks;

  Ffn ffn = Ffn::gated;
  ActivationKind activation = ActivationKind::silu;
  std::uint32_t ffn_dim = 0;  // of an expert, where there are experts

  // Of layers with experts alone.
  std::uint32_t n_experts = 0, n_used = 0;  // of which a token takes so many
  std::uint32_t n_groups = 1, n_used_groups = 1;  // it takes them from so many groups of neighbours
  GroupScore group_score = GroupScore::two_best;
  RoutingKind routing = RoutingKind::softmax;
  Renormalise renormalise = Renormalise::no;
  float expert_scale = 1.0f;    // of their weights
  std::uint32_t shared_dim = 0;  // of one that all tokens take, as experts are (dense_and_experts: the dense one); 0: none
  std::uint32_t expert_width = 0;  // what experts read and give, where products lead into it and back; 0: the model's own width

  float residual_scale = 1.0f;  // of what attention and the FFN add to the residual stream

  [[nodiscard]] bool is_recurrent() const noexcept { return mixer >= Mixer::delta_net; }
  [[nodiscard]] bool is_latent() const noexcept { return plain_dim != 0; }
  [[nodiscard]] bool has_experts() const noexcept {
    return ffn == Ffn::experts || ffn == Ffn::dense_and_experts || ffn == Ffn::plain_experts;
  }
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
  float logit_softcap = 0.0f;    // logits x become softcap * tanh(x / softcap); 0: none
  // Queries grow with their position: times 1 + rate * ln(1 + floor(position / length)).
  double temperature_rate = 0.0;
  std::uint32_t temperature_length = 0;

  // Of a vector that each layer gets of each token, made of an embedding of its own and of the token's; 0: there are none.
  std::uint32_t per_layer_dim = 0;

  // Layers of the file behind the last one guess further tokens (multi-token prediction, DeepSeek-AI 2024). The first of them is read
  // if it is asked for (EngineOptions::mtp), and is then the one entry of mtp_heads.
  std::uint32_t n_left_out = 0;  // that are not read

  std::vector<RopeSpec> ropes;  // those that layers name
  std::vector<LayerSpec> layers;
  std::vector<LayerSpec> mtp_heads;

  [[nodiscard]] std::uint32_t n_layers() const noexcept { return static_cast<std::uint32_t>(layers.size()); }
  [[nodiscard]] bool has_mtp() const noexcept { return !mtp_heads.empty(); }
  // A layer, or behind the last one an MTP head.
  [[nodiscard]] const LayerSpec& layer(std::uint32_t i) const noexcept { return i < n_layers() ? layers[i] : mtp_heads[i - n_layers()]; }
};

}  // namespace tessera
