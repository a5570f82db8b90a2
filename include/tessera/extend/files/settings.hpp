// A model's settings: its numbers, its tokenizer's rules, its chat template and how its authors would draw from it, by names of our own.
// Each kind of file (GGUF, or one that a host brings) implements Settings, so that nothing above knows the kind.
// Threads: every function may be called from several at once.
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

// A setting that may be a list has one element a layer. The numbers of settings may change between versions: store names (to_string()).
enum class Setting : std::uint16_t {
  architecture,                // the name of the model's architecture (known_architectures.hpp)
  name,                        // the model's name
  pooling,                     // 1: a text's embedding is the mean of its rows; 3: its last row
  vocab_size,                  // rows of the embedding table
  context,                     // positions that the model knows
  d_model,                     // values of the residual stream
  n_layers,                    // number of layers, those that guess further tokens included
  n_further_layers,            // number of layers behind the last that guess further tokens
  rms_norm_eps,                // epsilon, in architectures with RMS norms
  layer_norm_eps,              // epsilon, in architectures with layer norms
  embedding_scale,             // factor of embeddings
  residual_scale,              // factor of each branch's output
  logit_scale,                 // factor or divisor of logits, as the architecture has it
  logit_softcap,               // bound of logits
  per_layer_dim,               // values of each layer's own embedding of a token
  causal,                      // true: a row sees no later row; nothing else is implemented
  n_heads,                     // query heads; a list: a number a layer
  n_kv_heads,                  // heads of keys and values; a list: a number a layer
  key_dim,                     // values of a head's key
  value_dim,                   // values of a head's value
  windowed_key_dim,            // key_dim of layers with a sliding window, where it differs
  windowed_value_dim,          // value_dim of layers with a window, where it differs
  score_scale,                 // factor of attention scores
  score_softcap,               // bound of attention scores
  window,                      // positions that a row sees; a list: a number a layer
  window_pattern,              // N: every Nth layer has no window; a list of booleans: the layers with one
  global_tokens,               // first positions that every row sees beside its window; may be a list
  temperature_scale,           // growth of queries with their position
  temperature_length,          // positions after which queries grow
  shared_kv_layers,            // last layers that read an earlier layer's keys and values
  max_alibi_bias,              // not implemented: 0
  clamp_kqv,                   // not implemented: 0
  full_attention_interval,     // N: every Nth layer attends, the others are recurrent
  recurrent_layers,            // a list of booleans: the recurrent layers
  latent_key_dim,              // values of a head's key, in latent attention
  latent_value_dim,            // values of a head's value, in latent attention
  latent_rank,                 // values of a token's latent
  query_rank,                  // values of a query's latent; 0: it has none
  rope_dim,                    // elements of a head that rotate
  windowed_rope_dim,           // rope_dim of layers with a window, where it differs
  rope_theta,                  // the base of the frequencies
  windowed_rope_theta,         // rope_theta of layers with a window, where it differs
  rope_scale_linear,           // divisor of positions, as old converters wrote it
  rope_scaling,                // none, linear, yarn or longrope
  rope_scaling_factor,         // divisor of positions
  rope_is_finetuned,           // true: heads rotate, in architectures where files say so
  original_context,            // positions of the first training
  rope_magnitude,              // factor of rotated elements
  yarn_magnitude,              // factor of rotated elements, with YaRN
  yarn_beta_fast,              // rotations within the original context from which on a pair keeps its frequency
  yarn_beta_slow,              // rotations within the original context up to which a pair is slowed in full
  yarn_share,                  // only 1 is implemented
  yarn_log_multiplier,         // YaRN's magnitude is divided by 0.1 * this * ln(factor) + 1
  ffn_dim,                     // values inside the feed-forward part; a list: a number a layer
  n_experts,                   // experts of a layer
  n_used_experts,              // experts that a row takes; may be a list
  n_dense_layers,              // first layers without experts
  expert_dim,                  // values inside an expert; may be a list
  expert_width,                // width of the experts' inputs and outputs, where it is not d_model
  n_shared_experts,            // experts that every row takes
  shared_expert_dim,           // values inside all shared experts together
  expert_routing,              // 1 softmax, 2 sigmoid, 3 softmax of the chosen
  renormalise_experts,         // true: the chosen experts' weights are made to sum to 1
  expert_scale,                // factor of the chosen experts' sum
  n_expert_groups,             // groups that experts are chosen from
  n_used_expert_groups,        // groups that a row takes
  moe_every_n_layers,          // only 1 is implemented
  interleave_moe_layer_step,   // only 1 is implemented
  conv_width,                  // rows that the convolution of a recurrent mixer sees
  short_conv_width,            // rows that a short convolution sees
  state_keys,                  // keys of a head's state
  state_heads,                 // heads of the state
  state_groups,                // groups of heads that share keys
  state_columns,               // values of all heads of the state together
  tokenizer_model,             // llama, gpt2, t5 or gemma4; none or no_vocab: there is none
  pre_tokenizer,               // name of the rule that cuts a text into words
  tokens,                      // a list of the tokens' texts
  token_types,                 // a list of TokenType
  token_scores,                // a list of numbers
  merges,                      // a list of "left right", by rank
  suppressed_tokens,           // a list of ids that are never drawn
  charsmap,                    // a list of bytes: a normaliser as SentencePiece writes it
  bos_token,                   // token id, as the next settings
  eos_token,
  unknown_token,
  padding_token,
  end_of_turn_token,
  end_of_message_token,
  fill_before_token,           // token in front of the text before a gap
  fill_behind_token,           // token in front of the text behind the gap
  fill_middle_token,           // token in front of the text that fills the gap
  add_bos,                     // true: encoding puts BOS in front
  add_eos,                     // true: encoding puts EOS behind
  add_space_prefix,            // true: encoding puts a space in front
  remove_extra_spaces,         // true: several spaces become one
  chat_template,               // a Jinja program; Settings::chat_template() finds others by their names
  sampling_temperature,        // the authors' advice: divisor of logits. tessera applies none of the advice by itself
  sampling_top_k,              // the authors' advice: candidates that top-k keeps
  sampling_top_p,              // the authors' advice: probability that top-p keeps
  sampling_min_p,              // the authors' advice: least share of the best candidate's probability, for min-p
  count
};
inline constexpr std::size_t kSettings = static_cast<std::size_t>(Setting::count);

// Return a setting's name as it is written above, and the setting of a name; nullopt if no setting has the name.
[[nodiscard]] std::string_view to_string(Setting setting) noexcept;
[[nodiscard]] std::optional<Setting> setting_named(std::string_view name) noexcept;

// Type of a list's elements. The numbers are GGUF's.
enum class ValueType : std::uint32_t {
  u8 = 0, i8 = 1, u16 = 2, i16 = 3, u32 = 4, i32 = 5, f32 = 6, boolean = 7, string = 8, array = 9, u64 = 10, i64 = 11, f64 = 12
};

[[nodiscard]] std::string_view to_string(ValueType type) noexcept;

// A list's elements, of one type, viewed in the source's memory: a vocabulary is not copied. Strings have no index; iterate over
// strings().
//
//   auto tokens = settings.list(Setting::tokens);
//   for (const std::string_view text : tokens->strings()) std::printf("%.*s\n", int(text.size()), text.data());
class ValueList {
 public:
  ValueList() noexcept = default;  // an empty list
  // Views elements that lie one behind another, little-endian. A string is its length (u64) and its text.
  ValueList(ValueType type, std::uint64_t count, std::span<const std::byte> bytes) noexcept
      : type_(type), count_(count), bytes_(bytes) {}
  explicit ValueList(std::span<const std::int32_t> values) noexcept : ValueList(ValueType::i32, values.size(), std::as_bytes(values)) {}
  explicit ValueList(std::span<const float> values) noexcept : ValueList(ValueType::f32, values.size(), std::as_bytes(values)) {}
  explicit ValueList(std::span<const std::string> values) noexcept
      : type_(ValueType::string), count_(values.size()), texts_(values.data()) {}

  [[nodiscard]] ValueType type() const noexcept { return type_; }  // type of an element
  [[nodiscard]] std::uint64_t size() const noexcept { return count_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }  // empty for a list of std::string
  // Returns whether bytes() hold size() elements, strings to the last byte. The functions below need it; Settings::list() checks it.
  [[nodiscard]] bool is_whole() const noexcept;
  [[nodiscard]] std::uint64_t text_bytes() const noexcept;  // sum over all strings

  // Return element i, converted. Preconditions: is_whole(), and a numeric or boolean type (is_integer(), is_number()). 0 where i >= size().
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
    const std::string* text_ = nullptr;  // or one of several strings
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

// A key of the file, as the file writes it, and its value.
struct FileKey {
  std::string_view name;  // "general.file_type"
  SettingValue value;
};

// The settings of one model. A source implements find(). The other virtual functions let errors use the file's own words, so that users
// find in the file what an error names.
//
//   auto layers = settings.unsigned_integer(Setting::n_layers);
//   auto scale = settings.number_or(Setting::logit_scale, 1.0);
class Settings {
 public:
  virtual ~Settings() = default;

  // Returns a setting's value, or nullopt. Strings and lists view the source's memory and live as long as the source.
  [[nodiscard]] virtual std::optional<SettingValue> find(Setting setting) const noexcept = 0;

  // Returns the name that the file uses for a setting ("llama.context_length"), for errors. The file need not have the setting. Default:
  // to_string(setting).
  [[nodiscard]] virtual std::string called(Setting setting) const;
  // Returns the place of a setting in the file, for errors: "key llama.context_length (offset 24)".
  [[nodiscard]] virtual std::string place(Setting setting) const;
  // Returns the kind of a setting's value in the file, for errors: "of type u32". Default: the kind of the value here, "an integer".
  [[nodiscard]] virtual std::string kind(Setting setting) const;
  // Returns the file's name, for errors: "model.gguf". Default: empty.
  [[nodiscard]] virtual std::string origin() const;
  // Returns an error if these are the settings of an empty handle (docs/headers.md).
  [[nodiscard]] virtual Status status() const noexcept;
  // Returns the chat template of a name ("tool_use"), for files that have several. Default: Setting::chat_template for "", and nullopt
  // for other names.
  [[nodiscard]] virtual std::optional<std::string_view> chat_template(std::string_view name) const noexcept;

  // Returns the file's key number `index`, in the file's order, whether a Setting names it or not. nullopt from the number of keys on.
  // Default: nullopt.
  [[nodiscard]] virtual std::optional<FileKey> file_key(std::size_t index) const noexcept;
  // Returns the value of the file's key `name` ("general.file_type"), or nullopt. Default: walks file_key().
  [[nodiscard]] virtual std::optional<SettingValue> find_key(std::string_view name) const noexcept;

  [[nodiscard]] bool has(Setting setting) const noexcept { return find(setting).has_value(); }
  [[nodiscard]] bool has_list(Setting setting) const noexcept;

  // Return a setting's value. Errors: not_found if it is absent; corrupt_file if it has another type, or an integer is negative. Integers
  // convert to number().
  [[nodiscard]] Result<std::uint64_t> unsigned_integer(Setting setting) const noexcept;
  [[nodiscard]] Result<double> number(Setting setting) const noexcept;
  [[nodiscard]] Result<bool> boolean(Setting setting) const noexcept;
  [[nodiscard]] Result<std::string_view> string(Setting setting) const noexcept;
  [[nodiscard]] Result<ValueList> list(Setting setting) const noexcept;

  // Return `absent` if the setting is absent. Errors: corrupt_file as above.
  [[nodiscard]] Result<std::uint64_t> unsigned_integer_or(Setting setting, std::uint64_t absent) const noexcept;
  [[nodiscard]] Result<double> number_or(Setting setting, double absent) const noexcept;
  [[nodiscard]] Result<bool> boolean_or(Setting setting, bool absent) const noexcept;
  [[nodiscard]] Result<std::string_view> string_or(Setting setting, std::string_view absent) const noexcept;
};

}  // namespace tessera
