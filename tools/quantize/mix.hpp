// Names of formats, and which tensor of a model gets which one. llama.cpp's mixes (Q4_K_M and the like) spend more bits
// where its authors measured that they are worth it; the rules are those of its llama_tensor_get_type (llama-quant.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>
#include <tessera/io/model_file.hpp>

namespace tessera::quantize {

enum class Mix { none, small, medium };  // every matrix alike, ..._S, ..._M

struct Target {
  DType format = DType::q8_0;
  Mix mix = Mix::none;
};

// The names, best first, for messages.
[[nodiscard]] std::string target_names();
// "q4_k_m", in any case. What tessera cannot write yet is told apart from what nobody can.
[[nodiscard]] Result<Target> parse_target(std::string_view name);
// general.file_type, llama.cpp's number of a whole file's format.
[[nodiscard]] std::uint32_t file_type(const Target& target) noexcept;

// What the rules need to know of a model.
class Rules {
 public:
  Rules(const ModelFile& model, const Target& target);

  // The format of a weight matrix, before its rows are asked whether they are whole blocks of it.
  [[nodiscard]] DType format_of(std::string_view name) const;
  // That of the output matrix, which touches every logit (of the token embedding, where that is both).
  [[nodiscard]] DType output() const noexcept;

 private:
  [[nodiscard]] DType attention_values(std::string_view name) const;
  [[nodiscard]] DType ffn_down(std::string_view name) const;

  Target target_;
  bool falcon_ = false;
  bool wide_groups_ = false;                  // a 70B: eight heads share a key and a value
  std::uint64_t layers_ = 0;
  std::vector<std::uint64_t> value_layers_;   // those with attn_v or attn_qkv, ascending
};

}  // namespace tessera::quantize
