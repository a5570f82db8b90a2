// Reads the configuration of a PEFT adapter (adapter_config.json). PEFT has some fifty keys. A key that changes results is either read or,
// if tessera does not implement it, refused. An unknown key is refused unless its value is empty (null, false, 0 or an empty list), because
// it may change results.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>

#include "text/pcre2.hpp"

namespace tessera::detail::adapters {

// A number (a rank or alpha) that can differ between modules, as PEFT's keys rank_pattern and alpha_pattern state it. Each entry is a
// regular expression, which is compared with the end of a module's name, and a number. The first entry that matches counts.
class Pattern {
 public:
  // Adds a key. Error: corrupt_file, the key is not a regular expression.
  [[nodiscard]] Status add(std::string_view key, double number, std::string_view place);
  // Returns the number for a module; `usual` if no key matches. Error: corrupt_file, the keys take too long to match.
  [[nodiscard]] Result<double> number_of(std::string_view module, double usual);

 private:
  struct Row {
    Pcre2Code code;
    double number;
  };
  std::vector<Row> rows_;
  std::size_t steps_ = 0;
};

struct PeftConfig {
  std::string base;    // base_model_name_or_path; may be empty
  double alpha = 8.0;  // PEFT's default
  double usual_rank = 0.0;  // r, the rank of modules without an entry in rank_pattern; 0: not stated, the tensors alone state the ranks
  Pattern alphas, ranks;
  bool is_rank_stabilised = false;      // rsLoRA: alpha / sqrt(rank)
  bool has_lengths = false;             // DoRA
  std::vector<Token> invocation;        // aLoRA
  std::vector<std::string> parameters;  // target_parameters: names of parameters, or ends of such names

  // Reads the folder's adapter_config.json. Errors: not_found; corrupt_file; unsupported, a key changes results in a way that tessera does
  // not implement; io.
  [[nodiscard]] static Result<PeftConfig> read(const std::filesystem::path& folder);

  // Returns the factor of B A for a module: alpha / rank, or alpha / sqrt(rank). `rank`: the rank of the module's tensors. Error:
  // corrupt_file, the keys r and rank_pattern state another rank.
  [[nodiscard]] Result<float> scale_of(std::string_view module, std::uint64_t rank);
};

}  // namespace tessera::detail::adapters
