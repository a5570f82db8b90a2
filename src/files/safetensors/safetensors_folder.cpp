#include "files/safetensors/safetensors_folder.hpp"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "core/checked.hpp"
#include "core/empty.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"
#include "files/safetensors/safetensors_header.hpp"
#include "files/safetensors/safetensors_index.hpp"
#include "files/sorted_names.hpp"
#include "files/source_name.hpp"
#include "os/file.hpp"

namespace tessera::detail {

struct SafetensorsFolder::State {
  struct Shard {
    std::shared_ptr<ByteSource> source;
    SafetensorsHeader header;  // its `tensors` were moved to State::tensors
  };
  std::vector<Shard> parts;
  std::vector<SafetensorsTensor> tensors;
  std::vector<std::uint32_t> by_name;  // indices into `tensors`, sorted by name
  std::deque<std::string> names;       // names of modules' tensors; names of other tensors are in the headers

  [[nodiscard]] const SafetensorsTensor* find(std::string_view name) const noexcept;
};

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFolderTensors = std::size_t{1} << 19;

std::string_view name_of_tensor(const SafetensorsTensor& tensor) noexcept { return tensor.name; }

// Checks that each tensor of the index is in the file that the index names for it.
template <class State>
class CheckEntries final : public IndexEntry {
 public:
  CheckEntries(const State& state, const std::vector<std::string>& names, std::string place)
      : state_(state), names_(names), place_(std::move(place)) {}

  Status operator()(std::string_view tensor, std::string_view file) override {
    const SafetensorsTensor* found = state_.find(tensor);
    if (found == nullptr) {
      return error_at(ErrorCode::corrupt_file, place_,
                      "tensor '{}' should be in {}, and is not: the index and the files are of different versions; "
                      "download the model again",
                      printable(tensor), printable(file));
    }
    if (names_[found->part] == file) return {};
    return error_at(ErrorCode::corrupt_file, place_,
                    "tensor '{}' should be in {}, and is in {}: the index and the files are of different versions; "
                    "download the model again",
                    printable(tensor), printable(file), printable(names_[found->part]));
  }

 private:
  const State& state_;
  const std::vector<std::string>& names_;
  std::string place_;
};

// Checks that all files that the index names exist. Error: not_found, with the first missing file.
Status check_present(const fs::path& folder, const SafetensorsParts& parts) {
  std::size_t missing = 0;
  const std::string* first = nullptr;
  for (const std::string& name : parts.names) {
    std::error_code failed;
    if (fs::exists(fs::symlink_status(folder / os::path_of(name), failed))) continue;
    if (missing++ == 0) first = &name;
  }
  if (missing == 0) return {};
  return error_at(
      ErrorCode::not_found, name_of(*parts.index),
      "{} is missing{}: {} of the model's {} files are not there; download them from where the index came from{}",
      printable(*first), missing > 1 ? " (and others)" : "", missing, parts.names.size(), left_by_download(folder));
}

}  // namespace

const SafetensorsTensor* SafetensorsFolder::State::find(std::string_view name) const noexcept {
  return find_sorted(tensors, by_name, name, &name_of_tensor);
}

SafetensorsFolder::SafetensorsFolder(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}

Result<SafetensorsFolder> SafetensorsFolder::open(const fs::path& path, const std::stop_token& stop, std::span<const Module> modules) noexcept {
  return guard([&]() -> Result<SafetensorsFolder> {
    if (!os::is_usable(path)) {
      return Error(ErrorCode::invalid_argument, "a path must not be empty and must not hold a zero byte", "path");
    }
    fs::path folder = path;
    SafetensorsParts parts;
    os::FileFacts facts;
    if (os::facts_at(path, facts) == 0 && facts.kind == os::FileKind::folder) {
      TESSERA_TRY(parts, find_parts(folder, stop));
    } else {
      folder = path.parent_path();
      parts.names.push_back(os::text_of(path.filename()));
    }
    if (parts.index != nullptr) TESSERA_TRY_STATUS(check_present(folder, parts));

    auto state = std::make_shared<State>();
    std::size_t count = 0;
    const auto open_file = [&](const fs::path& file) -> Status {
      TESSERA_TRY(auto source, open_part(file));
      TESSERA_TRY(auto header, parse_safetensors(*source, stop));
      count += header.tensors.size();
      if (count > kMaxFolderTensors) {
        return error_at(ErrorCode::unsupported, os::text_of(path), "the model has more than {} tensors",
                        kMaxFolderTensors);
      }
      state->parts.push_back({std::move(source), std::move(header)});
      return {};
    };
    for (const std::string& name : parts.names) TESSERA_TRY_STATUS(open_file(folder / os::path_of(name)));
    for (const Module& module : modules) {
      TESSERA_TRY(const SafetensorsParts own, find_parts(module.folder, stop));
      for (const std::string& name : own.names) {
        TESSERA_TRY_STATUS(open_file(module.folder / os::path_of(name)));
        for (SafetensorsTensor& tensor : state->parts.back().header.tensors) {
          tensor.name = state->names.emplace_back(module.prefix + std::string(tensor.name));
        }
        parts.names.push_back(name);  // for messages
      }
    }
    state->tensors.reserve(count);
    for (std::uint32_t i = 0; i < state->parts.size(); ++i) {
      for (SafetensorsTensor tensor : std::exchange(state->parts[i].header.tensors, {})) {
        tensor.part = i;
        state->tensors.push_back(tensor);
      }
    }
    state->by_name = sorted_indices(state->tensors, &name_of_tensor);
    for (std::size_t i = 1; i < count; ++i) {
      const SafetensorsTensor& a = state->tensors[state->by_name[i - 1]];
      const SafetensorsTensor& b = state->tensors[state->by_name[i]];
      if (a.name != b.name) continue;
      const auto [first, second] = std::minmax(a.part, b.part);
      if (first == second) {
        return error_at(ErrorCode::corrupt_file, name_of(*state->parts[first].source),
                        "the tensor '{}' stands twice in the header", printable(a.name));
      }
      return error_at(
          ErrorCode::corrupt_file, name_of(*state->parts[second].source),
          "the tensor '{}' is also in {}: the files are of different models or versions; download the model again",
          printable(a.name), printable(parts.names[first]));
    }
    if (parts.index != nullptr) {
      CheckEntries<State> check(*state, parts.names, name_of(*parts.index));
      TESSERA_TRY_STATUS(walk_index(*parts.index, check, stop));
    }
    return SafetensorsFolder(std::move(state));
  });
}

std::span<const SafetensorsTensor> SafetensorsFolder::tensors() const noexcept {
  return state_ == nullptr ? std::span<const SafetensorsTensor>() : state_->tensors;
}

const SafetensorsTensor* SafetensorsFolder::find(std::string_view name) const noexcept {
  return state_ == nullptr ? nullptr : state_->find(name);
}

Status SafetensorsFolder::read(const SafetensorsTensor& tensor, std::uint64_t offset,
                               std::span<std::byte> out) const noexcept {
  return guard([&]() -> Status {
    if (state_ == nullptr) return empty_handle("SafetensorsFolder");
    const auto first = checked_add(tensor.offset, offset);
    if (tensor.part >= state_->parts.size() || !first || offset > tensor.bytes || out.size() > tensor.bytes - offset) {
      return error_at(ErrorCode::invalid_argument, fmt::format("tensor '{}'", printable(tensor.name)),
                      "cannot read {} bytes at {} of its {} bytes", out.size(), offset, tensor.bytes);
    }
    return state_->parts[tensor.part].source->read(*first, out);
  });
}

std::uint32_t SafetensorsFolder::parts() const noexcept {
  return state_ == nullptr ? 0 : static_cast<std::uint32_t>(state_->parts.size());
}

std::string SafetensorsFolder::file_name(std::uint32_t part) const {
  return part < parts() ? name_of(*state_->parts[part].source) : std::string();
}

std::uint64_t SafetensorsFolder::memory_bytes() const noexcept {
  if (state_ == nullptr) return 0;
  std::uint64_t bytes = 2 * sizeof(void*) + sizeof(State) + state_->parts.capacity() * sizeof(State::Shard) +
                        state_->tensors.capacity() * sizeof(SafetensorsTensor) +
                        state_->by_name.capacity() * sizeof(std::uint32_t);
  for (const State::Shard& part : state_->parts) bytes += part.header.memory_bytes();
  for (const std::string& name : state_->names) bytes += sizeof name + name.capacity();
  return bytes;
}

}  // namespace tessera::detail
