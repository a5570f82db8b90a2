// Fills in config.json from a model's settings, when a folder is written. The functions that translate config.json into settings
// (Table::map) also work in this direction. If Mapping::filling is set, a function that is about to read a key first fills in this key. A
// function that copies a key to a setting sets the key to the value of the setting. A function that computes a setting from several keys
// calls a function that computes these keys from the setting.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/extend/files/model_source.hpp>
#include <tessera/extend/model/model_spec.hpp>

#include "hub/config.hpp"
#include "model/architecture.hpp"

namespace tessera::detail::hub {

// How numbers are written to config.json. GGUF files have them as float32. shortest: the shortest decimal number that becomes the same
// float32 (1e-05); all: all digits of the float32's value.
enum class Digits : std::uint8_t { shortest, all };

class Filling {
 public:
  // Precondition: `config` has an empty config.json. All arguments except `digits` must outlive the object.
  Filling(Config& config, const ModelSource& model, const Architecture& its_architecture, const ModelSpec& its_spec, Digits digits) noexcept
      : spec(its_spec), architecture(its_architecture), config_(config), model_(model), digits_(digits) {}

  const ModelSpec& spec;
  const Architecture& architecture;

  // Set a key of config.json; do nothing if config.json has the key already. The fill_ functions set the key to the value of a setting,
  // and do nothing if the model does not have the setting. If the setting is a list with a number for each layer, the key gets the
  // largest number.
  void set(std::string_view key, Json value);
  void set_number(std::string_view key, double value) { set(key, number_json(value)); }
  void fill_integer(std::string_view key, Setting setting);
  void fill_number(std::string_view key, Setting setting);
  void fill_boolean(std::string_view key, Setting setting);

  [[nodiscard]] Json number_json(double value) const;
  [[nodiscard]] std::optional<std::int64_t> integer(Setting setting) const noexcept;
  [[nodiscard]] std::optional<double> number(Setting setting) const noexcept;
  [[nodiscard]] std::string text(Setting setting) const;  // empty if the model does not have the setting
  // Returns the numbers of a setting that may be a list; an empty list if the model does not have the setting.
  [[nodiscard]] std::vector<std::int64_t> list(Setting setting) const;
  [[nodiscard]] bool has(Role role, std::uint32_t layer = 0) const { return model_.find_tensor(row_of(role).tensor_name(layer)) != nullptr; }
  [[nodiscard]] bool has_in_any_layer(Role role) const;
  // Returns a tensor of float32; an empty list if the model does not have the tensor, or if it cannot be read.
  [[nodiscard]] std::vector<float> values(Role role) const;
  // Returns the rows of the tensor of a role; 0 if the model does not have the tensor.
  [[nodiscard]] std::uint64_t rows(Role role) const;

  // Returns for each layer whether it has a window; an empty list if no layer has one.
  [[nodiscard]] std::vector<bool> windowed_layers() const;

 private:
  // Returns the size of a head if the model's file does not state it, because it follows from other numbers. It is written to config.json
  // nevertheless, because transformers' classes may have another default.
  [[nodiscard]] std::optional<std::int64_t> usual_head_dim() const noexcept;

  Config& config_;
  const ModelSource& model_;
  Digits digits_;
};

// Returns a list with a text for each layer.
template <class Text>
[[nodiscard]] Json texts_of_layers(std::size_t layers, Text text) {
  Json list = Json::array();
  for (std::size_t layer = 0; layer < layers; ++layer) list.elements()->emplace_back(text(layer));
  return list;
}

}  // namespace tessera::detail::hub
