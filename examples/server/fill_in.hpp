// Prompts for filling in text between two texts: `suffix` of completions.
#pragma once

#include <string>
#include <vector>

#include "served_model.hpp"

namespace server {

// Returns whether the model has tokens to fill in between texts.
[[nodiscard]] bool fills_in(const ServedModel& model);
// Returns the prompt for the text between `before`, which may begin with BOS, and `behind`.
// Errors: ApiError of status 400 that names suffix, if the model has no tokens for this.
[[nodiscard]] std::vector<tessera::Token> fill_in_prompt(const ServedModel& model, std::vector<tessera::Token> before, const std::string& behind);

}  // namespace server
