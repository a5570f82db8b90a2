// The names of this server's models, by which requests choose one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "api_error.hpp"

namespace server {

// Immutable: any thread may call.
class ModelNames {
 public:
  struct Options {
    bool any_name = true;     // if there is only one model, it answers requests with any name
    bool needs_name = false;  // a request has to name its model
  };
  // `ids`: the names in the order of the models; at least one.
  ModelNames(std::vector<std::string> ids, Options options) : ids_(std::move(ids)), options_(options) {}

  // Returns the index of the model that a request names. A name may end with ":latest". An empty name means the first model, unless
  // Options::needs_name. Errors: ApiError of status 404, there is no such model; 400, a name is needed.
  [[nodiscard]] std::size_t find(std::string_view name) const;
  // Returns the index of the model of exactly this name. Errors: ApiError of status 404.
  [[nodiscard]] std::size_t find_exactly(std::string_view name) const;
  // Returns whether a model has exactly this name.
  [[nodiscard]] bool has(std::string_view name) const noexcept;

 private:
  [[nodiscard]] ApiError no_such_model(std::string_view name) const;
  [[nodiscard]] std::string all() const;

  std::vector<std::string> ids_;
  Options options_;
};

}  // namespace server
