// A model before it is loaded: its settings, and tensors that can be read. Each kind of file has an implementation (ModelFile reads GGUF).
// A host that stores models in another way implements ModelSource and passes the object to Engine::load().
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
  DType dtype;                        // type in the file; a tensor whose type is not a weight format of the library cannot be loaded
  std::uint32_t n_dims;
  std::array<std::uint64_t, 4> dims;  // sizes, innermost first; unused sizes are 1
  std::uint64_t offset;               // offset of the data in the file
  std::uint64_t bytes;                // bytes of the data; if `dtype` is not a weight format: bytes up to the next tensor
  std::uint32_t part = 0;             // index of the file that has the tensor, if a model consists of several files
};

// The interface of a model's source. Engine::load() checks shapes and types of tensors against the settings, and copies the values that it
// needs. The source may be destroyed after loading.
// Rules for your own source:
// - Tensors have the library's names, which are spelled as in GGUF files ("blk.0.attn_q.weight"; src/model/load/roles.hpp lists them).
// - TensorInfo::bytes is the size of `dims` values of `dtype`.
// - A repeated call of a function returns the same result.
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
  // Returns the element of tensors() with this name, or nullptr.
  [[nodiscard]] virtual const TensorInfo* find_tensor(std::string_view name) const noexcept = 0;
  // Reads bytes [offset, offset + out.size()) of a tensor's data. Precondition: `tensor` is an element of tensors(). Loading reads weights
  // in the order of (part, offset).
  [[nodiscard]] virtual Status read(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const noexcept = 0;
  // Returns the name of a tensor in the model's files, for errors: "model.layers.0.self_attn.q_proj.weight" for "blk.0.attn_q.weight". Must
  // also work for a tensor that the source does not have. Default: `name`.
  [[nodiscard]] virtual std::string called(std::string_view name) const { return std::string(name); }
  // Returns the sentence of the error for a tensor whose shape differs from the shape that follows from the settings. The sentence has both
  // shapes, with the dimensions in the order of the model's files. `wanted`: the shape that follows from the settings, innermost dimension
  // first; 1 for unused dimensions. Precondition: the tensor is an element of tensors(). Default: returns an empty text; the library then
  // writes a sentence that has both shapes with the innermost dimension first.
  [[nodiscard]] virtual std::string wrong_shape(const TensorInfo&, const std::array<std::uint64_t, 4>& /* wanted */) const { return {}; }
  // Returns how the inputs of a matrix are rounded, as the model's files state it. Precondition: `tensor` is an element of tensors().
  // Default: not rounded. Errors: unsupported, a rounding that tessera does not compute; errors of reading.
  [[nodiscard]] virtual Result<InputRounding> input_rounding(const TensorInfo&) const noexcept { return InputRounding(); }
  // Returns how many bytes of memory the source holds, for Engine::plan().
  [[nodiscard]] virtual std::uint64_t memory_bytes() const noexcept = 0;
};

// Opens the model at `path`. `path` is a GGUF file (whole or split), a folder with a GGUF file, a folder as hubs publish models
// (config.json, *.safetensors, the tokenizer's files), or a file of such a folder. Errors: not_found, a file is missing; corrupt_file;
// unsupported, for example an architecture or a quantisation that the library does not read; io; cancelled, by `stop`.
[[nodiscard]] Result<std::shared_ptr<const ModelSource>> open_model(const std::filesystem::path& path,
                                                                    const std::stop_token& stop = {}) noexcept;

}  // namespace tessera
