// The readers of the kinds of files that read_draft_heads() can read, and declarations that the readers share.
#pragma once

#include <filesystem>
#include <span>
#include <stop_token>
#include <string_view>

#include "heads/head_file.hpp"
#include "hub/config.hpp"
#include "model/architecture.hpp"

namespace tessera::detail::heads {

// Fill in all fields of `file` except `place` and `source`, which the caller has set.
[[nodiscard]] Status read_medusa(const hub::Config& config, HeadFile& file);
[[nodiscard]] Status read_eagle_folder(const hub::Config& config, HeadFile& file);  // all versions of EAGLE
[[nodiscard]] Status read_eagle_gguf(HeadFile& file);

// Returns whether a folder's tensors are the tensors of Medusa heads.
[[nodiscard]] bool is_medusa(const ModelSource& source) noexcept;

// A tensor of a kind of heads, and its names in a folder and in a GGUF file.
struct TensorName {
  Role role;
  std::string_view in_folder, in_gguf;
  Presence presence = Presence::required;
};

// Opens the safetensors files of a folder as a source without settings. Errors: those of SafetensorsFolder::open().
[[nodiscard]] Result<std::shared_ptr<const ModelSource>> safetensors_source(const std::filesystem::path& folder, const std::stop_token& stop);

}  // namespace tessera::detail::heads
