// --kv-table on the command line: its options, and the question that they and a model make.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <tessera/files/model_file.hpp>
#include <tessera/kv/wide_layers.hpp>

#include "kv_report.hpp"

namespace tessera::inspect {

// What was said; a number that a model gives too replaces the model's.
struct KvArguments {
  bool table = false;
  std::optional<std::uint64_t> layers, kv_heads, head_dim, window, weights, memory, users, tp, page_tokens;
  std::vector<std::uint64_t> contexts;
};

extern const char* const kKvHelp;  // examples, for the end of --help

// Adds --kv-table, and the options that go with it alone, which are returned.
std::vector<CLI::Option*> add_kv_options(CLI::App& app, KvArguments& arguments);

struct KvTypes {
  DType dtype = DType::automatic;  // automatic: all of them
  WideLayers wide = {};
};

// Errors: invalid_argument for what the options are wrong about.
[[nodiscard]] Result<KvReport> kv_report(const std::optional<ModelFile>& file, const std::string& path,
                                         const KvArguments& arguments, const KvTypes& types);

}  // namespace tessera::inspect
