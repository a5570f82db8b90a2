// Finds out which tensors of a PEFT adapter's file belong together. A module is a part of the model (such as q_proj of layer 0) to which
// PEFT has added matrices A and B.
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
  // PEFT can adapt several parameters of one module. Then it puts a wrapper around the module for each parameter, one around the other.
  // depth: the number of wrappers around this parameter's wrapper; 0 for the outermost wrapper.
  std::uint32_t depth = 0;
  bool is_embedding = false;
  const SafetensorsTensor* a = nullptr;        // [rank, inputs]; embeddings [rank, tokens]
  const SafetensorsTensor* b = nullptr;        // [outputs, rank]; embeddings [width, rank]
  const SafetensorsTensor* lengths = nullptr;  // DoRA [outputs]; nullptr if there are none
};

struct PeftModules {
  std::vector<PeftModule> modules;  // sorted by name and depth
  // Copies of the model's own table of embeddings and output matrix, which PEFT saves with an adapter. These tensors change nothing.
  std::vector<std::pair<std::string_view, const SafetensorsTensor*>> copies;  // name of the module, tensor
};

// Returns the modules of a file. Errors (the message names the tensor): corrupt_file, an A without its B or a B without its A, or a wrong
// shape; unsupported, a tensor that does not belong to LoRA or DoRA, such as a weight that was trained itself.
[[nodiscard]] Result<PeftModules> list_modules(const SafetensorsFolder& file, const std::string& place);

}  // namespace tessera::detail::adapters
