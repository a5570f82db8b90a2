// A folder that is to be written: the type that fits the model, its config.json, and its tensors.
#pragma once

#include <vector>

#include <tessera/unstable/hub/written_folder.hpp>

#include "hub/table.hpp"
#include "hub/written/folder_tensors.hpp"
#include "hub/written/text_files.hpp"

namespace tessera::detail::hub {

struct PlannedFolder {
  const Table* table = nullptr;
  Json config;
  std::vector<TextFile> texts;         // the other files of text
  std::vector<WrittenTensor> tensors;  // in the order in which they are written
};

// Returns the folder for a model, of the first type whose config.json, read again, describes the same computation. Errors: as of
// plan_folder().
[[nodiscard]] Result<PlannedFolder> planned_folder(const ModelSource& model, const FolderOptions& options);

}  // namespace tessera::detail::hub
