// Remembers that a model could not be loaded, so that its files are not read again for each request.
#pragma once

#include <chrono>
#include <optional>
#include <utility>

#include "api_error.hpp"
#include "models/file_state.hpp"

namespace server {

// Time for which a model that could not be loaded is not read again. A change of one of its files ends this time.
constexpr std::chrono::seconds kFaultyFile{30};
// The same time for a model that did not get enough memory. It is shorter, because other programs may free memory soon.
constexpr std::chrono::seconds kNoMemory{5};

struct FailedLoad {
  using Time = std::chrono::steady_clock::time_point;

  ApiError error;    // for requests that name the model
  FileState files;   // state of the files before the load began
  Time again{};      // from this time on the model is read again

  // Returns the error for a request at the time `now`; nullopt if the model should be read again. `present`: the files' state now.
  [[nodiscard]] std::optional<ApiError> answer(const FileState& present, Time now) const {
    if (now >= again || present != files) return std::nullopt;
    ApiError refusal = error;
    refusal.retry_after = std::chrono::duration<double>(again - now).count();
    return refusal;
  }
};

}  // namespace server
