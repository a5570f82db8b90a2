// All tables of option keys, for the reference.
#pragma once

#include <string>
#include <vector>

#include "options/json_options.hpp"

namespace tessera::c {

[[nodiscard]] std::vector<Table> engine_tables();
[[nodiscard]] std::vector<Table> sampler_tables();
[[nodiscard]] std::vector<Table> grammar_tables();
[[nodiscard]] std::vector<Table> generate_tables();
[[nodiscard]] std::vector<Table> embed_tables();
[[nodiscard]] std::vector<Table> chat_tables();
[[nodiscard]] std::vector<Table> scheduler_tables();
[[nodiscard]] std::vector<Table> request_tables();

}  // namespace tessera::c
