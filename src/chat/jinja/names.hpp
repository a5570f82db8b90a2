// The names of filters and tests.
#pragma once

#include <string_view>

#include "chat/jinja/syntax/ast.hpp"

namespace tessera::jinja {

[[nodiscard]] bool is_filter(std::string_view name) noexcept;
[[nodiscard]] bool is_test(std::string_view name) noexcept;

// An unknown filter or test is an error of the template, unless it stands in a branch that may never be taken: then it
// is one when it is reached, as in jinja2. Throws Failure.
void check_names(const Program& program);

}  // namespace tessera::jinja
