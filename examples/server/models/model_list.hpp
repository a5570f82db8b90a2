// The list of models that the command line names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/models.hpp"

namespace server {

struct NamedModels {
  std::vector<std::string> models{};   // -m: [NAME=]PLACE
  std::vector<std::string> ids{};      // --model-id: the name of the first -m, the second, ...
  std::optional<std::string> folder{}; // --models
  std::vector<std::string> pins{};     // --pin
};

// Returns the models in order: those of -m, then those of the folder by name. An empty list means that the program's own model is served.
// Opens no file. Throws UsageError, for example if two models have the same name; Failure if a folder cannot be read, or if another
// program's store has no model with a given name.
[[nodiscard]] std::vector<ConfiguredModel> list_configured(const NamedModels& names);

// Returns the adapters that the command line names. `texts`: each [MODEL/]NAME=PLACE. `models`: the models of list_configured(); empty: the
// program's own model is served. Throws UsageError if a name or a place is missing, a name is taken, or there is no such model or file.
[[nodiscard]] std::vector<ConfiguredAdapter> list_adapters(const std::vector<std::string>& texts, const std::vector<ConfiguredModel>& models);

}  // namespace server
