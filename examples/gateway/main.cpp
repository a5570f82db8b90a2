// tessera-gateway: stands in front of servers of OpenAI's API. Reuses answers by meaning, sends easy questions to a small model, shortens
// prompts, and checks a share of its own answers.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "api_error.hpp"
#include "failure.hpp"
#include "options.hpp"
#include "service.hpp"
#include "system/end_signals.hpp"
#include "system/program.hpp"
#include "tiers/local_models.hpp"

namespace {

using namespace gateway;

Tier make_tier(const std::string& name, const TierOptions& options, const Options& all) {
  std::vector<Upstream> servers;
  for (const Url& url : options.urls) servers.emplace_back(url, options.key, all.upstream);
  return {name, options.model, std::move(servers), all.retries};
}

void greet(const Options& options, std::uint16_t port) {
  fmt::print("the gateway answers at {}\n", server::url_of(options.http, port));
  std::fflush(stdout);
  const auto names = [](const TierOptions& tier) {
    std::string all;
    for (const Url& url : tier.urls) all += (all.empty() ? "" : ", ") + url.text();
    return all.empty() ? std::string("none") : all;
  };
  fmt::print(stderr, "  large: {}; small: {}\n", names(options.large), names(options.small));
  if (options.embedder.empty()) fmt::print(stderr, "  without --embedder there is no cache\n");
  server::warn_of_open_address(options.http, !options.gateway.keys.empty());
}

int serve(Options options) {
  auto port = std::make_unique<server::HttpServer>(options.http);
  options.engine.log_level = tessera::LogLevel::warning;
  options.engine.log = [](tessera::LogLevel, std::string_view message) { fmt::print(stderr, "{}\n", message); };
  std::unique_ptr<Embedder> embedder;
  if (!options.embedder.empty()) embedder = std::make_unique<Embedder>(options.embedder, options.engine);
  if (options.classifier && options.classifier->dimensions() != embedder->dimensions()) {
    throw UsageError(fmt::format("--classifier: it has {} weights, and vectors of --embedder have {} numbers; train it for this encoder", options.classifier->dimensions(),
                                 embedder->dimensions()));
  }
  std::unique_ptr<SentenceScorer> scorer;
  std::unique_ptr<Compressor> compressor;
  if (!options.scorer.empty()) {
    scorer = std::make_unique<SentenceScorer>(options.scorer, options.engine);
    compressor = std::make_unique<Compressor>(options.compress, [&scorer](const auto& sentences) { return scorer->score(sentences); });
  }
  // Until here a signal ends the program at once. From here on this function waits for signals.
  static const server::EndSignals signals;

  std::stop_source ending;
  const Tier large = make_tier("large", options.large, options);
  std::unique_ptr<Tier> small;
  if (!options.small.urls.empty()) small.reset(new Tier("small", options.small.model, make_tier("small", options.small, options).servers(), options.retries));
  const Router router(options.rules, options.classifier, options.easy, options.otherwise);
  Figures figures;
  Flights flights;
  SemanticCache cache(options.cache);
  const bool caches = options.caches && embedder != nullptr;
  std::function<std::vector<float>(std::string_view)> embed;
  if (embedder != nullptr) embed = [&embedder](std::string_view text) { return embedder->vector_of(text); };
  std::unique_ptr<Quality> quality;
  if (options.quality.share > 0) quality = std::make_unique<Quality>(options.quality, large, embed, caches ? &cache : nullptr, figures, ending.get_token());
  Parts parts{.large = large, .small = small.get(), .embed = embed, .cache = caches ? &cache : nullptr, .never_cached = options.never_cached,
              .limits = options.cache_limits, .router = router, .certainty = options.certainty, .compressor = compressor.get(), .quality = quality.get(),
              .flights = flights, .figures = figures};
  Gateway gateway(options.gateway, parts);
  const std::unique_ptr<server::HttpServer> http = std::move(port);  // destroyed before the objects that it calls
  http->start([&gateway](server::HttpRequest request, server::HttpReplyPtr reply) { gateway.handle(std::move(request), std::move(reply)); }, server::refusal);
  greet(options, http->port());

  signals.wait();
  server::end_at_next_signal(signals);
  fmt::print(stderr, "ending: up to {} s for the answers that run (once more ends at once)\n", options.drain_time.count());
  gateway.drain();
  http->drain();
  const auto end = std::chrono::steady_clock::now() + options.drain_time;
  while (!gateway.is_idle() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (gateway.is_idle()) http->flush(std::chrono::seconds(2));
  gateway.cut();
  ending.request_stop();
  if (!http->close(std::chrono::seconds(10))) std::_Exit(0);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return server::run_service("tessera-gateway", argc, argv, [](int count, char** values) {
    auto options = gateway::parse_options(count, values);
    return options ? serve(*std::move(options)) : 0;
  });
}
