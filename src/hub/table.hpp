// A table describes how folders of one type of model ("llama") become models of this library: which tensors the folders have, how the
// model's tensors are made from them, and how config.json is translated into settings. It names the architecture (src/model/arch), which
// describes the computation. To add a type of model, add a table to the file of its family in tables/.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hub/mapping.hpp"
#include "hub/recipe.hpp"
#include "model/load/roles.hpp"

namespace tessera::detail::hub {

// The facts on which arrangements of rows depend, from the settings.
struct Shape {
  std::uint64_t width = 0, heads = 0, kv_heads = 0;
  std::uint64_t state_groups = 0, state_heads = 0, state_keys = 0, state_values = 0;  // recurrent layers
  std::uint64_t plain_dim = 0, head_value_dim = 0;                                    // latent attention: of a head
};

// Changes a recipe so that it makes the model's tensor from the folder's tensor. Precondition: the recipe's parts and dims describe the
// folder's tensor as it is. Returns false if the function cannot arrange a tensor of this shape.
using Arrange = bool (*)(const Shape&, Recipe&);

// The models that use a row.
enum class Of : std::uint8_t { all, models_with_experts, models_without_experts, models_with_scores };

// A tensor of the model, and the tensor of the folder from which it is made.
struct TensorRow {
  Role role;
  // The name of the folder's tensor without its prefix. For a layer's tensor the prefix is like "model.layers.N.", for another tensor
  // like "model." (prefix_of(), Table::layers). '*' stands for the number of an expert: the tensors of all experts become one tensor of
  // the model.
  std::string_view name;
  Arrange arrange = nullptr;  // nullptr: the tensor is not rearranged
  Of of = Of::all;
};

using TensorRows = std::span<const TensorRow>;

struct Table {
  std::string_view model_type;    // model_type in config.json
  std::string_view architecture;  // the architecture's name in this library (src/model/arch)
  void (*map)(Mapping&);          // translates config.json
  std::array<TensorRows, 6> rows = {};
  std::string_view layers = "layers.";  // text before a layer's number in names
  // false: transformers' class ignores tie_word_embeddings, and always has a separate output matrix.
  bool can_be_tied = true;
  // The prefix of the names of draft heads' tensors. Not empty ("mtp."): the heads' layers have this prefix and are numbered from 0.
  // Empty: the heads' layers have the model's prefix, and their numbers follow those of the model's layers.
  std::string_view heads = {};
  // When a folder is written, the prefix of the names of its tensors. (A folder that is read may have another: prefix_of().)
  std::string_view prefix = "model.";
};

// Returns the table of a type of model; nullptr if the type is unknown.
[[nodiscard]] const Table* find_table(std::string_view model_type) noexcept;
// Returns the tables of all types of models that an architecture computes, in the order of the families.
[[nodiscard]] std::vector<const Table*> tables_of(std::string_view architecture);
// Returns the names of all types, for errors.
[[nodiscard]] std::string known_types();

}  // namespace tessera::detail::hub
