// Finds the model's tensors that a module of PEFT stands for, by the tables of the model's type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/adapter_file.hpp"
#include "hub/table.hpp"

namespace tessera::detail::adapters {

// A tensor of the model that is made from a module's weights.
struct Target {
  const hub::TensorRow* row = nullptr;  // says how the tensor's rows are arranged
  std::uint32_t tensor = 0;             // index into AdapterBase::tensors
  // If the model has the parts of a fused matrix as tensors of their own: which rows of the arranged matrix are this tensor's.
  std::uint64_t first_row = 0;
  bool is_part = false;
  std::optional<std::uint32_t> expert = {};  // the expert's number, if the module is one expert of the tensor
};

struct Targets {
  std::vector<Target> targets;  // several if the module's matrix is several tensors of the model
  bool is_parameter = false;    // the module's tensor is a parameter without a module of its own: all experts in one
  std::string full_name;        // of the module or the parameter, by which PEFT's patterns name it
};

// A module of a file, and what the file says about which of its parameters is meant.
struct ModuleName {
  std::string_view name;
  std::uint32_t depth = 0, wrappers = 1;       // of PeftModule, and how many the module has in all
  const std::vector<std::string>& parameters;  // PeftConfig::parameters
};

// Returns what a module stands for in models of a table. The error says why there is nothing (unsupported), or that the model has fewer layers
// (corrupt_file).
[[nodiscard]] Result<Targets> find_targets(const hub::Table& table, const AdapterBase& base, const ModuleName& module);

}  // namespace tessera::detail::adapters
