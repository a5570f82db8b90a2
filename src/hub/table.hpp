// A table describes the folders of one type of model: which tensors they have, how the model's tensors are made from these, and how
// config.json is translated into settings. To add a type of model, add its table to its family in tables/. The table's
// architecture (src/model/arch) says what is computed.
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

// The facts that arrangements of rows depend on, from the settings.
struct Shape {
  std::uint64_t width = 0, heads = 0, kv_heads = 0;
  std::uint64_t state_groups = 0, state_heads = 0, state_keys = 0, state_values = 0;  // recurrent layers
  std::uint64_t plain_dim = 0, head_value_dim = 0;                                    // latent attention: of a head
};

// Arranges a recipe whose parts and dims are as the folder has them. Returns false if the parts do not have a shape that can be arranged.
using Arrange = bool (*)(const Shape&, Recipe&);

// The models that use a row.
enum class Of : std::uint8_t { all, models_with_experts, models_without_experts, models_with_scores };

// A tensor of the model, and the tensor of the folder that it is made from.
struct TensorRow {
  Role role;
  // The name without its prefix (Prefixes below): "model.layers.N." for a layer's tensor, "model." for any other tensor. '*' stands for an
  // expert's number: the tensors of all experts become one.
  std::string_view name;
  Arrange arrange = nullptr;  // nullptr: as it is
  Of of = Of::all;
};

using TensorRows = std::span<const TensorRow>;

struct Table {
  std::string_view model_type;    // model_type in config.json
  std::string_view architecture;  // our name (src/model/arch)
  void (*map)(Mapping&);          // translates config.json
  std::array<TensorRows, 6> rows = {};
  std::string_view layers = "layers.";  // what stands before a layer's number
  // false: transformers' class ignores tie_word_embeddings, and always has an output matrix of its own.
  bool can_be_tied = true;
  // The prefix of the names of the draft heads, whose layers are numbered from 0: "mtp.". Empty: their layers follow the model's.
  std::string_view heads = {};
  // When a folder is written, the prefix of the names of its tensors. (A folder that is read may have another: prefix_of().)
  std::string_view prefix = "model.";
};

// Returns the table of a type of model; nullptr if there is none.
[[nodiscard]] const Table* find_table(std::string_view model_type) noexcept;
// Returns the tables of all types of models that an architecture computes, in the order of the families.
[[nodiscard]] std::vector<const Table*> tables_of(std::string_view architecture);
// Returns the names of all types, for errors.
[[nodiscard]] std::string known_types();

}  // namespace tessera::detail::hub
