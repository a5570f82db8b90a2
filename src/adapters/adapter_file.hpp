// An adapter (LoRA: Hu et al. 2021) as its file describes it. For each matrix W of the model that the adapter changes, it has two small
// matrices A and B: the product W x becomes W x + scale * B (A x). With DoRA (Liu et al. 2024) each row of W + scale * B A is then scaled to
// a given length.
//
// Two kinds of files exist: GGUF, and the folders of PEFT (adapter_config.json and adapter_model.safetensors). Either kind is read into
// an AdapterFile. The matrices of an AdapterFile belong to tensors of a ModelSource, and have rows and columns in the order of these tensors.
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
  std::string_view architecture;              // ModelSpec::architecture
  const Settings& settings;
  std::span<const AdaptedTensor> tensors;     // sorted by name
  std::uint32_t n_layers = 0;                 // without draft heads
  std::uint64_t vocab_size = 0;
  // Number of heads, and of KV heads, in layers that have heads. 0: the number is read from `settings`. (An engine sets both fields,
  // because it keeps no settings that are lists with a number for each layer.)
  std::uint64_t heads = 0, kv_heads = 0;
};

// The change of one tensor: A and B. A tensor of experts has a matrix W for each expert; then `a` and `b` each have either one matrix for
// each W, or one matrix for all of them.
// The table of embeddings is different, because its rows are looked up and not multiplied: `a` has one row for each token, [vocab_size,
// rank], and `b` is [inputs, rank], where `inputs` is the width of the table's rows. The table's row of token t changes by scale * b a[t].
struct AdapterTensor {
  std::uint32_t tensor = 0;     // index into AdapterBase::tensors
  std::uint32_t rank = 0;       // > 0
  DType dtype = DType::f32;     // type of `a` and `b`: F32, F16 or BF16
  std::uint64_t a_count = 1, b_count = 1;
  std::vector<std::byte> a = {};  // [a_count, rank, inputs]; embeddings: [vocab_size, rank]
  std::vector<std::byte> b = {};  // [b_count, outputs, rank]; embeddings: [inputs, rank]
  std::vector<float> lengths = {};  // [count * outputs], DoRA's magnitude: the length of each row of W + scale * B A; empty: not DoRA
  float scale = 1.0f;           // alpha / rank, alpha / sqrt(rank) (rsLoRA), or 1 if the file states no alpha
  // Says which use of the tensor changes. true: the rows that are looked up in the table of embeddings. false: the products with a matrix.
  // The two differ in a tied model, which uses the table of embeddings as the output matrix too. There `tensor` is the table in both cases:
  // with true, the products of the output stay as they are; with false, the looked-up rows stay as they are.
  bool is_embedding = false;
};

struct AdapterFile {
  std::string name;                      // general.name, or the folder's name
  std::string base;                      // name of the base model that the file states; may be empty
  std::vector<Token> invocation;         // aLoRA: the adapter is active from the beginning of these tokens on; empty: from the first token on
  std::vector<AdapterTensor> tensors;    // sorted by `tensor`, no two of the same tensor and kind
  Hash128 content;                       // hash of all fields above except the names: equal adapters have equal hashes
};

// Returns whether the path is an adapter: a GGUF file whose general.type is "adapter", a folder with adapter_config.json, or a file in a
// folder with adapter_config.json.
[[nodiscard]] bool is_adapter(const std::filesystem::path& path) noexcept;

// Reads an adapter, and checks that it fits the model. Errors (the message names the file and the tensor or key, and says what differs):
//   not_found     the file does not exist
//   corrupt_file  the file is damaged, has A without B or B without A, a shape that does not fit the model, or NaN
//   unsupported   another kind of adapter, a model of another architecture, a tensor that cannot be adapted, modules_to_save, trained biases
//   io, cancelled
// Cost: the file is read once. Memory: at most twice the file's size (quantised tensors count with their size in F32) + 64 MB, whatever the
// file's header says.
[[nodiscard]] Result<AdapterFile> read_adapter(const std::filesystem::path& path, const AdapterBase& base, const std::stop_token& stop);

}  // namespace tessera::detail
