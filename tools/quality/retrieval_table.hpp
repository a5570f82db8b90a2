// The mode --retrieval of tessera-quality: a row for each weight format and number of dimensions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <tessera/engine.hpp>

namespace tessera::quality {

struct RetrievalOptions {
  bool is_wanted = false;
  std::vector<std::string> formats;        // names of weight formats; empty: only the file's own
  std::vector<std::uint32_t> dimensions;   // empty: all dimensions of the model
};

// Adds --retrieval, --formats and --dimensions. Returns --retrieval.
CLI::Option* add_retrieval(CLI::App& app, RetrievalOptions& options);

// Measures the rows and prints them as a table, or as JSON lines if `json` is true.
[[nodiscard]] Status print_retrieval(const std::shared_ptr<const ModelSource>& model, const std::filesystem::path& folder, const RetrievalOptions& options,
                                     const EngineOptions& engine_options, bool json);

}  // namespace tessera::quality
