// The options of programs that let the user choose the formats of a model's tensors.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "plan.hpp"

namespace tessera::quantize {

struct FormatTexts {
  std::string format, output, embedding;
  std::filesystem::path imatrix;
};

inline void add_format_options(CLI::App& app, FormatTexts& texts, Options& options) {
  app.add_option("--output-type", texts.output, "the format of the output matrix. Default: FORMAT, but Q6_K at least")->type_name("FORMAT");
  app.add_option("--embedding-type", texts.embedding, "the format of the token embedding. Default: FORMAT")->type_name("FORMAT");
  app.add_option("--imatrix", texts.imatrix, "a file that says which inputs matter more, written by tessera-quality\n--imatrix or llama-imatrix. Default: all inputs matter alike")
      ->type_name("FILE");
  app.add_flag("--requantize", options.requantize, "quantise weights that are quantised already, which loses accuracy\nDefault: an error");
}

// Reads the names of the formats. Error: invalid_argument, a name is not the name of a format.
[[nodiscard]] inline Status read_formats(const FormatTexts& texts, Options& options) {
  if (!texts.format.empty()) {
    auto target = tool::parse_target(texts.format);
    if (!target) return target.error();
    options.target = *target;
  }
  for (const auto& [name, slot] : {std::pair{&texts.output, &options.output}, std::pair{&texts.embedding, &options.embedding}}) {
    if (name->empty()) continue;
    const auto type = tool::parse_target(*name);
    if (!type) return type.error();
    if (type->mix != tool::Mix::none) {
      return Error(ErrorCode::invalid_argument, fmt::format("{} is a mix: one matrix takes one format, such as Q4_K", *name));
    }
    *slot = type->format;
  }
  return {};
}

}  // namespace tessera::quantize
