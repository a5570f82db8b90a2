// Finds the files of a safetensors model in a folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/extend/files/byte_source.hpp>

namespace tessera::detail {

struct SafetensorsParts {
  std::vector<std::string>
      names;  // names of the files, without the folder; sorted. An element's index is SafetensorsTensor::part
  std::shared_ptr<ByteSource> index;  // the JSON file that lists the tensors of each file; nullptr if there is none
};

// Finds the model's files by the rules of SafetensorsFolder::open(). The files that an index names need not exist.
[[nodiscard]] Result<SafetensorsParts> find_parts(const std::filesystem::path& folder, const std::stop_token& stop);

// The callback of walk_index(), which reads the weight_map of an index: the object that says which file has which tensor. `entry(tensor,
// file)` is called for each of its members, in the order of the index. If it returns an error, the walk ends. The texts are valid during
// the call.
class IndexEntry {
 public:
  virtual ~IndexEntry() = default;
  virtual Status operator()(std::string_view tensor, std::string_view file) = 0;
};
[[nodiscard]] Status walk_index(ByteSource& index, IndexEntry& entry, const std::stop_token& stop);

// Returns a clause for the error that a file of the model is missing: names a file that an unfinished download has left in the folder, or
// where hubs' clients keep such files. Returns an empty text if there is none.
[[nodiscard]] std::string left_by_download(const std::filesystem::path& folder);

// Opens a file of the model. Errors: those of open_file(); not_found for a symbolic link without a target, with a message that says so.
[[nodiscard]] Result<std::shared_ptr<ByteSource>> open_part(const std::filesystem::path& path);

}  // namespace tessera::detail
