// Names of formats and mixes, and the format that each tensor of a model gets. A mix of llama.cpp (such as Q4_K_M) uses more bits for those
// tensors where llama.cpp's authors measured a benefit. The rules are those of llama.cpp's llama_tensor_get_type (llama-quant.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>
#include <tessera/extend/files/model_file.hpp>

namespace tessera::tool {

enum class Mix { none, small, medium, large };  // none: one format for all matrices; others: _S, _M (or no letter), _L

struct Target {
  DType format = DType::q8_0;
  Mix mix = Mix::none;
};

// Returns the names of all targets, best first, for messages.
[[nodiscard]] std::string target_names();
// Returns all formats without a mix, with their bits a weight: "F32 32   F16 16   ...".
[[nodiscard]] std::string formats_with_bits();
// Parses the name of a format or mix, such as "Q4_K_M", in upper or lower case. There are two errors: one for a format that exists, but
// that tessera cannot write, and one for an unknown name.
[[nodiscard]] Result<Target> parse_target(std::string_view name);
[[nodiscard]] std::string name_of(const Target& target);
// Returns general.file_type, llama.cpp's number of a whole file's format.
[[nodiscard]] std::uint32_t file_type(const Target& target) noexcept;
// Returns the name of a model's format, to show it. If general.file_type names a medium mix (such as Q4_K_M), returns this mix. If not,
// returns the type that has the most bytes of weights, or "?" for a file without matrices.
[[nodiscard]] std::string format_of(const ModelSource& model);

// Returns the format for a matrix with rows of `row` values. If such rows are whole blocks of `wanted`, this is `wanted`. If not, it is the
// format that llama.cpp uses instead, or F16 if llama.cpp has no rule.
[[nodiscard]] DType fitting(DType wanted, std::uint64_t row) noexcept;

// The facts about a model that the rules of a mix need.
struct MixedModel {
  std::string architecture;
  std::uint64_t layers = 0, heads = 0, kv_heads = 0;
  std::vector<std::uint64_t> value_layers;  // layers with attn_v or attn_qkv, ascending
};
[[nodiscard]] MixedModel mixed_model(const ModelSource& model);

class Rules {
 public:
  Rules(MixedModel model, const Target& target);

  // Returns the format of a weight matrix, before fitting().
  [[nodiscard]] DType format_of(std::string_view name) const;
  // Returns the format of the output matrix, which affects every logit (or of a token embedding that is also the output matrix).
  [[nodiscard]] DType output() const noexcept;

 private:
  [[nodiscard]] DType attention_values(std::string_view name) const;
  [[nodiscard]] DType attention_output() const noexcept;
  [[nodiscard]] DType ffn_down(std::string_view name) const;

  Target target_;
  MixedModel model_;
  bool falcon_ = false;
  bool four_share_ = false;   // four heads or more share a key and a value
  bool wide_groups_ = false;  // a 70B: eight heads share a key and a value
};

}  // namespace tessera::tool
