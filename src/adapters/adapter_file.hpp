// An adapter (LoRA: Hu et al. 2021) as its file describes it: for each matrix W of the model that it changes, two small matrices A and B, so
// that the product W x becomes W x + scale * B (A x). With DoRA (Liu et al. 2024) each row of the sum is then scaled to a given length.
//
// Two kinds of files exist: GGUF, and the folders of PEFT (adapter_config.json and adapter_model.safetensors). Both are read into the same
// AdapterFile, whose matrices belong to tensors of a ModelSource: under its names, and with rows and columns in the order of its tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/extend/core/hash.hpp>
#include <tessera/extend/files/settings.hpp>

namespace tessera::detail {

inline constexpr std::uint32_t kMaxAdapterRank = 4096;

// A model's tensor to which an adapter may belong. Only matrices are listed.
struct AdaptedTensor {
  std::string name;             // the library's name: "blk.0.attn_q.weight"
  std::uint64_t inputs = 0;     // length of a row
  std::uint64_t outputs = 0;    // rows of one matrix
  std::uint64_t count = 1;      // matrices in the tensor: experts, or heads of latent attention
};

// The model for which an adapter is read.
struct AdapterBase {
  std::string_view architecture;              // as ModelSpec::architecture
  const Settings& settings;
  std::span<const AdaptedTensor> tensors;     // sorted by name
  std::uint32_t n_layers = 0;                 // without draft heads
  std::uint64_t vocab_size = 0;
  // Heads, and KV heads, of the layers that have some. 0: as the settings say; an engine's settings lack what is a list for all layers.
  std::uint64_t heads = 0, kv_heads = 0;
};

// The change of one tensor. `a` and `b` have one matrix for each matrix of the tensor, or one for all of them.
// Exception: the change of the table of embeddings has one row of `a` for each token, [vocab_size, rank], and `b` [inputs, rank]; token t's row
// of the table changes by scale * b a[t]. (`inputs` is the width of the table's rows.)
struct AdapterTensor {
  std::uint32_t tensor = 0;     // index into AdapterBase::tensors
  std::uint32_t rank = 0;       // > 0
  DType dtype = DType::f32;     // of `a` and `b`: F32, F16 or BF16
  std::uint64_t a_count = 1, b_count = 1;
  std::vector<std::byte> a = {};  // [a_count, rank, inputs]; embeddings: [vocab_size, rank]
  std::vector<std::byte> b = {};  // [b_count, outputs, rank]; embeddings: [inputs, rank]
  std::vector<float> lengths = {};  // [count * outputs], DoRA's magnitude: the length of each row of W + scale * B A; empty: not DoRA
  float scale = 1.0f;           // alpha / rank, alpha / sqrt(rank) (rsLoRA), or 1 if the file gives no alpha
  // true: the change of the table of embeddings, where it changes a token's row and not a product. If the table is the output matrix too
  // (tied embeddings), the product with it does not change. false: the change of a product. In a tied model the change of the output's
  // product has the table as its `tensor` too.
  bool is_embedding = false;
};

struct AdapterFile {
  std::string name;                      // general.name, or the folder's name
  std::string base;                      // the base model's name, as the file says; may be empty
  std::vector<Token> invocation;         // aLoRA: the tokens from whose beginning on the adapter is active; empty: from the first token on
  std::vector<AdapterTensor> tensors;    // sorted by `tensor`, no two of the same tensor and kind
  Hash128 content;                       // hash of all of the above but the names: equal adapters have equal hashes
};

// Returns whether a path is an adapter, by what is there: a GGUF file whose general.type is "adapter", a folder with adapter_config.json, or a
// file of such a folder.
[[nodiscard]] bool is_adapter(const std::filesystem::path& path) noexcept;

// Reads an adapter, and checks that it fits the model. Errors, which name the file and the tensor or key, and say what differs:
//   not_found     there is no such file
//   corrupt_file  the file is damaged, has a tensor without its other half, a shape that does not fit the model, or NaN
//   unsupported   another kind of adapter, a model of another architecture, a tensor that cannot be adapted, modules_to_save, trained biases
//   io, cancelled
// Cost: the file is read once. No more memory is taken than twice the file's size (quantised tensors count with their size in F32) + 64 MB,
// whatever the file claims.
[[nodiscard]] Result<AdapterFile> read_adapter(const std::filesystem::path& path, const AdapterBase& base, const std::stop_token& stop);

}  // namespace tessera::detail
