// The options of --kv-table, and the table that follows from the options and a model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <tessera/kv/wide_layers.hpp>

#include "kv_model.hpp"
#include "kv_report.hpp"

namespace tessera::inspect {

// Values of the options. A number replaces the model's number.
struct KvArguments {
  bool table = false;
  std::optional<std::uint64_t> layers, kv_heads, head_dim, window, weights, memory, users, tp, page_tokens;
  std::vector<std::uint64_t> contexts;
};

extern const char* const kKvHelp;  // examples, for the end of --help

// Adds --kv-table and the options that require it. Returns these other options.
std::vector<CLI::Option*> add_kv_options(CLI::App& app, KvArguments& arguments);

struct KvTypes {
  DType dtype = DType::automatic;  // automatic: all KV types
  WideLayers wide = {};
};

// Makes the table that the options describe (KvQuestion). Error: invalid_argument, an option is wrong.
[[nodiscard]] Result<KvReport> kv_report(const std::optional<KvModel>& model, const std::string& path,
                                         const KvArguments& arguments, const KvTypes& types);

}  // namespace tessera::inspect
