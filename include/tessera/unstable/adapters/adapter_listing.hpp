// Lists what an adapter's file holds, without a model, for tessera-inspect.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>

namespace tessera {

struct AdapterListing {
  struct Tensor {
    std::string name;                 // name in the file
    std::string type;                 // "BF16"
    std::vector<std::uint64_t> dims;  // outermost first
    std::uint64_t bytes;
  };
  std::string_view kind;              // "GGUF" or "PEFT"
  std::string name, base;             // may be empty
  std::string architecture;           // architecture of the base model; empty if the file does not state it
  double alpha = 0.0;                 // LoRA's alpha; 0: the file states none
  bool is_rank_stabilised = false;    // rsLoRA
  bool has_lengths = false;           // DoRA
  std::vector<std::uint64_t> ranks;   // the ranks that occur among the matrices, each once, ascending
  std::vector<Token> invocation;      // aLoRA
  std::vector<Tensor> tensors;        // in the order of the file
};

// Returns whether a path is an adapter. It can be a GGUF file whose general.type is "adapter", a folder with an adapter_config.json, or a
// file in such a folder.
[[nodiscard]] bool is_adapter(const std::filesystem::path& path) noexcept;

// Lists an adapter. Errors: those of Engine::adapter() that do not depend on the model.
[[nodiscard]] Result<AdapterListing> list_adapter(const std::filesystem::path& path) noexcept;

}  // namespace tessera
