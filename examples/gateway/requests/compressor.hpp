// Shortens long texts of prompts: leaves out the sentences that a small model predicts best, because they add the least information.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/json/json.hpp>

#include "requests/question.hpp"

namespace gateway {

struct CompressOptions {
  double keep = 0.8;              // about the share of a text's tokens that is kept (whole sentences are left out)
  std::size_t least_bytes = 2000; // shorter texts stay as they are
  std::size_t most_bytes = 64 * 1024; // longer texts stay as they are: scoring takes time for each token
  bool system_too = false;        // shortens messages of role system or developer too
  bool code_too = false;          // shortens code between ``` lines too
};

struct SentenceScore {
  std::size_t tokens = 0;
  double surprise = 0;  // the sum of -ln p of its tokens
};
// Scores the sentences of one text, each as the continuation of the earlier sentences. nullopt: the text cannot be scored, and stays.
using ScoreSentences = std::function<std::optional<std::vector<SentenceScore>>(const std::vector<std::string_view>& sentences)>;

// Cuts a text into sentences and lines; code between ``` lines is one piece. The pieces, joined, are the text.
[[nodiscard]] std::vector<std::string_view> split_sentences(std::string_view text);

class Compressor {
 public:
  Compressor(const CompressOptions& options, ScoreSentences score) : options_(options), score_(std::move(score)) {}

  struct Saved {
    std::size_t before = 0, after = 0;  // tokens of the texts that were shortened, by the small model's count
  };
  // Shortens one text. The first and the last sentence stay, because they state the task more often than others.
  [[nodiscard]] std::string shorten(const std::string& text, Saved& saved) const;
  // Shortens the long texts of a request's body: the prompt, or the user's messages.
  [[nodiscard]] Saved shorten(Api api, tessera::Json& body) const;

 private:
  CompressOptions options_;
  ScoreSentences score_;
};

}  // namespace gateway
