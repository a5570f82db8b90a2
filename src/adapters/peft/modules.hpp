// The modules of a PEFT adapter: which tensors of the file belong together. A module is a part of the model to which PEFT adds A and B.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/core/result.hpp>

#include "files/safetensors/safetensors_folder.hpp"

namespace tessera::detail::adapters {

struct PeftModule {
  std::string_view name;  // without "base_model.model." and what PEFT adds: "model.layers.0.self_attn.q_proj"
  // Parameters of one module are wrapped one into the other. depth: the number of wrappers around this parameter's wrapper, 0 for the
  // outermost.
  std::uint32_t depth = 0;
  bool is_embedding = false;
  const SafetensorsTensor* a = nullptr;        // [rank, inputs]; embeddings [rank, tokens]
  const SafetensorsTensor* b = nullptr;        // [outputs, rank]; embeddings [width, rank]
  const SafetensorsTensor* lengths = nullptr;  // DoRA [outputs]; nullptr if there are none
};

struct PeftModules {
  std::vector<PeftModule> modules;  // sorted by name and depth
  // Copies of the model's own tables of embeddings and output matrices, which PEFT saves along. They change nothing.
  std::vector<std::pair<std::string_view, const SafetensorsTensor*>> copies;  // the module, the tensor
};

// Returns the modules of a file. Errors, which name the tensor: corrupt_file, an A without its B or a B without its A, or a wrong shape;
// unsupported, a tensor that is no part of LoRA or DoRA, such as a module that was trained as a whole.
[[nodiscard]] Result<PeftModules> list_modules(const SafetensorsFolder& file, const std::string& place);

}  // namespace tessera::detail::adapters
