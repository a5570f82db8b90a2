// Objects of answers, written as they will stand: Object().set("id", id).set("object", "model").
#pragma once

#include <string>
#include <utility>

#include <tessera/json/json.hpp>

namespace server {

class Object {
 public:
  // The caller sees to it that a key stands once.
  Object& set(std::string key, tessera::Json value) & {
    members_.emplace_back(std::move(key), std::move(value));
    return *this;
  }
  Object&& set(std::string key, tessera::Json value) && { return std::move(set(std::move(key), std::move(value))); }

  operator tessera::Json() const& { return tessera::Json(members_); }             // NOLINT: an object is a value
  operator tessera::Json() && { return tessera::Json(std::move(members_)); }      // NOLINT
  [[nodiscard]] std::string dump() const { return tessera::Json(members_).dump(); }

 private:
  tessera::Json::Object members_;
};

}  // namespace server
