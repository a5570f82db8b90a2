// Translates config.json into settings. Each type of model has a function that does this with a Mapping (Table::map). A Mapping remembers
// its first error, so that these functions need not check each call. The same functions also write config.json: see Mapping::filling.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "hub/config.hpp"
#include "hub/hub_settings.hpp"

namespace tessera::detail::hub {

class Filling;

class Mapping {
 public:
  Mapping(const Config& from, HubSettings& to) noexcept : config(from), settings(to) {}

  const Config& config;
  HubSettings& settings;
  // LongRoPE's factors and Llama 3.1's divisors of frequencies, from which tensors are made; empty if the model does not have them.
  std::vector<float> rope_divisors, short_factors, long_factors;
  bool has_scores = false;  // the model has a head that ranks or classifies
  // Not nullptr: a folder is written. Then functions that read a key first set the key from the model's settings (written/filling.hpp).
  Filling* filling = nullptr;

  [[nodiscard]] const Status& status() const noexcept { return status_; }

  // Return the value of a key of config.json; nullopt if the key is absent. A value of another type is an error.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key) { return integer_of(config.find(key), key); }
  [[nodiscard]] std::optional<double> number(std::string_view key) { return number_of(config.find(key), key); }
  [[nodiscard]] std::optional<bool> boolean(std::string_view key);
  [[nodiscard]] std::optional<std::string_view> text(std::string_view key) { return text_of(config.find(key), key); }
  // Returns the list of texts under a key; an empty list if the key is absent.
  [[nodiscard]] std::vector<std::string_view> texts(std::string_view key);
  // Returns the list of numbers in a value; an empty list if `value` is nullptr.
  [[nodiscard]] std::vector<float> numbers_of(const Json* value, std::string_view key);

  [[nodiscard]] std::optional<std::int64_t> integer_of(const Json* value, std::string_view key);
  [[nodiscard]] std::optional<double> number_of(const Json* value, std::string_view key);
  [[nodiscard]] std::optional<std::string_view> text_of(const Json* value, std::string_view key);

  // Copy the value of a key of config.json to a setting; do nothing if the key is absent. When a folder is written: set the key first.
  void copy_integer(Setting setting, std::string_view key);
  void copy_number(Setting setting, std::string_view key);
  void copy_boolean(Setting setting, std::string_view key);
  void set(Setting setting, HubSettings::Value value, std::string_view key) { settings.set(setting, std::move(value), key); }
  // Returns an integer setting that was set before; 0 if it was not.
  [[nodiscard]] std::int64_t given(Setting setting) const noexcept;

  // Refuse a model if the key has a value that the architecture does not implement. `allowed`: the values that it implements. An absent
  // key is accepted. When a folder is written: first set the key to the first allowed value.
  void expect_text(std::string_view key, std::initializer_list<std::string_view> allowed);
  void expect_boolean(std::string_view key, bool allowed);
  void expect_integer(std::string_view key, std::int64_t allowed);

  template <class... Args>
  void refuse(ErrorCode code, std::string_view key, fmt::format_string<Args...> format, Args&&... args) {
    if (status_) status_ = error_at(code, fmt::format("config.json: {}", key), format, std::forward<Args>(args)...);
  }

 private:
  Status status_;
};

}  // namespace tessera::detail::hub
