// Prompts between whose halves a model writes: `suffix` of completions.
#pragma once

#include <string>
#include <vector>

#include "served_model.hpp"

namespace server {

// Returns whether the model has tokens to fill in between texts.
[[nodiscard]] bool fills_in(const ServedModel& model);
// Returns the prompt for what stands between `before`, which may begin with the model's first token, and `behind`.
// Errors: ApiError of status 400 that names suffix, where the model has no such tokens.
[[nodiscard]] std::vector<tessera::Token> fill_in_prompt(const ServedModel& model, std::vector<tessera::Token> before, const std::string& behind);

}  // namespace server
