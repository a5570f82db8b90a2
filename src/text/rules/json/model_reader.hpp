// Reads "model" of a tokenizer.json: its options, its vocabulary, its merges.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "json/pull_reader.hpp"
#include "text/rules/json/rule_reader.hpp"
#include "text/rules/json/tokenizer_json.hpp"

namespace tessera::detail {

class ModelReader {
 public:
  ModelReader(JsonPullReader& json, const std::stop_token& stop) noexcept : json_(json), stop_(stop) {}
  // Reads the value of "model", which must be an object, into the members below.
  [[nodiscard]] Status read();

  // A token of the vocabulary. Its text is in `texts`.
  struct Entry {
    std::uint32_t id, begin, size;
  };
  [[nodiscard]] std::string_view text(const Entry& entry) const noexcept {
    return std::string_view(texts).substr(entry.begin, entry.size);
  }

  ModelRules rules;
  std::vector<Entry> entries;  // in the file's order
  std::string texts;
  std::vector<double> scores;  // [entry]; empty unless the vocabulary has scores
  double least_score = std::numeric_limits<double>::infinity();
  TextList merges;
  std::string options;

 private:
  [[nodiscard]] Status read_vocabulary();
  [[nodiscard]] Status add_entry(std::string_view text, std::int64_t id);
  [[nodiscard]] Status read_merges();
  [[nodiscard]] Status read_option(const std::string& key);
  [[nodiscard]] Status finish();
  [[nodiscard]] Status read_bpe(const RuleReader& rule);

  JsonPullReader& json_;
  const std::stop_token& stop_;
  Json options_ = Json::object();
  bool has_vocabulary_ = false, has_merges_ = false;
};

// Returns the error for a fault that the pull reader, or a check after it, found at a place in a tokenizer.json.
[[nodiscard]] Error json_error_at(std::string_view place, const Error& error);

}  // namespace tessera::detail
