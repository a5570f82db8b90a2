// Checks that the filters and tests that a template names exist.
#pragma once

#include <string_view>

#include "chat/jinja/syntax/ast.hpp"

namespace tessera::jinja {

[[nodiscard]] bool is_filter(std::string_view name) noexcept;
[[nodiscard]] bool is_test(std::string_view name) noexcept;

// Throws a Failure if the template uses a filter or a test that does not exist. Exception: in branches (of an if, for example) such a
// name is not refused here. It is an error only when the branch is taken, as in jinja2.
void check_names(const Program& program);

}  // namespace tessera::jinja
