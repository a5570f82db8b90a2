// The command line of tessera-gateway.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <tessera/engine.hpp>

#include "gateway.hpp"
#include "http_server.hpp"
#include "requests/compressor.hpp"
#include "semantic_cache.hpp"
#include "tiers/certainty.hpp"
#include "tiers/quality.hpp"
#include "tiers/router.hpp"
#include "upstream.hpp"

namespace gateway {

using server::UpstreamLimits;
using server::Url;

struct TierOptions {
  std::vector<Url> urls{};
  std::string model{};  // the name that servers know; empty: the client's
  std::string key{};    // sent to the servers; empty: the client's
};

struct Options {
  TierOptions small{}, large{};
  std::string embedder{}, scorer{};  // models that run in the gateway (scorer: --compressor); empty: none
  UpstreamLimits upstream{};
  std::size_t retries = 1;
  CacheOptions cache{};
  CacheLimits cache_limits{};
  bool caches = true;
  std::vector<Pattern> never_cached{};
  std::vector<Rule> rules{};
  std::optional<Classifier> classifier{};
  Route easy = Route::adaptive, otherwise = Route::adaptive;
  CertaintyLimits certainty{};
  CompressOptions compress{};
  QualityOptions quality{};
  GatewayOptions gateway{};
  server::HttpOptions http{};
  tessera::EngineOptions engine{};  // options of the models in the gateway
  std::chrono::seconds drain_time{30};
};

// Reads the command line. nullopt: help or the version was asked for and has been printed. Throws UsageError, and Failure for files.
[[nodiscard]] std::optional<Options> parse_options(int argc, char** argv);

}  // namespace gateway
