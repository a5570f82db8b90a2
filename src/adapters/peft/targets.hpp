// Finds the tensors of the model that a PEFT module changes. The module's name is the name of a matrix in the model's folder; a table of
// the model's type (hub::Table) says which tensors of the model are made from this matrix.
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
  // is_part: the folder has one fused matrix (Q, K and V), and the model has its parts as separate tensors. This tensor is then the rows of
  // the arranged matrix from first_row on.
  std::uint64_t first_row = 0;
  bool is_part = false;
  std::optional<std::uint32_t> expert = {};  // the expert's number, if the module is one expert of the tensor
};

struct Targets {
  std::vector<Target> targets;  // more than one if the model has the module's matrix as several tensors
  bool is_parameter = false;    // the adapted weight is a parameter of the module, with the matrices of all experts
  std::string full_name;        // name of the module or the parameter in PEFT's patterns
};

// The name of a PEFT module, and the facts from which choose_parameter() tells which of its parameters is adapted.
struct ModuleName {
  std::string_view name;
  std::uint32_t depth = 0, wrappers = 1;       // PeftModule::depth, and the number of wrappers of the module
  const std::vector<std::string>& parameters;  // PeftConfig::parameters
};

// Returns the model's tensors for a module, by a table. Errors: unsupported, the model has no tensor for the module (the message says why);
// corrupt_file, the module's layer is beyond the model's layers.
[[nodiscard]] Result<Targets> find_targets(const hub::Table& table, const AdapterBase& base, const ModuleName& module);

}  // namespace tessera::detail::adapters
