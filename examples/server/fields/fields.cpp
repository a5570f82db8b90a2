#include "fields/fields.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace server {

using tessera::Json;

Fields::Fields(const Json& json, std::string path) : members_(json.members()), path_(std::move(path)) {
  if (members_ == nullptr) throw ApiError(400, path_.empty() ? "The body must be a JSON object." : "This must be an object.", path_);
}

std::string Fields::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

void Fields::refuse(std::string_view name, std::string_view why) const { throw ApiError(400, std::string(why), path_of(name)); }

const Json* Fields::any(std::string_view name) {
  read_.push_back(name);
  for (const auto& [key, value] : *members_) {
    if (key == name) return value.is_null() ? nullptr : &value;
  }
  return nullptr;
}

std::optional<bool> Fields::boolean(std::string_view name) {
  const Json* value = any(name);
  if (value == nullptr) return std::nullopt;
  if (value->boolean() == nullptr) refuse(name, "This must be true or false.");
  return *value->boolean();
}

std::optional<std::int64_t> Fields::integer(std::string_view name, std::int64_t least, std::int64_t most) {
  const Json* value = any(name);
  if (value == nullptr) return std::nullopt;
  std::optional<std::int64_t> whole;
  if (value->integer() != nullptr) whole = *value->integer();
  const double* number = value->number();  // some clients write whole numbers as "1.0"
  if (number != nullptr && std::trunc(*number) == *number && std::fabs(*number) < 9e15) whole = static_cast<std::int64_t>(*number);
  if (!whole || *whole < least || *whole > most) refuse(name, fmt::format("This must be a whole number from {} to {}.", least, most));
  return whole;
}

std::optional<double> Fields::number(std::string_view name, double least, double most) {
  const Json* value = any(name);
  if (value == nullptr) return std::nullopt;
  std::optional<double> number;
  if (value->number() != nullptr) number = *value->number();
  if (value->integer() != nullptr) number = static_cast<double>(*value->integer());
  if (!number || !(*number >= least && *number <= most)) refuse(name, fmt::format("This must be a number from {} to {}.", least, most));
  return number;
}

std::optional<std::string> Fields::text(std::string_view name) {
  const Json* value = any(name);
  if (value == nullptr) return std::nullopt;
  if (value->string() == nullptr) refuse(name, "This must be a text.");
  return *value->string();
}

std::optional<std::string> Fields::choice(std::string_view name, std::initializer_list<std::string_view> texts) {
  auto value = text(name);
  if (value && std::find(texts.begin(), texts.end(), *value) == texts.end()) {
    refuse(name, fmt::format("This must be one of: {}.", fmt::join(texts, ", ")));
  }
  return value;
}

const Json::Array* Fields::list(std::string_view name) {
  const Json* value = any(name);
  if (value == nullptr) return nullptr;
  if (value->elements() == nullptr) refuse(name, "This must be a list.");
  return value->elements();
}

const Json* Fields::object(std::string_view name) {
  const Json* value = any(name);
  if (value != nullptr && value->members() == nullptr) refuse(name, "This must be an object.");
  return value;
}

std::vector<std::string> Fields::texts(std::string_view name, std::size_t most) {
  const Json* value = any(name);
  std::vector<std::string> result;
  if (value == nullptr) return result;
  if (value->string() != nullptr) {
    result.push_back(*value->string());
  } else if (value->elements() != nullptr) {
    for (const Json& each : *value->elements()) {
      if (each.string() == nullptr) refuse(name, "This must be a text or a list of texts.");
      result.push_back(*each.string());
    }
  } else {
    refuse(name, "This must be a text or a list of texts.");
  }
  if (result.size() > most) refuse(name, fmt::format("This has {} texts at most.", most));
  return result;
}

void Fields::only(std::string_view name, const Json& value) {
  const Json* given = any(name);
  if (given != nullptr && *given != value) refuse(name, fmt::format("{} has one value here: leave it out, or set it to {}.", name, value.dump()));
}

void Fields::done(Notes& notes) const {
  for (const auto& [key, value] : *members_) {
    if (value.is_null() || std::find(read_.begin(), read_.end(), key) != read_.end()) continue;
    notes.ignore(path_of(key), path_of(key), "it is not read in a request of this form.");
  }
}

}  // namespace server
