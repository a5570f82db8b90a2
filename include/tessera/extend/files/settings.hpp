// The settings of a model: facts that its file states, such as numbers of layers and heads, the tokenizer's rules, the chat template, and
// the sampling parameters that the model's authors advise. The same fact has a different key in each kind of file. This library gives every
// fact one name (Setting). Each kind of file (GGUF, or a kind that a host adds) implements the class Settings, which finds a fact by that
// name. All other code is the same for all kinds of files.
// Threads: every function of Settings may be called from several at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include <tessera/core/result.hpp>

namespace tessera {

// The names of all settings. A setting that "may be a list" is one value for all layers, or a list with an element for each layer. The
// values of this enum may change between versions of the library: to store a setting, store its name (to_string()).
enum class Setting : std::uint16_t {
  architecture,                // the name of the model's architecture (known_architectures.hpp)
  name,                        // the model's name
  pooling,                     // how a text's embedding is made of its rows: 0 not at all, 1 mean, 2 first row, 3 last row, 4 scores
  text_tokens,                 // tokens of a text that an embedder reads; the rest of a longer text is cut off
  query_prompt,                // a text that an embedder expects before a query
  document_prompt,             // a text that an embedder expects before a document
  vocab_size,                  // rows of the embedding table
  context,                     // the longest sequence that the model was made for, in tokens
  d_model,                     // width of the residual stream
  n_layers,                    // number of layers, including the layers of draft heads
  n_further_layers,            // number of layers of draft heads (MTP): they come last, and guess further tokens
  feature_layers,              // draft heads (EAGLE-3): a list of the target's layers whose inputs the head reads
  old_feature_layers,          // feature_layers, under the name that early converters wrote
  target_width,                // draft heads: d_model of the target
  norm_before_residual,        // draft heads (EAGLE-3): true: the layer's outputs are added to the normed hidden state; false: to the plain one
  norm_before_fc,              // draft heads (EAGLE-3): only false is implemented
  weights_of,                  // a list: for each layer, the index of the layer whose weights it uses (its own index, or an earlier one)
  rms_norm_eps,                // epsilon, in architectures with RMS norms
  layer_norm_eps,              // epsilon, in architectures with layer norms
  embedding_scale,             // factor of the tokens' embeddings
  residual_scale,              // factor of the outputs that attention and the FFN add to the residual stream
  logit_scale,                 // factor or divisor of logits: the architecture decides which
  logit_softcap,               // c: logits x become c * tanh(x / c)
  per_layer_dim,               // width of the additional embedding of a token that each layer receives
  parallel_residual,           // true: attention and FFN of a layer read the same sum; false: the FFN's sum includes attention's output
  causal,                      // true: a row sees no later row; only encoders have false
  n_heads,                     // number of query heads; may be a list
  n_kv_heads,                  // number of KV heads; may be a list
  key_dim,                     // width of one head's key
  value_dim,                   // width of one head's value
  windowed_key_dim,            // key_dim of layers with a sliding window, if it differs
  windowed_value_dim,          // value_dim of layers with a sliding window, if it differs
  score_scale,                 // factor of attention scores
  score_softcap,               // c: attention scores x become c * tanh(x / c)
  window,                      // sliding window: positions that a row sees, its own included; may be a list
  window_pattern,              // N: every Nth layer has no window; a list of booleans: true for layers with a window
  global_tokens,               // number of first positions that every row sees in addition to its window; may be a list
  temperature_scale,           // r: queries are multiplied by 1 + r * ln(1 + floor(position / temperature_length))
  temperature_length,          // see temperature_scale
  shared_kv_layers,            // number of layers, at the model's end, that read an earlier layer's keys and values
  max_alibi_bias,              // only 0 (no ALiBi) is implemented
  clamp_kqv,                   // only 0 (no clamping) is implemented
  full_attention_interval,     // N: every Nth layer attends, the others are recurrent
  recurrent_layers,            // a list of booleans: the recurrent layers
  latent_key_dim,              // width of one head's key, in latent attention
  latent_value_dim,            // width of one head's value, in latent attention
  latent_rank,                 // width of a token's latent
  query_rank,                  // width of a query's latent; 0: queries have none
  rope_dim,                    // elements of a head that rotate; may be a list, with 0 for layers without rope
  windowed_rope_dim,           // rope_dim of layers with a sliding window, if it differs
  rope_theta,                  // the base of the frequencies
  windowed_rope_theta,         // rope_theta of layers with a sliding window, if it differs
  rope_scale_linear,           // rope_scaling_factor, under the name that old converters wrote
  rope_scaling,                // none, linear, yarn or longrope
  rope_scaling_factor,         // divisor of positions
  rope_is_finetuned,           // true: heads rotate; read only in architectures whose files say whether heads rotate
  original_context,            // context of the training before the context was extended (with YaRN or LongRoPE)
  rope_magnitude,              // factor of rotated elements
  yarn_magnitude,              // factor of rotated elements, with YaRN
  yarn_beta_fast,              // a pair that turns more often than this within original_context keeps its frequency
  yarn_beta_slow,              // the frequency of a pair that turns less often than this is divided by rope_scaling_factor
  yarn_share,                  // YaRN's extrapolation factor; only 1 is implemented
  yarn_log_multiplier,         // m: YaRN's magnitude is divided by 0.1 * m * ln(factor) + 1. Latent attention: scores times (m * ln(factor) + 1)^2
  ffn_dim,                     // inner width of the FFN; may be a list
  n_experts,                   // number of experts of a layer
  n_used_experts,              // number of experts that a row is sent to; may be a list
  n_dense_layers,              // number of layers, at the model's beginning, that have no experts
  expert_dim,                  // inner width of an expert; may be a list
  expert_width,                // width of the experts' inputs and outputs, if it is not d_model
  n_shared_experts,            // number of experts that every row is sent to
  shared_expert_dim,           // inner width of all shared experts together
  expert_routing,              // 1 softmax, 2 sigmoid, 3 softmax of the chosen
  renormalise_experts,         // true: the chosen experts' weights are made to sum to 1
  expert_scale,                // factor of the chosen experts' sum
  n_expert_groups,             // number of groups into which the experts are divided
  n_used_expert_groups,        // number of groups from which a row's experts are chosen
  moe_every_n_layers,          // only 1 is implemented
  interleave_moe_layer_step,   // only 1 is implemented
  conv_width,                  // number of rows that the convolution of a recurrent mixer sees
  short_conv_width,            // number of rows that a short convolution sees
  state_keys,                  // recurrent layers: rows of a head's state matrix (its key dimension)
  state_heads,                 // recurrent layers: number of heads of the state
  state_groups,                // recurrent layers: number of groups of heads; the heads of a group share keys
  state_columns,               // recurrent layers: columns (value dimensions) of all heads' state matrices together
  tokenizer_model,             // llama, gpt2, t5 or gemma4; none or no_vocab: the file has no tokenizer
  pre_tokenizer,               // name of the rule that cuts a text into words
  tokens,                      // a list of the tokens' texts
  token_types,                 // a list of TokenType
  token_scores,                // a list of numbers
  merges,                      // BPE: a list of pairs of pieces that are merged, "left right"; earlier pairs are merged first
  suppressed_tokens,           // a list of ids that are never drawn
  charsmap,                    // a list of bytes: a normaliser as SentencePiece writes it
  bos_token,                   // a token id, like the settings up to fill_middle_token
  eos_token,
  unknown_token,
  padding_token,
  end_of_turn_token,
  end_of_message_token,
  fill_before_token,           // fill-in-the-middle: token before the text that precedes the gap
  fill_behind_token,           // fill-in-the-middle: token before the text that follows the gap
  fill_middle_token,           // fill-in-the-middle: token before the text that fills the gap
  add_bos,                     // true: encoding adds BOS at the beginning
  add_eos,                     // true: encoding adds EOS at the end
  add_space_prefix,            // true: encoding adds a space at the beginning
  remove_extra_spaces,         // true: several spaces become one
  end_tokens,                  // a list of ids that end a generation, in addition to eos_token and to tokens with well-known texts
  tokenizer_json,              // the text of a tokenizer.json (Hugging Face), in place of the settings from `tokens` on
  sentencepiece_model,         // the bytes of a tokenizer.model (SentencePiece's ModelProto), in place of the settings from `tokens` on
  chat_template,               // a Jinja program; if the file has further templates, Settings::chat_template() finds them by name
  sampling_temperature,        // the authors' advice: divisor of logits. tessera applies none of the advice by itself
  sampling_top_k,              // the authors' advice: candidates that top-k keeps
  sampling_top_p,              // the authors' advice: probability that top-p keeps
  sampling_min_p,              // the authors' advice: least share of the best candidate's probability, for min-p
  count
};
inline constexpr std::size_t kSettings = static_cast<std::size_t>(Setting::count);

// to_string() returns a setting's name, spelled as in the enum. setting_named() returns the setting that has the name, or nullopt.
[[nodiscard]] std::string_view to_string(Setting setting) noexcept;
[[nodiscard]] std::optional<Setting> setting_named(std::string_view name) noexcept;

// The types of a file's values, and of a list's elements. The numbers are GGUF's.
enum class ValueType : std::uint32_t {
  u8 = 0, i8 = 1, u16 = 2, i16 = 3, u32 = 4, i32 = 5, f32 = 6, boolean = 7, string = 8, array = 9, u64 = 10, i64 = 11, f64 = 12
};

[[nodiscard]] std::string_view to_string(ValueType type) noexcept;

// A list of values of one type. The list views the source's memory, so that a vocabulary is not copied. Strings cannot be read by index:
// iterate over strings().
//
//   auto tokens = settings.list(Setting::tokens);
//   for (const std::string_view text : tokens->strings()) std::printf("%.*s\n", int(text.size()), text.data());
class ValueList {
 public:
  ValueList() noexcept = default;  // an empty list
  // Makes a view of `count` elements that follow each other in `bytes`, little-endian. A string is its length (u64), then its text.
  ValueList(ValueType type, std::uint64_t count, std::span<const std::byte> bytes) noexcept
      : type_(type), count_(count), bytes_(bytes) {}
  explicit ValueList(std::span<const std::int32_t> values) noexcept : ValueList(ValueType::i32, values.size(), std::as_bytes(values)) {}
  explicit ValueList(std::span<const float> values) noexcept : ValueList(ValueType::f32, values.size(), std::as_bytes(values)) {}
  explicit ValueList(std::span<const std::string> values) noexcept
      : type_(ValueType::string), count_(values.size()), texts_(values.data()) {}

  [[nodiscard]] ValueType type() const noexcept { return type_; }  // type of an element
  [[nodiscard]] std::uint64_t size() const noexcept { return count_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }  // empty for a list of std::string
  // Returns whether bytes() has all size() elements and, in a list of strings, no bytes after the last string. If false, do not call the
  // functions below. Settings::list() returns only lists for which this is true.
  [[nodiscard]] bool is_whole() const noexcept;
  [[nodiscard]] std::uint64_t text_bytes() const noexcept;  // bytes of all strings together

  // integer() and number() return element i, converted; 0 if i >= size(). Preconditions: is_whole() and, for integer(), is_integer(); for
  // number(), is_number(). is_integer() and is_number() return whether the elements' type can be converted.
  [[nodiscard]] bool is_integer() const noexcept;
  [[nodiscard]] bool is_number() const noexcept;
  [[nodiscard]] std::int64_t integer(std::uint64_t i) const noexcept;
  [[nodiscard]] double number(std::uint64_t i) const noexcept;

  class StringIterator {
   public:
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    StringIterator() noexcept = default;
    explicit StringIterator(const std::byte* at) noexcept : at_(at) {}
    explicit StringIterator(const std::string* text) noexcept : text_(text) {}
    [[nodiscard]] std::string_view operator*() const noexcept;
    StringIterator& operator++() noexcept;
    StringIterator operator++(int) noexcept { auto old = *this; ++*this; return old; }
    bool operator==(const StringIterator&) const noexcept = default;

   private:
    const std::byte* at_ = nullptr;      // at a string's u64 length
    const std::string* text_ = nullptr;  // or one element of an array of std::string
  };
  struct Strings {
    StringIterator first, last;
    [[nodiscard]] StringIterator begin() const noexcept { return first; }
    [[nodiscard]] StringIterator end() const noexcept { return last; }
  };
  [[nodiscard]] Strings strings() const noexcept;  // empty unless type() is string

 private:
  ValueType type_ = ValueType::u8;
  std::uint64_t count_ = 0;
  std::span<const std::byte> bytes_;
  const std::string* texts_ = nullptr;
};

using SettingValue = std::variant<bool, std::int64_t, std::uint64_t, double, std::string_view, ValueList>;

// A key of the file, under the file's own name, and its value.
struct FileKey {
  std::string_view name;  // "general.file_type"
  SettingValue value;
};

// The settings of one model. To read another kind of file, implement find(); the other virtual functions have defaults. called(), place(),
// kind() and origin() are for error messages: they return the words of the file, so that users find in their file what an error names.
//
//   auto layers = settings.unsigned_integer(Setting::n_layers);
//   auto scale = settings.number_or(Setting::logit_scale, 1.0);
class Settings {
 public:
  virtual ~Settings() = default;

  // Returns a setting's value; nullopt if the file does not have the setting. Strings and lists view the source's memory and live as long
  // as the source.
  [[nodiscard]] virtual std::optional<SettingValue> find(Setting setting) const noexcept = 0;

  // Returns the file's name of a setting ("llama.context_length"), for errors. Must also work for a setting that the file does not have.
  // Default: to_string(setting).
  [[nodiscard]] virtual std::string called(Setting setting) const;
  // Returns the place of a setting in the file, for errors: "key llama.context_length (offset 24)".
  [[nodiscard]] virtual std::string place(Setting setting) const;
  // Returns the type of a setting's value as the file has it, for errors: "of type u32". Default: the type of the SettingValue, "an
  // integer".
  [[nodiscard]] virtual std::string kind(Setting setting) const;
  // Returns the file's name, for errors: "model.gguf". Default: empty.
  [[nodiscard]] virtual std::string origin() const;
  // Returns an error if these are the settings of an empty handle (docs/headers.md).
  [[nodiscard]] virtual Status status() const noexcept;
  // Returns the chat template of a name ("tool_use"), for files that have several. Default: Setting::chat_template for "", and nullopt
  // for other names.
  [[nodiscard]] virtual std::optional<std::string_view> chat_template(std::string_view name) const noexcept;

  // Returns key number `index` of the file, in the file's order, including keys that have no Setting. Returns nullopt after the last key.
  // Default: nullopt.
  [[nodiscard]] virtual std::optional<FileKey> file_key(std::size_t index) const noexcept;
  // Returns the value of the file's key `name` ("general.file_type"), or nullopt. Default: searches with file_key().
  [[nodiscard]] virtual std::optional<SettingValue> find_key(std::string_view name) const noexcept;

  [[nodiscard]] bool has(Setting setting) const noexcept { return find(setting).has_value(); }
  [[nodiscard]] bool has_list(Setting setting) const noexcept;

  // Return a setting's value. number() also accepts integers. Errors: not_found, the setting is absent; corrupt_file, the value has another
  // type, or is negative (unsigned_integer()).
  [[nodiscard]] Result<std::uint64_t> unsigned_integer(Setting setting) const noexcept;
  [[nodiscard]] Result<double> number(Setting setting) const noexcept;
  [[nodiscard]] Result<bool> boolean(Setting setting) const noexcept;
  [[nodiscard]] Result<std::string_view> string(Setting setting) const noexcept;
  [[nodiscard]] Result<ValueList> list(Setting setting) const noexcept;

  // As above, but return `absent` if the setting is absent. Errors: corrupt_file.
  [[nodiscard]] Result<std::uint64_t> unsigned_integer_or(Setting setting, std::uint64_t absent) const noexcept;
  [[nodiscard]] Result<double> number_or(Setting setting, double absent) const noexcept;
  [[nodiscard]] Result<bool> boolean_or(Setting setting, bool absent) const noexcept;
  [[nodiscard]] Result<std::string_view> string_or(Setting setting, std::string_view absent) const noexcept;
};

}  // namespace tessera
