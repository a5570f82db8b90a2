// Measures how good the gateway's cheap answers are: for a share of the answers that came from the cache or from the small model, the large
// model computes the answer again in the background, and the vectors of both answers are compared.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include "figures.hpp"
#include "requests/question.hpp"
#include "tiers/tier.hpp"
#include "workers.hpp"

namespace gateway {

struct QualityOptions {
  double share = 0;          // share of the cached and small-tier answers that is checked, 0 to 1
  double agreement = 0.7;    // answers that are less similar count as wrong
  std::string log{};         // a file that gets a JSON line for each comparison, with both answers; empty: none
  std::uint64_t seed = 1;
};

class Quality {
 public:
  using Embed = std::function<std::vector<float>(std::string_view)>;
  // Throws Failure if the log cannot be written. The references must outlive this object. `stop` ends comparisons that run.
  Quality(const QualityOptions& options, const Tier& large, Embed embed, SemanticCache* cache, Figures& figures, std::stop_token stop);

  struct Given {
    std::string source;  // "cache" or "small"
    std::string text;
    std::string authorization{};
    double similarity = 0;    // similarity of the client's and the cached question; only if `source` is "cache"
    std::uint64_t entry = 0;  // SemanticCache::Hit::id; 0: not in the cache
  };
  // Draws whether this answer is checked. If so, queues the check. While 64 checks wait, further answers are not checked.
  void consider(const Question& question, Given given);

 private:
  void check(const Question& question, const Given& given);

  QualityOptions options_;
  const Tier& large_;
  Embed embed_;
  SemanticCache* cache_;
  Figures& figures_;
  std::stop_token stop_;
  std::mutex mutex_;  // guards random_ and log_
  std::mt19937_64 random_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> log_{nullptr, &std::fclose};
  std::atomic<std::size_t> waiting_{0};
  server::Workers worker_{1};  // destroyed first: it uses the members above
};

}  // namespace gateway
