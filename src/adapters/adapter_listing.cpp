#include <tessera/unstable/adapters/adapter_listing.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "adapters/adapter_file.hpp"
#include "adapters/peft/config.hpp"
#include "adapters/peft/modules.hpp"
#include "adapters/readers.hpp"
#include "core/guard.hpp"
#include "files/adapter_contents.hpp"
#include "os/file.hpp"

namespace tessera {

namespace {

void sort_ranks(std::vector<std::uint64_t>& ranks) {
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
}

Result<AdapterListing> list_single_file(const std::filesystem::path& path) {
  TESSERA_TRY(const auto contents, detail::open_adapter_file(path, std::numeric_limits<std::uint64_t>::max(), {}));
  AdapterListing listing{.kind = "GGUF",
                         .name = contents->name,
                         .base = contents->base,
                         .architecture = contents->architecture,
                         .alpha = contents->alpha,
                         .ranks = {},
                         .invocation = contents->invocation,
                         .tensors = {}};
  for (const TensorInfo& tensor : contents->tensors()) {
    AdapterListing::Tensor own{.name = std::string(tensor.name), .type = std::string(to_string(tensor.dtype)), .dims = {}, .bytes = tensor.bytes};
    for (std::uint32_t i = tensor.n_dims; i > 0; --i) own.dims.push_back(tensor.dims[i - 1]);
    if (tensor.name.ends_with(".lora_b")) listing.ranks.push_back(tensor.dims[0]);
    listing.tensors.push_back(std::move(own));
  }
  return listing;
}

Result<AdapterListing> list_peft(const std::filesystem::path& folder) {
  TESSERA_TRY(const auto config, detail::adapters::PeftConfig::read(folder));
  TESSERA_TRY(const auto file, detail::SafetensorsFolder::open(folder / "adapter_model.safetensors"));
  TESSERA_TRY(const auto modules, detail::adapters::list_modules(file, os::text_of(folder)));
  AdapterListing listing{.kind = "PEFT",
                         .name = detail::adapters::name_of_folder(folder),
                         .base = config.base,
                         .architecture = {},
                         .alpha = config.alpha,
                         .is_rank_stabilised = config.is_rank_stabilised,
                         .has_lengths = config.has_lengths,
                         .ranks = {},
                         .invocation = config.invocation,
                         .tensors = {}};
  for (const auto& module : modules.modules) listing.ranks.push_back(module.a->dims[0]);
  for (const detail::SafetensorsTensor& tensor : file.tensors()) {
    listing.tensors.push_back({.name = std::string(tensor.name),
                               .type = std::string(to_string(tensor.type)),
                               .dims = {tensor.dims.begin(), tensor.dims.end()},
                               .bytes = tensor.bytes});
  }
  return listing;
}

}  // namespace

bool is_adapter(const std::filesystem::path& path) noexcept { return detail::is_adapter(path); }

Result<AdapterListing> list_adapter(const std::filesystem::path& path) noexcept {
  return detail::guard([&]() -> Result<AdapterListing> {
    const std::filesystem::path folder = detail::adapters::peft_folder_of(path);
    TESSERA_TRY(AdapterListing listing, folder.empty() ? list_single_file(path) : list_peft(folder));
    sort_ranks(listing.ranks);
    return listing;
  });
}

}  // namespace tessera
