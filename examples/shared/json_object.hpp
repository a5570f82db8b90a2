// Builds JSON objects of answers, whose members keep their order: Object().set("id", id).set("object", "model").
#pragma once

#include <string>
#include <utility>

#include <tessera/json/json.hpp>

namespace server {

class Object {
 public:
  // Adds a member. The caller must set each key only once.
  Object& set(std::string key, tessera::Json value) & {
    members_.emplace_back(std::move(key), std::move(value));
    return *this;
  }
  Object&& set(std::string key, tessera::Json value) && { return std::move(set(std::move(key), std::move(value))); }

  operator tessera::Json() const& { return tessera::Json(members_); }             // NOLINT: not explicit, because an object is a value
  operator tessera::Json() && { return tessera::Json(std::move(members_)); }      // NOLINT
  [[nodiscard]] std::string dump() const { return tessera::Json(members_).dump(); }

 private:
  tessera::Json::Object members_;
};

}  // namespace server
