// The contents of an adapter in one file. Only GGUF files are read in this way (files/gguf/adapter_contents.cpp). Code in src/adapters fits
// the contents to a model, and makes an AdapterFile from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/extend/files/model_source.hpp>

namespace tessera::detail {

class AdapterContents {
 public:
  virtual ~AdapterContents() = default;

  std::string name, base;         // names of the adapter and of the base model, as in the file; may be empty
  std::string architecture;       // the base model's architecture
  double alpha = 0.0;             // numerator of the scale alpha / rank; 0: the file states none, and the scale is 1
  std::vector<Token> invocation;  // aLoRA's tokens; empty: not aLoRA

  // Returns the tensors, in the order of the file. A tensor's name is the name of the model's tensor that it changes, then ".lora_a" or
  // ".lora_b". Dims, innermost first: A [inputs, rank, count], B [rank, outputs, count], where `count` is the number of matrices in the
  // model's tensor (one for each expert; otherwise 1). For the table of embeddings: A [rank, tokens], B [rank, width].
  [[nodiscard]] virtual std::span<const TensorInfo> tensors() const noexcept = 0;
  // Reads all bytes of an element of tensors().
  [[nodiscard]] virtual Status read(const TensorInfo& tensor, std::span<std::byte> out) const noexcept = 0;
};

// Returns whether a file says that it is an adapter; false if the file cannot be read.
[[nodiscard]] bool is_adapter_file(const std::filesystem::path& path);

// Opens an adapter's file. If the file states more than `most_tensors` tensors, it is refused before they are read. Errors: not_found;
// corrupt_file; unsupported, the file is a model, or a kind of adapter that tessera does not read; io; cancelled, by `stop`.
[[nodiscard]] Result<std::shared_ptr<const AdapterContents>> open_adapter_file(const std::filesystem::path& path, std::uint64_t most_tensors,
                                                                               const std::stop_token& stop);

}  // namespace tessera::detail
