#include <tessera/unstable/files/safetensors_listing.hpp>

#include "core/error.hpp"
#include "files/safetensors/safetensors_folder.hpp"

namespace tessera {

Result<SafetensorsListing> list_safetensors(const std::filesystem::path& path) noexcept {
  return detail::guard([&]() -> Result<SafetensorsListing> {
    TESSERA_TRY(const auto folder, detail::SafetensorsFolder::open(path));
    SafetensorsListing listing;
    for (std::uint32_t part = 0; part < folder.parts(); ++part) listing.files.push_back(folder.file_name(part));
    listing.tensors.reserve(folder.tensors().size());
    for (const detail::SafetensorsTensor& tensor : folder.tensors()) {
      listing.tensors.push_back({.name = std::string(tensor.name),
                                 .type = to_string(tensor.type),
                                 .dims = {tensor.dims.begin(), tensor.dims.end()},
                                 .offset = tensor.offset,
                                 .bytes = tensor.bytes,
                                 .part = tensor.part});
    }
    return listing;
  });
}

}  // namespace tessera
