// Makes the list of a model's tensors from the tensors of its folder and the table of its type.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hub/hub_model.hpp"
#include "hub/quantised/quantisation.hpp"

namespace tessera::detail::hub {

// Returns all possible prefixes of the names of a language model's tensors.
[[nodiscard]] std::span<const std::string_view> known_prefixes() noexcept;
// Returns the prefix of the names of the language model's tensors: "model.", or "language_model.model." in models that also read images;
// empty if the names have no prefix.
[[nodiscard]] std::string prefix_of(const SafetensorsFolder& folder, const Table& table);

// Returns the names that the tensor of a table's row may have in the folder, the likeliest first. `prefix`: prefix_of() the folder.
// `layers`: number of layers without draft heads. `layer`: for a layer's tensor, the number of the layer. `expert`: for the tensor of a
// single expert, the number of the expert.
[[nodiscard]] std::vector<std::string> names_of(const TensorRow& row, const Table& table, std::string_view prefix, std::uint32_t layers,
                                                std::uint32_t layer, std::uint32_t expert);
// Returns how many layers of draft heads the folder has; `said` is the number that config.json states.
[[nodiscard]] std::int64_t count_further(const SafetensorsFolder& folder, const Table& table, std::string_view prefix, std::int64_t layers,
                                         std::int64_t said);

class TensorList {
 public:
  TensorList(HubModel& model, const Mapping& mapping, const Quantisation& quantisation);
  // Fills the model's list of tensors (HubModel). Errors (the message names the folder's tensor): unsupported, a tensor has a type that
  // is not read, or the type of model has no such tensor; corrupt_file, a tensor has a wrong shape.
  [[nodiscard]] Status make();

 private:
  [[nodiscard]] Status make_row(const TensorRow& row, std::uint32_t layer);
  [[nodiscard]] Status add_constants();
  [[nodiscard]] Status add_strangers();
  [[nodiscard]] Status add(std::string name, Recipe recipe);
  // Returns the matrix of a row; nullptr if the folder has none.
  [[nodiscard]] Result<std::shared_ptr<const Matrix>> find(const TensorRow& row, std::uint32_t layer, std::uint32_t expert);
  [[nodiscard]] Status add_factors(std::string_view name, const std::vector<float>& factors);
  [[nodiscard]] bool is_made(std::string_view name) const noexcept;
  void finish();

  HubModel& model_;
  const Mapping& mapping_;
  const Quantisation& quantisation_;
  Shape shape_;
  std::uint32_t n_layers_ = 0;
  bool has_experts_ = false, is_tied_ = false, has_quantised_ = false;
  std::vector<bool> used_;  // for each tensor of the folder: true if a row has used it
};

}  // namespace tessera::detail::hub
