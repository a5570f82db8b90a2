#include <tessera/extend/files/model_file.hpp>

#include <array>
#include <string>

#include "core/checked.hpp"
#include "core/empty.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"
#include "files/gguf/gguf_parser.hpp"
#include "files/source_name.hpp"
#include "os/file.hpp"

namespace tessera {

struct ModelFile::State {
  std::vector<GgufFile> parts;
  // The tensors of all parts of a split model. Empty for a single file, whose own list is used.
  std::vector<TensorInfo> tensors;
  std::vector<std::uint32_t> tensors_by_name;

  std::span<const TensorInfo> list() const noexcept { return parts.size() == 1 ? parts.front().tensors() : tensors; }
};

namespace {

constexpr std::uint64_t kMaxParts = 65535;  // the file's count of parts (split.count) is a u16

// The place of a file in a split model, as the file states it: part `part` (from 0) of `parts`. A file with a whole model is {0, 1}.
struct Place {
  std::uint64_t part, parts;
};

Result<Place> place_of(const GgufFile& file) {
  Place place{};
  TESSERA_TRY(place.part, file.unsigned_integer_or("split.no", 0));
  TESSERA_TRY(place.parts, file.unsigned_integer_or("split.count", 1));
  if (place.parts == 0) place.parts = 1;  // some tools write 0 into a whole file
  if (place.parts > kMaxParts || place.part >= place.parts) {
    return detail::error_at(ErrorCode::corrupt_file, detail::name_of(file.source()),
                            "split.no is {} and split.count is {}: no split model has that", place.part, place.parts);
  }
  return place;
}

std::string part_name(std::string_view prefix, std::uint64_t part, std::uint64_t parts) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, part + 1, parts);
}

Error cannot_split(const GgufFile& file, const Place& place) {
  return detail::error_at(ErrorCode::invalid_argument, detail::name_of(file.source()),
                          "this is part {} of a model of {} files: open the first one (its name ends in {})",
                          place.part + 1, place.parts, part_name("", 0, place.parts));
}

// Checks that each file states the part number of its place in the list, and that the parts' tensors add up to the stated number.
Status check_parts(const std::vector<GgufFile>& parts) {
  std::uint64_t tensors = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    TESSERA_TRY(const Place place, place_of(parts[i]));
    if (place.parts != parts.size() || place.part != i) {
      return detail::error_at(ErrorCode::corrupt_file, detail::name_of(parts[i].source()),
                              "says that it is part {} of {}, and stands as part {} of {}", place.part + 1, place.parts,
                              i + 1, parts.size());
    }
    tensors += parts[i].tensors().size();
  }
  TESSERA_TRY(const auto claimed, parts.front().unsigned_integer_or("split.tensors.count", tensors));
  if (claimed != tensors) {
    return detail::error_at(ErrorCode::corrupt_file, detail::name_of(parts.front().source()),
                            "split.tensors.count is {}, but the {} parts have {} tensors", claimed, parts.size(), tensors);
  }
  return {};
}

std::string_view tensor_name(const TensorInfo& tensor) noexcept { return tensor.name; }

}  // namespace

ModelFile::ModelFile(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}

Result<ModelFile> ModelFile::from_parts(std::vector<GgufFile> parts) {
  TESSERA_TRY_STATUS(check_parts(parts));
  auto state = std::make_shared<State>();
  state->parts = std::move(parts);
  if (state->parts.size() > 1) {
    std::size_t count = 0;
    for (const GgufFile& part : state->parts) count += part.tensors().size();
    state->tensors.reserve(count);
    for (std::uint32_t i = 0; i < state->parts.size(); ++i) {
      for (TensorInfo tensor : state->parts[i].tensors()) {
        tensor.part = i;
        state->tensors.push_back(tensor);
      }
    }
    state->tensors_by_name = detail::sorted_indices(state->tensors, &tensor_name);
    for (std::size_t i = 1; i < count; ++i) {
      const TensorInfo& a = state->tensors[state->tensors_by_name[i - 1]];
      const TensorInfo& b = state->tensors[state->tensors_by_name[i]];
      if (a.name == b.name) {
        const TensorInfo& later = a.part < b.part ? b : a;
        return detail::error_at(ErrorCode::corrupt_file, detail::name_of(state->parts[later.part].source()),
                                "tensor '{}' stands also in part {}", detail::printable(a.name),
                                std::min(a.part, b.part) + 1);
      }
    }
  }
  return ModelFile(std::move(state));
}

Result<ModelFile> ModelFile::open(const std::filesystem::path& path, const std::stop_token& stop) noexcept {
  return detail::guard([&]() -> Result<ModelFile> {
    TESSERA_TRY(auto source, open_file(path));
    TESSERA_TRY(auto first, GgufFile::read(std::move(source), stop));
    TESSERA_TRY(const Place place, place_of(first));
    if (place.part != 0) return cannot_split(first, place);
    std::vector<GgufFile> parts;
    if (place.parts > 1) {
      const std::string ending = part_name("", 0, place.parts);
      const std::string name = os::text_of(path);
      if (!name.ends_with(ending)) {
        return detail::error_at(ErrorCode::not_found, name,
                                "this is the first of {} files; its name must end in {} for the others to be found",
                                place.parts, ending);
      }
      const std::string_view prefix = std::string_view(name).substr(0, name.size() - ending.size());
      std::vector<GgufFile> all;
      all.push_back(std::move(first));
      for (std::uint64_t i = 1; i < place.parts; ++i) {
        TESSERA_TRY(auto next, open_file(os::path_of(part_name(prefix, i, place.parts))));
        TESSERA_TRY(auto file, GgufFile::read(std::move(next), stop));
        all.push_back(std::move(file));
      }
      parts.reserve(all.size());  // reserves exactly, because memory_bytes() counts the capacity
      std::move(all.begin(), all.end(), std::back_inserter(parts));
    } else {
      parts.reserve(1);
      parts.push_back(std::move(first));
    }
    return from_parts(std::move(parts));
  });
}

Result<ModelFile> ModelFile::from_sources(std::span<const std::shared_ptr<ByteSource>> sources) noexcept {
  return detail::guard([&]() -> Result<ModelFile> {
    if (sources.empty() || sources.size() > kMaxParts) {
      return detail::make_error(ErrorCode::invalid_argument, "{} sources given; 1 to {} make a model", sources.size(),
                                kMaxParts);
    }
    std::vector<GgufFile> parts;
    parts.reserve(sources.size());
    for (const auto& source : sources) {
      TESSERA_TRY(auto file, GgufFile::read(source));
      parts.push_back(std::move(file));
    }
    return from_parts(std::move(parts));
  });
}

Result<ModelFile> ModelFile::from_source(std::shared_ptr<ByteSource> source) noexcept {
  return from_sources(std::array{std::move(source)});
}

Result<ModelFile> ModelFile::from_memory(std::span<const std::byte> bytes) noexcept {
  return detail::guard([&]() -> Result<ModelFile> {
    TESSERA_TRY(auto source, memory_source(bytes));
    return from_source(std::move(source));
  });
}

const Settings& ModelFile::settings() const noexcept { return metadata().settings(); }
const GgufFile& ModelFile::metadata() const noexcept {
  return state_ == nullptr ? detail::empty_value<GgufFile>() : state_->parts.front();
}
std::span<const GgufFile> ModelFile::parts() const noexcept {
  return state_ == nullptr ? std::span<const GgufFile>() : state_->parts;
}
std::span<const TensorInfo> ModelFile::tensors() const noexcept {
  return state_ == nullptr ? std::span<const TensorInfo>() : state_->list();
}

const TensorInfo* ModelFile::find_tensor(std::string_view name) const noexcept {
  if (state_ == nullptr) return nullptr;
  if (state_->parts.size() == 1) return state_->parts.front().find_tensor(name);
  return detail::find_sorted(state_->list(), state_->tensors_by_name, name, &tensor_name);
}

std::uint64_t ModelFile::memory_bytes() const noexcept {
  if (state_ == nullptr) return 0;
  std::uint64_t bytes = 2 * sizeof(void*) + sizeof(State) + state_->parts.capacity() * sizeof(GgufFile) +
                        state_->tensors.capacity() * sizeof(TensorInfo) +
                        state_->tensors_by_name.capacity() * sizeof(std::uint32_t);
  for (const GgufFile& part : state_->parts) bytes += part.memory_bytes();
  return bytes;
}

Status ModelFile::read(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const noexcept {
  return detail::guard([&]() -> Status {
    if (state_ == nullptr) return detail::empty_handle("ModelFile");
    const auto first = detail::checked_add(tensor.offset, offset);
    if (tensor.part >= state_->parts.size() || !first || offset > tensor.bytes || out.size() > tensor.bytes - offset) {
      return detail::error_at(ErrorCode::invalid_argument, fmt::format("tensor '{}'", detail::printable(tensor.name)),
                              "cannot read {} bytes at {} of its {} bytes", out.size(), offset, tensor.bytes);
    }
    return state_->parts[tensor.part].source().read(*first, out);
  });
}

}  // namespace tessera
