// Writes a planned folder to disk.
#include <algorithm>
#include <system_error>

#include <tessera/unstable/hub/written_folder.hpp>

#include "core/error.hpp"
#include "files/safetensors/safetensors_writer.hpp"
#include "hub/written/planned_folder.hpp"
#include "model/load/roles.hpp"
#include "os/file.hpp"

namespace tessera {

namespace {

namespace fs = std::filesystem;
using namespace detail::hub;

// One safetensors file: a range of the planned tensors.
struct Shard {
  std::string name;
  std::size_t first = 0, end = 0;
  std::uint64_t bytes = 0;
};

std::vector<Shard> shards_of(const std::vector<WrittenTensor>& tensors, std::uint64_t most) {
  std::vector<Shard> shards(1);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (shards.back().bytes != 0 && shards.back().bytes + tensors[i].bytes() > most) shards.push_back({.name = {}, .first = i});
    shards.back().bytes += tensors[i].bytes();
    shards.back().end = i + 1;
  }
  for (std::size_t i = 0; i < shards.size(); ++i) {
    shards[i].name = shards.size() == 1 ? "model.safetensors" : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
  }
  return shards;
}

FolderSummary summary_of(const PlannedFolder& folder, const std::vector<Shard>& shards) {
  FolderSummary summary{.model_type = std::string(folder.table->model_type), .files = {}, .types = {}, .config = in_lines(folder.config)};
  for (const Shard& shard : shards) summary.files.push_back({.name = shard.name, .tensors = shard.end - shard.first, .bytes = shard.bytes});
  for (const WrittenTensor& tensor : folder.tensors) {
    auto at = std::ranges::find(summary.types, tensor.dtype, &FolderSummary::OfType::type);
    if (at == summary.types.end()) at = summary.types.insert(at, {.type = tensor.dtype});
    at->tensors += 1;
    at->bytes += tensor.bytes();
    summary.bytes += tensor.bytes();
    summary.rounded += tensor.is_rounded ? 1 : 0;
  }
  return summary;
}

detail::SafetensorsType safetensors_type_of(DType dtype) noexcept {
  return dtype == DType::f32 ? detail::SafetensorsType::f32 : dtype == DType::f16 ? detail::SafetensorsType::f16 : detail::SafetensorsType::bf16;
}

// A folder that is written under a temporary name beside its final name. The destructor removes the folder, unless keep() has renamed it.
class DraftFolder {
 public:
  static Result<DraftFolder> create(const fs::path& path) {
    const std::string name = os::text_of(path);
    std::error_code problem;
    if (fs::exists(path, problem) && !(fs::is_directory(path, problem) && fs::is_empty(path, problem))) {
      return detail::error_at(ErrorCode::invalid_argument, name, "it is there already: a folder is not overwritten; choose another name, or remove it first");
    }
    fs::path whole = fs::absolute(path, problem).lexically_normal();
    if (!problem && !whole.has_filename()) whole = whole.parent_path();  // "folder/"
    if (problem || !whole.has_filename()) return detail::error_at(ErrorCode::invalid_argument, name, "a folder cannot be made there");
    fs::path draft = whole;
    draft += fmt::format(".partial-{}", os::process_id());
    fs::create_directories(draft, problem);
    if (problem) return detail::error_at(ErrorCode::io, os::text_of(draft), "cannot make the folder: {}", problem.message());
    return DraftFolder(std::move(draft), std::move(whole));
  }
  DraftFolder() noexcept = default;  // no folder
  DraftFolder(DraftFolder&& other) noexcept : draft_(std::move(other.draft_)), path_(std::move(other.path_)) { other.draft_.clear(); }
  DraftFolder& operator=(DraftFolder&&) = delete;
  ~DraftFolder() {
    std::error_code ignored;
    if (!draft_.empty()) fs::remove_all(draft_, ignored);
  }

  [[nodiscard]] const fs::path& path() const noexcept { return draft_; }
  Status keep() {
    std::error_code problem;
    fs::remove(path_, problem);  // an empty folder
    fs::rename(draft_, path_, problem);
    if (problem) return detail::error_at(ErrorCode::io, os::text_of(path_), "cannot give the complete folder its name: {}", problem.message());
    draft_.clear();
    return {};
  }

 private:
  DraftFolder(fs::path draft, fs::path path) noexcept : draft_(std::move(draft)), path_(std::move(path)) {}
  fs::path draft_, path_;
};

Status write_text(const fs::path& path, std::string_view text) {
  std::error_code problem;
  fs::create_directories(path.parent_path(), problem);
  TESSERA_TRY(detail::ReplacementFile file, detail::ReplacementFile::create(path));
  TESSERA_TRY_STATUS(file.write(std::as_bytes(std::span(text))));
  return file.commit();
}

Status write_shard(const ModelSource& model, const PlannedFolder& folder, const Shard& shard, const fs::path& path, const FolderOptions& options) {
  detail::SafetensorsWriter writer;
  for (std::size_t i = shard.first; i < shard.end; ++i) {
    const WrittenTensor& tensor = folder.tensors[i];
    std::vector<std::uint64_t> dims;
    for (std::uint32_t d = tensor.dims.n; d > 0; --d) dims.push_back(tensor.dims.dims[d - 1]);
    writer.add(tensor.name, safetensors_type_of(tensor.dtype), dims);
  }
  TESSERA_TRY_STATUS(writer.begin(path));
  for (std::size_t i = shard.first; i < shard.end; ++i) {
    TESSERA_TRY_STATUS(write_tensor(model, folder.tensors[i], options.stop, [&](std::span<const std::byte> bytes) {
      const Status written = writer.write(bytes);
      if (written && options.on_written) options.on_written(bytes.size());
      return written;
    }));
  }
  return writer.finish();
}

std::string index_text(const PlannedFolder& folder, const std::vector<Shard>& shards, std::uint64_t bytes) {
  Json map = Json::object();
  map.members()->reserve(folder.tensors.size());
  for (const Shard& shard : shards) {
    for (std::size_t i = shard.first; i < shard.end; ++i) map.members()->emplace_back(folder.tensors[i].name, Json(shard.name));
  }
  Json about = Json::object(), index = Json::object();
  about.set("total_size", static_cast<std::int64_t>(bytes));
  index.set("metadata", std::move(about));
  index.set("weight_map", std::move(map));
  return in_lines(index);
}

// Opens the folder that was written and compares its tensors with the model's.
Status compare_written(const fs::path& path, const ModelSource& model, const std::stop_token& stop) {
  TESSERA_TRY(const auto again, open_model(path, stop));
  for (const TensorInfo& tensor : model.tensors()) {
    const TensorInfo* own = again->find_tensor(tensor.name);
    const bool is_cut = tensor.name.ends_with(row_of(Role::experts_gate_up).name);  // may be two tensors in the folder
    if ((own != nullptr && own->dims == tensor.dims) || (own == nullptr && is_cut)) continue;
    return detail::error_at(ErrorCode::unsupported, model.called(tensor.name), "the folder that was written does not have the tensor when it is read again: please report this");
  }
  return {};
}

}  // namespace

Result<FolderSummary> plan_folder(const ModelSource& model, const FolderOptions& options) noexcept {
  return detail::guard([&]() -> Result<FolderSummary> {
    TESSERA_TRY(const PlannedFolder folder, planned_folder(model, options));
    return summary_of(folder, shards_of(folder.tensors, options.shard_bytes));
  });
}

Result<FolderSummary> write_folder(const ModelSource& model, const fs::path& path, const FolderOptions& options) noexcept {
  return detail::guard([&]() -> Result<FolderSummary> {
    TESSERA_TRY(const PlannedFolder folder, planned_folder(model, options));
    const std::vector<Shard> shards = shards_of(folder.tensors, options.shard_bytes);
    FolderSummary summary = summary_of(folder, shards);
    TESSERA_TRY(DraftFolder draft, DraftFolder::create(path));
    TESSERA_TRY_STATUS(write_text(draft.path() / "config.json", summary.config));
    for (const TextFile& file : folder.texts) TESSERA_TRY_STATUS(write_text(draft.path() / os::path_of(file.name), file.text));
    if (shards.size() > 1) TESSERA_TRY_STATUS(write_text(draft.path() / "model.safetensors.index.json", index_text(folder, shards, summary.bytes)));
    for (const Shard& shard : shards) TESSERA_TRY_STATUS(write_shard(model, folder, shard, draft.path() / shard.name, options));
    TESSERA_TRY_STATUS(compare_written(draft.path(), model, options.stop));
    TESSERA_TRY_STATUS(draft.keep());
    return summary;
  });
}

}  // namespace tessera
