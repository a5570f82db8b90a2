// --kv-dtype, as programs have it in common: one of kv_types() by its name in small letters, or "auto". Another one is an error
// of usage (status 2).
#pragma once

#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <tessera/kv/kv_layout.hpp>

namespace tessera::tool {

inline CLI::Option* add_kv_dtype(CLI::App& app, DType& type, const std::string& description) {
  const auto name_of = [](DType each) { return CLI::detail::to_lower(std::string(to_string(each))); };
  std::string names = name_of(DType::automatic);
  for (const DType each : kv_types()) names += "|" + name_of(each);
  return app
      .add_option_function<std::string>(
          "--kv-dtype",
          [=, &type](const std::string& text) {
            const std::string name = CLI::detail::to_lower(text);
            if (name == name_of(DType::automatic)) {
              type = DType::automatic;
              return;
            }
            for (const DType each : kv_types()) {
              if (name != name_of(each)) continue;
              type = each;
              return;
            }
            throw CLI::ValidationError("--kv-dtype", fmt::format("\"{}\" is none of {}", text, names));
          },
          description)
      ->type_name(names);
}

}  // namespace tessera::tool
