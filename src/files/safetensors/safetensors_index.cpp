#include "files/safetensors/safetensors_index.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "files/safetensors/foreign_file.hpp"
#include "files/safetensors/json_window.hpp"
#include "files/safetensors/safetensors_header.hpp"
#include "files/source_name.hpp"
#include "os/file.hpp"

namespace tessera::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".safetensors";
constexpr std::string_view kIndexEnding = ".safetensors.index.json";
constexpr std::string_view kWholeModel = "model.safetensors";
constexpr std::string_view kModelIndex = "model.safetensors.index.json";
constexpr std::uint64_t kMaxIndexBytes = 100'000'000;
constexpr std::size_t kIndexWindow = std::size_t{64} << 10;
constexpr std::size_t kMaxFiles = 4096;
constexpr std::size_t kMaxFileName = 255;
constexpr std::size_t kMaxFolderEntries = std::size_t{1} << 16;

// The names of a folder's files that tell which model the folder has, by kind of file, sorted.
struct FolderNames {
  std::vector<std::string> safetensors, indexes, pytorch, gguf;
};

Result<FolderNames> names_in(const fs::path& folder) {
  const std::string name = os::text_of(folder);
  FolderNames names;
  std::vector<std::string> all;
  if (const int error = os::names_in_folder(folder, kMaxFolderEntries + 1, all); error != 0) {
    return os::system_error_at(name, "read the folder", error);
  }
  if (all.size() > kMaxFolderEntries) {
    return error_at(ErrorCode::unsupported, name, "the folder has more than {} files", kMaxFolderEntries);
  }
  for (std::string& file : all) {
    if (file.starts_with('.')) continue;  // such as the resource forks of other systems
    std::vector<std::string>* list = nullptr;
    if (file.ends_with(kEnding)) list = &names.safetensors;
    if (file.ends_with(kIndexEnding)) list = &names.indexes;
    if (file.ends_with(".bin") || file.ends_with(".pth") || file.ends_with(".pt")) list = &names.pytorch;
    if (file.ends_with(".gguf")) list = &names.gguf;
    if (list != nullptr && list->size() < kMaxFiles) list->push_back(std::move(file));
  }
  for (auto* list : {&names.safetensors, &names.indexes, &names.pytorch, &names.gguf})
    std::sort(list->begin(), list->end());
  return names;
}

bool has_name(const std::vector<std::string>& sorted, std::string_view name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

// A name of the form NAME-00001-of-00003.safetensors.
struct NumberedName {
  std::string_view stem;
  std::uint32_t number, count;
};

std::optional<NumberedName> numbered(std::string_view file) {
  file.remove_suffix(kEnding.size());
  constexpr std::size_t kDigits = 5;
  constexpr std::string_view kOf = "-of-";
  constexpr std::size_t kTail = 1 + kDigits + kOf.size() + kDigits;
  if (file.size() <= kTail) return std::nullopt;
  NumberedName name{file.substr(0, file.size() - kTail), 0, 0};
  const std::string_view tail = file.substr(name.stem.size());
  const auto read = [](std::string_view digits, std::uint32_t& number) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  if (tail[0] != '-' || tail.substr(1 + kDigits, kOf.size()) != kOf) return std::nullopt;
  if (!read(tail.substr(1, kDigits), name.number) || !read(tail.substr(kTail - kDigits), name.count))
    return std::nullopt;
  return name;
}

// Finds the files of a model that has several files and no index, by the numbers in the files' names.
Result<SafetensorsParts> numbered_parts(const fs::path& folder, const std::vector<std::string>& files) {
  const auto first = numbered(files.front());
  bool alike = first && first->count > 0 && first->count <= kMaxFiles;
  for (const std::string& file : files) {
    const auto name = numbered(file);
    alike = alike && name && name->stem == first->stem && name->count == first->count;
  }
  if (!alike) {
    return error_at(ErrorCode::unsupported, os::text_of(folder),
                    "there are {} .safetensors files ('{}', '{}' ...), and no {} says how they belong together: "
                    "download the index, or "
                    "open one of the files by its path",
                    files.size(), printable(files[0]), printable(files[1]), kModelIndex);
  }
  for (std::uint32_t i = 0; i < first->count; ++i) {
    const std::string wanted = fmt::format("{}-{:05}-of-{:05}{}", first->stem, i + 1, first->count, kEnding);
    if (!has_name(files, wanted)) {
      return error_at(ErrorCode::not_found, os::text_of(folder), "{} is missing ({} of the model's {} files are there): download it{}",
                      printable(wanted), files.size(), first->count, left_by_download(folder));
    }
  }
  return SafetensorsParts{files, nullptr};
}

Error no_model(const std::string& folder, const FolderNames& names, const std::string& left) {
  if (!names.gguf.empty()) {
    return error_at(ErrorCode::unsupported, folder,
                    "the folder has GGUF files and no safetensors files: open '{}' by its own path",
                    printable(names.gguf.front()));
  }
  const auto& files = names.pytorch;
  const bool has_weights = std::any_of(files.begin(), files.end(), [](const std::string& file) {
    return !file.ends_with(".bin") || file.starts_with("pytorch_model") || file.starts_with("model") ||
           file.starts_with("consolidated");
  });
  if (has_weights) {
    return error_at(ErrorCode::unsupported, folder,
                    "the folder has PyTorch files ('{}') and no safetensors files. PyTorch files are programs and are "
                    "not read: download "
                    "the model's safetensors files if it has them, or convert it (in Python: "
                    "AutoModelForCausalLM.from_pretrained(folder).save_pretrained(new_folder))",
                    printable(files.front()));
  }
  return error_at(ErrorCode::not_found, folder,
                  "the folder has no model: no *.safetensors file is there. If it was downloaded, fetch "
                  "{} or the files that {} names{}",
                  kWholeModel, kModelIndex, left);
}

// Checks that a file name of an index stays in the folder.
bool is_plain_name(std::string_view name) {
  return !name.empty() && !name.starts_with('.') &&
         name.find_first_of(std::string_view("/\\:\0", 4)) == std::string_view::npos;
}

class CollectFiles final : public IndexEntry {
 public:
  CollectFiles(std::string place, std::vector<std::string>& files) : place_(std::move(place)), files_(files) {}
  Status operator()(std::string_view tensor, std::string_view file) override {
    if (!files_.empty() && files_[last_] == file) return {};  // most entries name the same file as the entry before
    const auto at = std::lower_bound(files_.begin(), files_.end(), file);
    last_ = static_cast<std::size_t>(at - files_.begin());
    if (at != files_.end() && *at == file) return {};
    if (!is_plain_name(file) || !file.ends_with(kEnding)) {
      return error_at(ErrorCode::corrupt_file, place_,
                      "the file '{}' of tensor '{}' is no name of a .safetensors file in this folder", printable(file),
                      printable(tensor));
    }
    if (files_.size() == kMaxFiles)
      return error_at(ErrorCode::unsupported, place_, "it names more than {} files", kMaxFiles);
    files_.insert(at, std::string(file));
    return {};
  }

 private:
  std::string place_;
  std::vector<std::string>& files_;
  std::size_t last_ = 0;
};

Result<SafetensorsParts> indexed_parts(const fs::path& path, const std::stop_token& stop) {
  SafetensorsParts parts;
  TESSERA_TRY(parts.index, open_part(path));
  CollectFiles collect(name_of(*parts.index), parts.names);
  TESSERA_TRY_STATUS(walk_index(*parts.index, collect, stop));
  if (parts.names.empty()) {
    return error_at(ErrorCode::corrupt_file, name_of(*parts.index),
                    "its weight_map names no tensors: download the file again");
  }
  return parts;
}

}  // namespace

std::string left_by_download(const fs::path& folder) {
  // .aria2: aria2 keeps this file beside the unfinished one.
  constexpr std::string_view kUnfinished[] = {".incomplete", ".part", ".partial", ".crdownload", ".download", ".aria2"};
  // In the cache of huggingface_hub a model's folder is snapshots/COMMIT, which has links to files of ../../blobs.
  std::vector<fs::path> places = {folder, folder / ".cache" / "huggingface" / "download"};
  if (folder.parent_path().filename() == "snapshots") places.push_back(folder.parent_path().parent_path() / "blobs");
  for (const fs::path& place : places) {
    std::vector<std::string> names;
    if (os::names_in_folder(place, kMaxFolderEntries, names) != 0) continue;
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      const bool is_unfinished = std::any_of(std::begin(kUnfinished), std::end(kUnfinished), [&](std::string_view end) { return name.ends_with(end); });
      if (!is_unfinished) continue;
      return fmt::format(". Perhaps the download is unfinished ('{}' is left of one): run it again, and it goes on where it stopped",
                         printable(os::text_of(place / os::path_of(name)), 300));
    }
  }
  return {};
}

Result<std::shared_ptr<ByteSource>> open_part(const fs::path& path) {
  std::error_code failed;
  if (fs::is_symlink(fs::symlink_status(path, failed)) && !fs::exists(path, failed)) {
    const fs::path target = fs::read_symlink(path, failed);
    return error_at(ErrorCode::not_found, os::text_of(path),
                    "is a symbolic link to '{}', and nothing is there: the download was not finished, or that file was "
                    "deleted; download "
                    "the model again",
                    printable(os::text_of(target), 300));
  }
  return open_file(path);
}

Status walk_index(ByteSource& index, IndexEntry& entry, const std::stop_token& stop) {
  const std::uint64_t bytes = index.size();
  if (bytes > kMaxIndexBytes) {
    return error_at(ErrorCode::unsupported, name_of(index), "the index has {} bytes; at most {} are read", bytes,
                    kMaxIndexBytes);
  }
  char first = 0;
  if (bytes > 0) TESSERA_TRY_STATUS(index.read(0, std::as_writable_bytes(std::span(&first, 1))));
  if (first != '{') {
    if (auto foreign = foreign_file_error(index, "the index of a model")) return *std::move(foreign);
  }
  const auto window = std::make_unique_for_overwrite<char[]>(kIndexWindow);
  JsonWindow input(index, {window.get(), kIndexWindow}, 0, bytes, stop);
  JsonPullReader json(input);
  std::string member, tensor, file;
  bool has_map = false;
  const auto read_map = [&]() -> Status {
    if (member != "weight_map") return json.skip();
    if (std::exchange(has_map, true)) return json.fail(ErrorCode::corrupt_file, "weight_map stands twice");
    return json.members(tensor, kMaxSafetensorsName, [&]() -> Status {
      TESSERA_TRY_STATUS(json.string(file, kMaxFileName));
      return entry(tensor, file);
    });
  };
  TESSERA_TRY_STATUS(json.members(member, kMaxSafetensorsName, read_map));
  TESSERA_TRY_STATUS(json.end());
  if (!has_map) {
    return error_at(ErrorCode::corrupt_file, name_of(index),
                    "weight_map is missing: this is no index of safetensors files; download it again");
  }
  return {};
}

Result<SafetensorsParts> find_parts(const fs::path& folder, const std::stop_token& stop) {
  TESSERA_TRY(const FolderNames names, names_in(folder));
  const std::string name = os::text_of(folder);
  if (has_name(names.safetensors, kWholeModel)) return SafetensorsParts{{std::string(kWholeModel)}, nullptr};
  if (has_name(names.indexes, kModelIndex)) return indexed_parts(folder / kModelIndex, stop);
  // consolidated.safetensors has the same weights as its neighbours, under other names.
  std::vector<std::string> files = names.safetensors;
  if (files.size() > 1) std::erase_if(files, [](const std::string& file) { return file.starts_with("consolidated"); });
  if (names.indexes.size() == 1) return indexed_parts(folder / os::path_of(names.indexes.front()), stop);
  if (names.indexes.size() > 1) {
    return error_at(ErrorCode::unsupported, name,
                    "there are several indexes ('{}', '{}' ...), and none is {}: open one by its path",
                    printable(names.indexes[0]), printable(names.indexes[1]), kModelIndex);
  }
  if (files.empty() && names.safetensors.empty()) return no_model(name, names, left_by_download(folder));
  if (files.empty()) files = names.safetensors;  // all are consolidated-00001-of-0000N
  if (files.size() == 1 && !(numbered(files.front()) && numbered(files.front())->count > 1))
    return SafetensorsParts{files, nullptr};
  return numbered_parts(folder, files);
}

}  // namespace tessera::detail
