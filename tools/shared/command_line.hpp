// Parts that the command lines of all programs share.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "completion.hpp"

namespace tessera::tool {

// Returns how many letters must be added, removed or changed to turn one text into the other.
[[nodiscard]] inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

// For the error about an unknown option `text`: returns the long option that the user probably meant, which begins in the same way or
// differs in few letters. Returns an empty text if there is none.
[[nodiscard]] inline std::string option_like(const CLI::App& app, std::string_view text) {
  text = text.substr(2, text.find('=') - 2);
  std::string best;
  std::size_t nearest = SIZE_MAX;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      const std::size_t shorter = std::min(name.size(), text.size());
      const bool begins_alike = shorter >= 3 && name.substr(0, shorter) == text.substr(0, shorter);
      std::size_t distance = edit_distance(name, text);
      if (begins_alike) distance = std::min<std::size_t>(distance, 2);
      if (distance > (text.size() + 2) / 3 || distance >= nearest) continue;
      nearest = distance;
      best = name;
    }
  }
  return best;
}

// Formats the help without CLI11's own remarks ("Excludes: --file", "INT in [8 - 8192]"), because the descriptions say the same in words.
struct HelpFormatter : CLI::Formatter {
  [[nodiscard]] std::string make_option_opts(const CLI::Option* option) const override {
    std::string type = option->get_type_name();
    for (const char* remark : {":INT in [", ":UINT in [", ":FLOAT in [", ":POSITIVE", ":NONNEGATIVE"}) type.resize(std::min(type.find(remark), type.size()));
    return type.empty() ? "" : " " + type;
  }
};

// Parses the command line, as app.parse(argc, argv) does, but corrects two faults of that function: it reads the next argument as the value
// of `--option=`, and reports `--unknown 3` as "3 --unknown". Also adds `--completion SHELL`, which --help does not list. Its script is
// printed in the way in which --version is printed: by an exception.
inline void parse(CLI::App& app, int argc, char** argv) {
  const auto formatter = std::make_shared<HelpFormatter>();
  formatter->column_width(app.get_formatter()->get_column_width());
  app.formatter(formatter);
  if (argc >= 2 && std::string_view(argv[1]) == "--completion") {
    throw CLI::CallForVersion(completion(app, argc == 3 ? argv[2] : ""), 0);
  }
  std::vector<std::string> arguments;
  bool options = true;  // false after an argument "--"
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
  std::reverse(arguments.begin(), arguments.end());  // CLI11 reads arguments from the last to the first
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ExtrasError&) {
    const std::vector<std::string> unknown = app.remaining(true);
    if (unknown.empty()) throw;
    const std::string& first = unknown.front();
    std::string message = (first.starts_with('-') ? "there is no option " : "this argument has no place: ") + first;
    const std::string like = first.starts_with("--") ? option_like(app, first) : "";
    if (!like.empty()) message += ", but --" + like;
    throw CLI::ExtrasError(message, CLI::ExitCodes::ExtrasError);
  }
}

// Returns whether all printed output was written; false if the disk is full, for example.
[[nodiscard]] inline bool output_arrived() {
  std::cout.flush();
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
}
inline constexpr const char* kLostOutput = "cannot write to standard output";

// Parses a number of tokens: "8192" or "8k", where k is 1024.
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
