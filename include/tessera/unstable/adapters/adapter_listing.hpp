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
    std::string name;                 // as the file has it
    std::string type;                 // "BF16"
    std::vector<std::uint64_t> dims;  // outermost first
    std::uint64_t bytes;
  };
  std::string_view kind;              // "GGUF" or "PEFT"
  std::string name, base;             // may be empty
  std::string architecture;           // the base model's; empty if the file does not say
  double alpha = 0.0;                 // 0: the file gives none
  bool is_rank_stabilised = false;    // rsLoRA
  bool has_lengths = false;           // DoRA
  std::vector<std::uint64_t> ranks;   // of the matrices, each once, ascending
  std::vector<Token> invocation;      // aLoRA
  std::vector<Tensor> tensors;        // in the order of the file
};

// Returns whether a path is an adapter: a GGUF file whose general.type is "adapter", a folder with adapter_config.json, or a file of one.
[[nodiscard]] bool is_adapter(const std::filesystem::path& path) noexcept;

// Lists an adapter. Errors: those with which Engine refuses the adapter whatever the model is.
[[nodiscard]] Result<AdapterListing> list_adapter(const std::filesystem::path& path) noexcept;

}  // namespace tessera
