// The names of transformers' classes, for "architectures" in config.json, by which servers choose their own class.
#pragma once

#include <string_view>

namespace tessera::detail::hub {

// Returns the class of a type of model; empty if it is not known.
[[nodiscard]] std::string_view class_of(std::string_view model_type) noexcept;

}  // namespace tessera::detail::hub
