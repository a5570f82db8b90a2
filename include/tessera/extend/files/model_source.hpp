// A model before it is loaded: its settings, and tensors that can be read. Each kind of file is an implementation (ModelFile is GGUF's).
// A host that keeps models in another way writes its own and gives it to Engine::load().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>
#include <tessera/extend/core/input_rounding.hpp>
#include <tessera/extend/files/settings.hpp>

namespace tessera {

// A tensor's name, type, shape and place in the file.
struct TensorInfo {
  std::string_view name;
  DType dtype;                        // as the file has it; if it is no weight format of the library, the tensor cannot be loaded
  std::uint32_t n_dims;
  std::array<std::uint64_t, 4> dims;  // innermost first; unused ones are 1
  std::uint64_t offset;               // offset of the data in the file
  std::uint64_t bytes;                // bytes of the data; if `dtype` is no weight format: bytes up to the next tensor
  std::uint32_t part = 0;             // index of the file that has the tensor, if a model consists of several files
};

// Engine::load() checks shapes and types of tensors against the settings, and copies what it needs: the source may be destroyed afterwards.
// Rules for your own source:
// - Tensors have the library's names, which are spelled as in GGUF files ("blk.0.attn_q.weight"; src/model/load/roles.hpp lists them).
// - TensorInfo::bytes is the size of `dims` values of `dtype`.
// - A function that is called again returns the same as before.
// Threads: every function may be called from several at once.
//
//   auto source = open_model("model.gguf");
//   auto name = (*source)->settings().string_or(Setting::name, "");
//   for (const TensorInfo& tensor : (*source)->tensors()) std::printf("%.*s\n", int(tensor.name.size()), tensor.name.data());
class ModelSource {
 public:
  virtual ~ModelSource() = default;

  [[nodiscard]] virtual const Settings& settings() const noexcept = 0;
  // Returns all tensors, in any order. The list and the names in it live as long as the source.
  [[nodiscard]] virtual std::span<const TensorInfo> tensors() const noexcept = 0;
  // Returns the element of tensors() of that name, or nullptr.
  [[nodiscard]] virtual const TensorInfo* find_tensor(std::string_view name) const noexcept = 0;
  // Reads bytes [offset, offset + out.size()) of a tensor's data. Precondition: `tensor` is an element of tensors(). Loading reads weights
  // in the order of (part, offset).
  [[nodiscard]] virtual Status read(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const noexcept = 0;
  // Returns how the model's files call a tensor, for errors: "model.layers.0.self_attn.q_proj.weight" for "blk.0.attn_q.weight". The source
  // need not have the tensor. Default: `name`.
  [[nodiscard]] virtual std::string called(std::string_view name) const { return std::string(name); }
  // Returns how the files say that the inputs of a matrix are rounded. Precondition: `tensor` is an element of tensors(). Default: not at all.
  // Errors: unsupported, a rounding that tessera does not compute; those of reading.
  [[nodiscard]] virtual Result<InputRounding> input_rounding(const TensorInfo&) const noexcept { return InputRounding(); }
  // Returns how many bytes of memory the source holds, for Engine::plan().
  [[nodiscard]] virtual std::uint64_t memory_bytes() const noexcept = 0;
};

// Opens the model at a path: a GGUF file, in one part or several, a folder with one, or a folder as hubs publish models (config.json,
// *.safetensors, the tokenizer's files), or a file of such a folder. Errors: not_found, a file is missing; corrupt_file; unsupported, such as a
// type of model or a quantisation that is not read; io; cancelled, by `stop`.
[[nodiscard]] Result<std::shared_ptr<const ModelSource>> open_model(const std::filesystem::path& path,
                                                                    const std::stop_token& stop = {}) noexcept;

}  // namespace tessera
