// The plan of a folder that will be written: the type of model that fits, config.json, and the tensors.
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
  std::vector<TextFile> texts;         // the other text files
  std::vector<WrittenTensor> tensors;  // in the order in which they are written
};

// Returns the folder for a model. Tries the types of the model's architecture, and takes the first type whose config.json, when it is read
// again, describes the same computation. Errors: those of plan_folder().
[[nodiscard]] Result<PlannedFolder> planned_folder(const ModelSource& model, const FolderOptions& options);

}  // namespace tessera::detail::hub
