// The readers of the kinds of adapters that read_adapter() knows.
#pragma once

#include <filesystem>
#include <stop_token>
#include <string>

#include "adapters/adapter_file.hpp"

namespace tessera::detail::adapters {

[[nodiscard]] Result<AdapterFile> read_single_file(const std::filesystem::path& file, const AdapterBase& base, const std::stop_token& stop);  // GGUF
[[nodiscard]] Result<AdapterFile> read_peft(const std::filesystem::path& folder, const AdapterBase& base, const std::stop_token& stop);

// Returns the PEFT folder if `path` is a PEFT folder or a file in one; otherwise an empty path.
[[nodiscard]] std::filesystem::path peft_folder_of(const std::filesystem::path& path);

// Returns the name of an adapter in a folder: the folder's name.
[[nodiscard]] std::string name_of_folder(const std::filesystem::path& folder);

// Returns the limit for the bytes of an adapter's matrices, for a file with `bytes` bytes of data.
[[nodiscard]] constexpr std::uint64_t most_bytes_for(std::uint64_t bytes) noexcept { return 2 * bytes + (std::uint64_t{64} << 20); }

}  // namespace tessera::detail::adapters
