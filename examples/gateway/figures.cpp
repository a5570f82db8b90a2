#include "figures.hpp"

#include <array>

namespace gateway {

namespace {

struct Help {
  std::string_view name, text;
};
constexpr std::array<Help, 9> kHelps = {{
    {"answers", "Answers that a tier computed"},
    {"cache_lookups", "Questions by what the semantic cache had for them, or why they were not looked up"},
    {"comparisons", "Cached and small-tier answers that the large model computed again, by whether they differ"},
    {"compressed_tokens", "Tokens of prompts that were shortened, before and after"},
    {"escalations", "Answers of the small model that the large model replaced"},
    {"requests", "Answers to clients, by status"},
    {"routes", "Choices of a tier, by the rule or part that chose"},
    {"tokens", "Tokens that a tier computed"},
    {"upstream_failures", "Requests to servers that failed"},
}};

std::string number(std::string_view name, std::string_view type, std::string_view help, double value) {
  return fmt::format("# HELP gateway_{0} {1}\n# TYPE gateway_{0} {2}\ngateway_{0} {3}\n", name, help, type, value);
}

}  // namespace

std::string Figures::escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string Figures::metrics(const SemanticCache* cache) const {
  std::string out;
  {
    const std::lock_guard lock(mutex_);
    std::string_view last;
    for (const auto& [key, count] : counts_) {
      const auto& [name, labels] = key;
      if (name != last) {
        const auto help = std::ranges::find(kHelps, std::string_view(name), &Help::name);
        out += fmt::format("# HELP gateway_{0}_total {1}\n# TYPE gateway_{0}_total counter\n", name, help != kHelps.end() ? help->text : "");
      }
      out += fmt::format("gateway_{}_total{{{}}} {}\n", name, labels, count);
      last = name;
    }
    out += agreements_.exposition("gateway_agreement", "Similarity of the answers that were given and those of the large model");
    out += logprobs_.exposition("gateway_small_logprob", "Mean log-probability of the small model's answers");
    out += seconds_.exposition("gateway_seconds", "Time of an answer, from the request to its end");
  }
  if (cache == nullptr) return out;
  const SemanticCache::Figures f = cache->figures();
  const auto lookups = static_cast<double>(f.hits + f.misses);
  const auto count = [](std::uint64_t n) { return static_cast<double>(n); };
  out += number("cache_hits_total", "counter", "Lookups that found an answer", count(f.hits));
  out += number("cache_misses_total", "counter", "Lookups that found none", count(f.misses));
  out += number("cache_hit_rate", "gauge", "Share of the lookups that found an answer", lookups > 0 ? count(f.hits) / lookups : 0);
  out += number("cache_added_total", "counter", "Answers that were stored", count(f.added));
  out += number("cache_evicted_total", "counter", "Answers that gave way to newer ones", count(f.evicted));
  out += number("cache_expired_total", "counter", "Answers that became too old", count(f.expired));
  out += number("cache_forgotten_total", "counter", "Answers that turned out wrong", count(f.forgotten));
  out += number("cache_entries", "gauge", "Answers in the cache", count(f.entries));
  out += number("cache_bytes", "gauge", "Bytes of the cache", count(f.bytes));
  return out + f.similarities.exposition("gateway_similarity", "Similarity of each question to the nearest one in the cache");
}

}  // namespace gateway
