// The results of a run over many schemas.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace tessera::grammar_tool {

struct Report {
  std::size_t files = 0, clean = 0, wrong_accepts = 0, wrong_rejects = 0, refused = 0, instances = 0, masks = 0;
  std::map<std::string, std::size_t> reasons;                   // reason of refusal -> number of schemas
  std::vector<std::string> wrong;                               // files with a wrongly judged instance
  std::vector<double> mask_us, compile_ms;

  [[nodiscard]] nlohmann::ordered_json json() const;
  void print() const;
};

}  // namespace tessera::grammar_tool
