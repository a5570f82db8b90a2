// Names of formats, and which tensor of a model gets which one. llama.cpp's mixes (Q4_K_M and the like) spend more bits
// where its authors measured that they are worth it; the rules are those of its llama_tensor_get_type (llama-quant.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>
#include <tessera/files/model_file.hpp>

namespace tessera::tool {

enum class Mix { none, small, medium, large };  // every matrix alike, ..._S, ..._M (or no letter), ..._L

struct Target {
  DType format = DType::q8_0;
  Mix mix = Mix::none;
};

// The names, best first, for messages.
[[nodiscard]] std::string target_names();
// All formats without a mix, with their bits a weight: "F32 32   F16 16   ...".
[[nodiscard]] std::string formats_with_bits();
// "Q4_K_M", in any case. What tessera cannot write yet is told apart from what nobody can.
[[nodiscard]] Result<Target> parse_target(std::string_view name);
[[nodiscard]] std::string name_of(const Target& target);
// general.file_type, llama.cpp's number of a whole file's format.
[[nodiscard]] std::uint32_t file_type(const Target& target) noexcept;
// What general.file_type says of a mix, else the type of most weight bytes; "?" of a file without matrices.
[[nodiscard]] std::string format_of(const ModelFile& file);

// What a format becomes where rows are not whole blocks of it: llama.cpp's rule, then F16.
[[nodiscard]] DType fitting(DType wanted, std::uint64_t row) noexcept;

// What the rules need to know of a model.
struct MixedModel {
  std::string architecture;
  std::uint64_t layers = 0, heads = 0, kv_heads = 0;
  std::vector<std::uint64_t> value_layers;  // those with attn_v or attn_qkv, ascending
};
[[nodiscard]] MixedModel mixed_model(const ModelFile& model);

class Rules {
 public:
  Rules(MixedModel model, const Target& target);

  // The format of a weight matrix, before its rows are asked whether they are whole blocks of it.
  [[nodiscard]] DType format_of(std::string_view name) const;
  // That of the output matrix, which touches every logit (of the token embedding, where that is both).
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
