// The gateway's figures, for /metrics. Every function may be called from several threads.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "requests/compressor.hpp"
#include "semantic_cache.hpp"
#include "tiers/bins.hpp"

namespace gateway {

class Figures {
 public:
  void count_request(std::string_view api, unsigned status) { add("requests", fmt::format("api=\"{}\",status=\"{}\"", api, status)); }
  // Counts a lookup in the cache. `how`: hit, miss, refresh (no-cache), shared (another request's answer), or bypass with a reason.
  void count_lookup(std::string_view how, std::string_view reason = {}) { add("cache_lookups", fmt::format("result=\"{}\",reason=\"{}\"", how, reason)); }
  void count_route(std::string_view route, std::string_view why) { add("routes", fmt::format("route=\"{}\",why=\"{}\"", route, escaped(why))); }
  void count_answer(std::string_view tier, const Answer& answer) {
    add("answers", fmt::format("tier=\"{}\"", tier));
    add("tokens", fmt::format("tier=\"{}\",kind=\"prompt\"", tier), answer.prompt_tokens);
    add("tokens", fmt::format("tier=\"{}\",kind=\"answer\"", tier), answer.completion_tokens);
  }
  // Counts an answer of the small model that was not good enough. `why`: uncertain, failed, no log-probabilities, or not a text.
  void count_escalation(std::string_view why) { add("escalations", fmt::format("why=\"{}\"", why)); }
  void count_failure(std::string_view tier, std::string_view why) { add("upstream_failures", fmt::format("tier=\"{}\",why=\"{}\"", tier, why)); }
  void count_compressed(const Compressor::Saved& saved) {
    add("compressed_tokens", "when=\"before\"", saved.before);
    add("compressed_tokens", "when=\"after\"", saved.after);
  }
  void count_logprob(double mean) {
    const std::lock_guard lock(mutex_);
    logprobs_.add(mean);
  }
  // Counts an answer that Quality has compared with the large model's. `source`: cache or small, which gave the answer.
  void count_comparison(std::string_view source, double similarity, bool is_wrong) {
    add("comparisons", fmt::format("source=\"{}\",wrong=\"{}\"", source, is_wrong ? 1 : 0));
    const std::lock_guard lock(mutex_);
    agreements_.add(similarity);
  }
  void count_seconds(double seconds) {
    const std::lock_guard lock(mutex_);
    seconds_.add(seconds);
  }

  // Writes all figures in Prometheus' text format, with those of the semantic cache unless `cache` is nullptr.
  [[nodiscard]] std::string metrics(const SemanticCache* cache) const;

 private:
  static std::string escaped(std::string_view text);
  void add(std::string_view name, const std::string& labels, std::uint64_t n = 1) {
    const std::lock_guard lock(mutex_);
    counts_[{std::string(name), labels}] += n;
  }

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> counts_;  // by name and labels
  Bins agreements_{Bins::similarities()};
  Bins logprobs_{{-5, -3, -2, -1.5, -1.2, -1, -0.8, -0.7, -0.6, -0.5, -0.4, -0.3, -0.2, -0.1, 0}};
  Bins seconds_{{0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120}};
};

}  // namespace gateway
