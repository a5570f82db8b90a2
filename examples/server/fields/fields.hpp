// Reads a JSON object of a request field by field. A null field counts as absent. Throws ApiError of status 400, which names the field, for
// a value that has the wrong type, is out of range, or has no meaning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/json/json.hpp>

#include "api_error.hpp"
#include "notes.hpp"

namespace server {

class Fields {
 public:
  // `path`: the prefix of the fields' names in errors: "tools[0].function".
  explicit Fields(const tessera::Json& json, std::string path = {});

  [[nodiscard]] std::optional<bool> boolean(std::string_view name);
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name, std::int64_t least, std::int64_t most);
  [[nodiscard]] std::optional<double> number(std::string_view name, double least, double most);
  [[nodiscard]] std::optional<std::string> text(std::string_view name);
  // Returns a text, which must be one of `texts`.
  [[nodiscard]] std::optional<std::string> choice(std::string_view name, std::initializer_list<std::string_view> texts);
  [[nodiscard]] const tessera::Json::Array* list(std::string_view name);
  [[nodiscard]] const tessera::Json* object(std::string_view name);
  [[nodiscard]] const tessera::Json* any(std::string_view name);
  // Returns a list of at most `most` texts. The field may also be a single text.
  [[nodiscard]] std::vector<std::string> texts(std::string_view name, std::size_t most);

  template <class T>
  [[nodiscard]] T need(std::optional<T> value, std::string_view name) const {
    if (!value) throw ApiError(400, "This field is missing.", path_of(name));
    return *std::move(value);
  }
  template <class T>
  [[nodiscard]] const T* need(const T* value, std::string_view name) const {
    if (value == nullptr) throw ApiError(400, "This field is missing.", path_of(name));
    return value;
  }

  // Refuses a field unless it is absent or has this value, with which the field changes nothing ("dimensions": 288).
  void only(std::string_view name, const tessera::Json& value);
  // Notes as ignored all fields that are not null and that no function above has read. sift() has already removed the fields that the
  // endpoint never reads, so the endpoint reads each noted field in requests of another form. Call this after all fields of this request
  // were read. Throws ApiError of status 400 if `notes` is strict.
  void done(Notes& notes) const;

  [[nodiscard]] std::string path_of(std::string_view name) const;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[noreturn]] void refuse(std::string_view name, std::string_view why) const;

 private:
  const tessera::Json::Object* members_;
  std::string path_;
  std::vector<std::string_view> read_;
};

}  // namespace server
