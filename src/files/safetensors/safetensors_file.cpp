#include "files/safetensors/safetensors_file.hpp"

#include <vector>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "files/sorted_names.hpp"
#include "files/source_name.hpp"

namespace tessera::detail {

struct SafetensorsFile::State {
  std::shared_ptr<ByteSource> source;
  SafetensorsHeader header;
  std::vector<std::uint32_t> by_name;  // indices into header.tensors, sorted by name
};

SafetensorsFile::SafetensorsFile(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}

Result<SafetensorsFile> SafetensorsFile::read(std::shared_ptr<ByteSource> source,
                                              const std::stop_token& stop) noexcept {
  return guard([&]() -> Result<SafetensorsFile> {
    if (source == nullptr) return Error(ErrorCode::invalid_argument, "the source is null");
    auto state = std::make_shared<State>();
    TESSERA_TRY(state->header, parse_safetensors(*source, stop));
    const auto& tensors = state->header.tensors;
    state->by_name = sorted_indices(tensors, [](const SafetensorsTensor& tensor) { return tensor.name; });
    for (std::size_t i = 1; i < tensors.size(); ++i) {
      const std::string_view name = tensors[state->by_name[i]].name;
      if (name == tensors[state->by_name[i - 1]].name) {
        return error_at(ErrorCode::corrupt_file, name_of(*source), "the tensor '{}' stands twice in the header",
                        printable(name));
      }
    }
    state->source = std::move(source);
    return SafetensorsFile(std::move(state));
  });
}

std::uint64_t SafetensorsFile::header_bytes() const noexcept { return state_ == nullptr ? 0 : state_->header.bytes; }

std::uint64_t SafetensorsFile::memory_bytes() const noexcept {
  if (state_ == nullptr) return 0;
  constexpr std::uint64_t kSharedCounts =
      2 * sizeof(void*);  // make_shared allocates two reference counts in front of the object
  return kSharedCounts + sizeof(State) + state_->header.memory_bytes() +
         state_->by_name.capacity() * sizeof(std::uint32_t);
}

std::span<const SafetensorsTensor> SafetensorsFile::tensors() const noexcept {
  return state_ == nullptr ? std::span<const SafetensorsTensor>() : state_->header.tensors;
}

std::span<const SafetensorsNote> SafetensorsFile::notes() const noexcept {
  return state_ == nullptr ? std::span<const SafetensorsNote>() : state_->header.notes;
}

const SafetensorsTensor* SafetensorsFile::find(std::string_view name) const noexcept {
  if (state_ == nullptr) return nullptr;
  return find_sorted(tensors(), state_->by_name, name, [](const SafetensorsTensor& tensor) { return tensor.name; });
}

}  // namespace tessera::detail
