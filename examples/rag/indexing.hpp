// Updates an index to the present files of its folder.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "embedder.hpp"
#include "store/store.hpp"
#include "text_files.hpp"

namespace rag {

struct IndexReport {
  std::size_t unchanged = 0, added = 0, changed = 0, removed = 0;  // files
  std::size_t passages = 0;  // passages that were embedded
  std::vector<SkippedFile> skipped;
};

struct IndexingOptions {
  FileLimits limits;
  std::stop_token stop = {};  // checked before every file, and by the embedder
  std::function<void(std::size_t done, std::size_t total)> progress = {};  // files
};

// Compares an existing index with the present folder and embedder. Returns a sentence about the first difference (the index was made from
// another folder, or with another embedder), or an empty text if there is none. If `folder` is empty, folders are not compared.
[[nodiscard]] std::string difference(const IndexSettings& index, const std::string& folder, const Embedder& embedder);

// Brings the index up to date with the folder of the settings: embeds new and changed files, and removes the passages of files that are
// gone. A file whose size and time are the same as in the index is not read. After an error or a stop (Failure `cancelled`), the index has
// all files that were done by then.
[[nodiscard]] IndexReport bring_up_to_date(Store& store, const IndexSettings& settings, const Embedder& embedder, const IndexingOptions& options);

}  // namespace rag
