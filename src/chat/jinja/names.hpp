// Checks the names of filters and tests.
#pragma once

#include <string_view>

#include "chat/jinja/syntax/ast.hpp"

namespace tessera::jinja {

[[nodiscard]] bool is_filter(std::string_view name) noexcept;
[[nodiscard]] bool is_test(std::string_view name) noexcept;

// Throws Failure if an unknown filter or test stands outside of branches. In a branch, which may never be taken, an unknown name is an
// error when it is reached, as in jinja2.
void check_names(const Program& program);

}  // namespace tessera::jinja
