// A ModelSpec describes a model without its weights: all numbers and kinds of operations that a forward pass needs. The library makes it
// from the file's settings and from its own description of the architecture.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/extend/core/operation_kinds.hpp>

namespace tessera {

enum class Ffn : std::int32_t {
  gated = 0,  // down(act(gate(x)) * up(x))
  plain = 1,  // down(act(up(x)))
  experts = 2,  // the weighted sum of a few gated FFNs, which a router chooses for each token
  none = 3,     // no FFN: the layer is only its mixer
  dense_and_experts = 4,  // a gated FFN for all tokens and, beside it, experts; each of the two has its own norms
  plain_experts = 5,      // like `experts`, but with plain FFNs
};
// The part of a layer in which a row sees other rows of its sequence. All mixers except attention keep a state of fixed size instead of
// keys and values.
enum class Mixer : std::int32_t {
  attention = 0,
  none = 1,               // no mixer: the layer is only its FFN
  delta_net = 2,          // gated delta rule (Yang et al. 2024)
  short_convolution = 3,  // LFM2's (Liquid AI 2025): a gated convolution of a few tokens
  mamba2 = 4,             // a selective state space (Dao and Gu 2024)
};
// A gate that multiplies attention's output before the output projection. sigmoid: the gate is the sigmoid of a linear projection of the
// layer's input.
enum class OutputGate : std::int32_t { none = 0, sigmoid = 1 };
// Says whether the weights of a token's experts are divided by their sum.
enum class Renormalise : std::int32_t { no = 0, yes = 1 };
enum class Wiring : std::int32_t {
  sequential = 0,  // x += attention(norm(x)); x += ffn(norm(x))
  parallel = 1,    // x += attention(norm(x)) + ffn(norm(x))
};
enum class Positions : std::int32_t {
  rope = 0,     // rotation by each layer's rope; no positions in layers without a rope
  learned = 1,  // a table of embeddings, added to the tokens' embeddings
};

// The keys that rows attend to.
enum class Sight : std::int32_t {
  back = 0,        // a row sees no later row of its sequence: decoders
  both_sides = 1,  // a row sees all rows of its text (in layers with a window, all within the window): encoders
};
// The way in which a text's vector is computed from the vectors of its rows (Reimers and Gurevych 2019).
enum class Pooling : std::int32_t {
  automatic = 0,  // the model's own way; occurs only in options, never in a ModelSpec
  none = 1,       // a vector for each row
  mean = 2,       // the mean of the rows
  cls = 3,        // the first row
  last = 4,       // the last row
  rank = 5,       // scores of a pair of texts, which the model's ranking head computes from the first row
};

// The kind of a model's draft heads.
enum class DraftHeadKind : std::int32_t {
  none = 0,
  // Multi-token prediction (DeepSeek-AI 2024): a layer that reads the hidden state after a token and the next token, and guesses the token
  // after the next.
  mtp = 1,
  medusa = 2,  // Cai et al. 2024: several heads, each of which guesses one further token from the same hidden state
  eagle = 3,   // Li et al. 2024 (EAGLE-1 and EAGLE-2): a layer like MTP's, which guesses the target's next hidden state
  eagle3 = 4,  // Li et al. 2025: a layer that reads the hidden states of three layers of the target, and has an output matrix of its own
};
// The hidden state to which the layer of an EAGLE-3 head adds its outputs. plain: the hidden state before the layer's norm. normed: the hidden
// state after this norm.
enum class HeadResidual : std::int32_t { plain = 0, normed = 1 };
// Says whether the file's MTP heads, which guess further tokens, are loaded with the model.
enum class MtpHeads : std::int32_t { leave_out = 0, load = 1 };

// The list of LongRoPE factors that a model uses (Ding et al. 2024). The model has two lists of factors that divide the frequencies: one
// for contexts up to the original training's context, and one for longer contexts.
enum class LongRope : std::int32_t { none = 0, short_context = 1, long_context = 2 };

// The elements that one norm of queries or keys covers.
enum class HeadNorms : std::int32_t {
  each = 0,      // one head
  together = 1,  // all heads of a token
};
enum class HeadNormPlace : std::int32_t { before_rope = 0, behind_rope = 1 };
// Sink logits: one learned logit for each head. In each softmax over keys, it counts like the score of one more key whose value is zero. So
// a head need not attend to any key.
enum class Sinks : std::int32_t { none = 0, one_a_head = 1 };
// Says whether each head's values are normed. This norm has no weight.
enum class ValueNorm : std::int32_t { none = 0, unweighted = 1 };
// The value of LayerSpec::keys_of for a layer that has keys and values of its own.
inline constexpr std::uint32_t kOwnKeys = ~std::uint32_t{0};

// The value of LayerSpec::ahead for a layer that sees all later keys.
inline constexpr std::uint32_t kAllAhead = ~std::uint32_t{0};

// The parameters of a rotation by position (RoPE; Su et al. 2021). A model may have several ropes; each layer uses one rope or none.
struct RopeSpec {
  RopePairs pairs = RopePairs::interleaved;
  std::uint32_t dim = 0;       // elements of a head that rotate, beginning with the first
  double theta = 10000.0;      // frequency base
  double linear_factor = 1.0;  // divisor of positions (linear scaling)
  // YaRN (Peng et al. 2023) slows some pairs: it divides their frequency by linear_factor. Let i be the number of a pair, from 0. If i <=
  // first_slowed: the pair keeps its frequency. If i >= all_slowed: the frequency is divided by linear_factor. Between the two, the change
  // is linear in i. The default values slow all pairs: this is linear scaling.
  double first_slowed = -1.0, all_slowed = 0.0;
  LongRope factors = LongRope::none;  // LongRoPE: the list of factors that also divide the frequencies
  float magnitude = 1.0f;  // factor of rotated elements
};

// One layer: its mixer, then its feed-forward network. Models mix layers of several kinds.
struct LayerSpec {
  Mixer mixer = Mixer::attention;

  // Set only if the mixer is Mixer::attention.
  std::uint32_t n_heads = 0;
  std::uint32_t n_kv_heads = 0;
  std::uint32_t key_dim = 0;     // elements of one query head or key head
  std::uint32_t value_dim = 0;   // elements of one value head
  std::uint32_t rope = kNoRope;  // index into ModelSpec::ropes
  std::uint32_t window = 0;      // sliding window: position p sees keys p - window + 1 .. p; 0: all keys
  std::uint32_t ahead = 0;       // number of later keys that a position sees too, up to the end of its text; kAllAhead: all later keys
  std::uint32_t globals = 0;     // number of first keys that every position sees besides its window (Longformer; Beltagy et al. 2020)
  float scale = 0.0f;            // factor of attention scores, usually 1 / sqrt(key_dim)
  float score_softcap = 0.0f;    // scaled scores s become softcap * tanh(s / softcap); 0: no softcap
  Sinks sinks = Sinks::none;
  HeadNorms head_norms = HeadNorms::each;  // used in layers whose queries and keys are normed
  HeadNormPlace head_norm_place = HeadNormPlace::before_rope;
  ValueNorm value_norm = ValueNorm::none;
  std::uint32_t keys_of = kOwnKeys;  // an earlier layer whose keys and values this layer reads instead of its own
  OutputGate output_gate = OutputGate::none;

  // Set only for latent attention (DeepSeek-AI 2024), which has one KV head. Its key is the turned key (rotated by rope) followed by the
  // latent, and its value is the latent. So key_dim is the width of the turned key and the latent together, and value_dim is the width of
  // the latent. Attention reads the latents as they are, without computing a key and a value for each head. Instead, each query head has
  // two matrices: the first brings the plain part of the query (not rotated) to the latent's width; the second makes the head's value from
  // attention's output.
  std::uint32_t plain_dim = 0;       // elements of a head's query that do not rotate; 0: attention is not latent
  std::uint32_t head_value_dim = 0;  // elements of a head's value
  std::uint32_t query_rank = 0;      // width between the two products that make queries (low rank); 0: one product makes queries

  // Set only if the mixer is recurrent. Mixer::short_convolution sets only conv_width, because it has no heads.
  std::uint32_t conv_width = 0;  // number of tokens that a row's convolution sees, the row's own token included
  std::uint32_t state_heads = 0, state_groups = 0;
  std::uint32_t state_keys = 0, state_values = 0;  // a head's state is state_keys by state_values numbers
  StateGroups group_order = StateGroups::blocks;

  Ffn ffn = Ffn::gated;
  ActivationKind activation = ActivationKind::silu;
  std::uint32_t ffn_dim = 0;  // inner width of the FFN, or of one expert

  // Set only in layers with experts.
  std::uint32_t n_experts = 0, n_used = 0;  // number of experts of the layer, and number of experts that a token is sent to
  // Number of groups into which neighbouring experts are divided, and number of groups from which a token's experts are chosen.
  std::uint32_t n_groups = 1, n_used_groups = 1;
  GroupScore group_score = GroupScore::two_best;
  RoutingKind routing = RoutingKind::softmax;
  Renormalise renormalise = Renormalise::no;
  float expert_scale = 1.0f;    // factor of the experts' weights
  std::uint32_t shared_dim = 0;  // inner width of the expert that all tokens use (dense_and_experts: of the dense FFN); 0: none
  std::uint32_t expert_width = 0;  // width of the experts' inputs and outputs, if matrices convert from d_model and back; 0: d_model

  float residual_scale = 1.0f;  // factor of the outputs that attention and the FFN add to the residual stream

  // Distance to the earlier layer whose weights this layer also uses (ALBERT; Lan et al. 2020): layer i uses the weights of layer
  // i - weights_back, which has weights of its own. Keys and values are never shared this way. 0: the layer has its own weights.
  std::uint32_t weights_back = 0;

  [[nodiscard]] bool is_recurrent() const noexcept { return mixer >= Mixer::delta_net; }
  [[nodiscard]] bool is_latent() const noexcept { return plain_dim != 0; }
  [[nodiscard]] bool has_experts() const noexcept {
    return ffn == Ffn::experts || ffn == Ffn::dense_and_experts || ffn == Ffn::plain_experts;
  }
};

// The draft heads: layers after a model's last layer that guess the tokens after the next token.
struct DraftHeadSpec {
  DraftHeadKind kind = DraftHeadKind::none;
  // The heads' own layers. They are numbered on from the model's last layer. A layer with attention has keys and values in the cache, like
  // the model's layers. Medusa: each residual block of each head is a layer, without mixer and FFN; a head without blocks has one layer.
  std::vector<LayerSpec> layers;
  std::uint32_t most_guesses = 0;     // limit of consecutive guesses; 0: no limit
  float norm_eps = 0.0f;              // EAGLE: epsilon of the heads' norms
  HeadResidual residual = HeadResidual::plain;  // EAGLE-3
  std::array<std::uint32_t, 3> features = {};   // EAGLE-3: model layers whose inputs the head reads; n_layers: the last layer's output
  std::uint32_t vocab_size = 0;       // EAGLE-3: number of tokens that the head can guess; 0: the whole vocabulary
};

struct ModelSpec {
  std::string architecture;  // general.architecture
  std::string name;          // general.name, may be empty
  std::uint32_t vocab_size = 0;
  std::uint32_t d_model = 0;
  std::uint32_t context = 0;  // the longest sequence that the model was made for, in tokens

  NormKind norm = NormKind::rms;
  float norm_eps = 0.0f;
  Wiring wiring = Wiring::sequential;
  Positions positions = Positions::rope;
  Sight sight = Sight::back;
  Pooling pooling = Pooling::mean;  // pooling of texts (Engine::embed())
  bool has_logits = true;        // false: the model computes embeddings and no logits
  std::uint32_t n_segments = 0;  // kinds of segments, each with an embedding that its tokens get (BERT's token types); 0: none
  // Widths of the two products between the final norm and a row's embedding, in models that have them (EmbeddingGemma). 0: no products.
  std::uint32_t embedding_inner = 0, embedding_dim = 0;
  // The head that ranks pairs of texts or classifies texts (Pooling::rank): out(norm(act(in(x)))). n_scores 0: the model has no such head.
  std::uint32_t n_scores = 0;    // outputs of the head
  ActivationKind head_activation = ActivationKind::tanh;
  float embedding_scale = 1.0f;  // factor of the tokens' embeddings
  float logit_scale = 1.0f;
  float logit_softcap = 0.0f;    // logits x become softcap * tanh(x / softcap); 0: none
  // Temperature by position: queries are multiplied by 1 + rate * ln(1 + floor(position / length)). A rate of 0: no multiplication.
  double temperature_rate = 0.0;
  std::uint32_t temperature_length = 0;

  // Elements of the additional vector that each layer receives for each token. The vector is computed from the token's embedding for that
  // layer and the token's ordinary embedding. 0: layers receive none.
  std::uint32_t per_layer_dim = 0;

  // Number of layers of MTP heads in the model's file that are not loaded. (MTP heads guess further tokens; their layers come after the
  // model's last layer.) With EngineOptions::mtp, the first of the file's MTP layers is loaded as the only layer of draft_heads, and does
  // not count here. With EngineOptions::draft_heads, draft_heads comes from another file, and all MTP layers of the model's file count.
  std::uint32_t n_left_out = 0;

  std::vector<RopeSpec> ropes;  // LayerSpec::rope is an index into it
  std::vector<LayerSpec> layers;
  DraftHeadSpec draft_heads;

  [[nodiscard]] std::uint32_t n_layers() const noexcept { return static_cast<std::uint32_t>(layers.size()); }
  // Returns the number of layers, including the layers of draft heads.
  [[nodiscard]] std::uint32_t n_layers_with_heads() const noexcept {
    return static_cast<std::uint32_t>(layers.size() + draft_heads.layers.size());
  }
  // Returns the width of embeddings (Want::embedding).
  [[nodiscard]] std::uint32_t embedding_width() const noexcept { return embedding_dim != 0 ? embedding_dim : d_model; }
  [[nodiscard]] bool has_draft_heads() const noexcept { return draft_heads.kind != DraftHeadKind::none; }
  // Returns layer i. An i after the model's last layer is a layer of the draft heads.
  [[nodiscard]] const LayerSpec& layer(std::uint32_t i) const noexcept {
    return i < n_layers() ? layers[i] : draft_heads.layers[i - n_layers()];
  }
};

}  // namespace tessera
