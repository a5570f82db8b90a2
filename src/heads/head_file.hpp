// Draft heads in a file separate from the model that they were trained for. Each kind of file has a reader (readers.hpp), which makes a
// HeadFile from it. Then JoinedSource adds the heads' tensors to the model's tensors, and add_heads() adds the heads to the model's spec.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/extend/files/model_source.hpp>
#include <tessera/extend/model/model_spec.hpp>

#include "model/load/roles.hpp"

namespace tessera::detail {

struct Model;

// A tensor of the heads: its role, the index of its layer (0 is the heads' first layer), and its name in the file.
struct HeadTensor {
  Role role;
  std::uint32_t layer = 0;
  std::string name;
};

struct HeadFile {
  std::string place;                          // the file's path, for errors
  std::shared_ptr<const ModelSource> source;  // the file's tensors, under the file's names
  std::vector<HeadTensor> tensors;
  DraftHeadSpec spec;                         // LayerSpec::rope is 0 in layers that rotate
  std::optional<RopeSpec> rope;               // the rope of the heads' layers; nullopt: no layer rotates
  std::vector<float> rope_divisors;           // divisors of the rope's frequencies  [rope->dim / 2]; empty: none
  std::optional<std::array<std::uint32_t, 3>> features;  // DraftHeadSpec::features, if the file states them
  std::vector<Token> guessed_tokens;          // Model::guessed_tokens
  // Width (d_model) and vocabulary of the model that the heads were trained for.
  std::uint64_t width = 0;
  std::uint64_t vocab_size = 0;               // 0: the file does not state it

  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;
};

// Reads the heads at a path: a folder as hubs publish Medusa and EAGLE heads (config.json and safetensors), a file of such a folder, or a
// GGUF file of an EAGLE-3 head. Does not read the tensors' values yet. Errors (the message names the file and the key or tensor):
// not_found; corrupt_file; unsupported, the file has heads of another kind, or no heads; io; cancelled, by `stop`.
[[nodiscard]] Result<HeadFile> read_draft_heads(const std::filesystem::path& path, const std::stop_token& stop);

// Reads the heads of a GGUF source that is already open. Errors: those of read_draft_heads().
[[nodiscard]] Result<HeadFile> draft_heads_of_source(std::shared_ptr<const ModelSource> source);

// Adds the heads to the spec of the model. Errors: invalid_argument, the heads were trained for a model of another width, vocabulary or
// number of layers; unsupported, the model has a property that the heads' layers cannot have.
[[nodiscard]] Status add_heads(const HeadFile& heads, ModelSpec& spec);

// Copies the heads' tables that are not weights to the loaded model. Precondition: load_weights() has filled the model.
void finish_heads(const HeadFile& heads, Model& model);

}  // namespace tessera::detail
