// What all programs' command lines have in common.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace tessera::tool {

// As app.parse(argc, argv), which of `--option=` with nothing behind it would take the next argument for its value, and of
// `--unknown 3` would say that "3 --unknown" was not expected.
inline void parse(CLI::App& app, int argc, char** argv) {
  std::vector<std::string> arguments;
  bool options = true;  // until a lone --
  for (int i = 1; i < argc; ++i) {
    std::string text = argv[i];
    options = options && text != "--";
    const std::string name = text.substr(0, text.size() - std::min<std::size_t>(text.size(), 1));
    const CLI::Option* option = options && text.starts_with("--") && text.ends_with('=') ? app.get_option_no_throw(name) : nullptr;
    if (option != nullptr && option->get_items_expected_max() > 0) {  // not a flag
      arguments.push_back(name);
      text.clear();
    }
    arguments.push_back(std::move(text));
  }
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ExtrasError&) {
    const std::vector<std::string> unknown = app.remaining(true);
    if (unknown.empty()) throw;
    const std::string& first = unknown.front();
    throw CLI::ExtrasError((first.starts_with('-') ? "there is no option " : "this argument has no place: ") + first,
                           CLI::ExitCodes::ExtrasError);
  }
}

// Whether everything that was printed has arrived: a full disk shows here.
[[nodiscard]] inline bool output_arrived() {
  std::cout.flush();
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
}
inline constexpr const char* kLostOutput = "cannot write to standard output";

// A number of tokens: "8192" or "8k", of 1024 each.
[[nodiscard]] inline std::optional<std::uint64_t> parse_tokens(std::string_view text) {
  const bool thousands = text.ends_with('k') || text.ends_with('K');
  if (thousands) text.remove_suffix(1);
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  if (thousands && value > UINT64_MAX / 1024) return std::nullopt;
  return thousands ? value * 1024 : value;
}

}  // namespace tessera::tool
