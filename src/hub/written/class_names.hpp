// The names of transformers' classes ("LlamaForCausalLM"), which are written to "architectures" in config.json. Servers choose their
// implementation of a model by this name.
#pragma once

#include <string_view>

namespace tessera::detail::hub {

// Returns the class of a type of model; empty if the class is not known.
[[nodiscard]] std::string_view class_of(std::string_view model_type) noexcept;

}  // namespace tessera::detail::hub
