// Makes prompts for filling in a text between two texts: the field `suffix` of completions.
#pragma once

#include <string>
#include <vector>

#include "models/served_model.hpp"

namespace server {

// Returns whether the model has tokens to fill in between texts.
[[nodiscard]] bool fills_in(const ServedModel& model);
// Returns a prompt that makes the model write the text between `before` and `behind`. `before` may begin with BOS.
// Errors: ApiError of status 400 that names the field suffix, if the model has no fill-in-the-middle tokens.
[[nodiscard]] std::vector<tessera::Token> fill_in_prompt(const ServedModel& model, std::vector<tessera::Token> before, const std::string& behind);

}  // namespace server
