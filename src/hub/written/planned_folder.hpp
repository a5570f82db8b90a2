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

// Makes the plan of the folder for a model. Several types of models may belong to the model's architecture. Each is tried: config.json is
// made for it and read again. The first type for which the result describes the same computation is taken. Errors: those of
// plan_folder().
[[nodiscard]] Result<PlannedFolder> planned_folder(const ModelSource& model, const FolderOptions& options);

}  // namespace tessera::detail::hub
