#include "cluster.hpp"

#include <algorithm>

namespace tessera::simulate {
namespace {

constexpr std::string_view kNames[] = {"round-robin", "least-work", "prefix"};

std::size_t choose(const std::vector<Replica>& replicas, Router router, const tool::Trace& trace, std::size_t n) {
  const tool::TraceRequest& request = trace.requests[n];
  if (router == Router::round_robin) return n % replicas.size();
  std::size_t best = 0;
  double least = 0.0;
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    auto work = static_cast<double>(replicas[i].work());
    if (router == Router::prefix) {
      const std::size_t known = replicas[i].known_blocks(request) * trace.block_tokens;
      work -= static_cast<double>(std::min<std::size_t>(known, request.prompt));
    }
    if (i > 0 && work >= least) continue;
    best = i;
    least = work;
  }
  return best;
}

}  // namespace

std::string_view to_string(Router router) noexcept { return kNames[static_cast<std::size_t>(router)]; }

std::optional<Router> parse_router(std::string_view name) noexcept {
  for (const Router router : {Router::round_robin, Router::least_work, Router::prefix}) {
    if (name == to_string(router)) return router;
  }
  return std::nullopt;
}

std::optional<tool::ServingFigures> serve(const tool::Trace& trace, const ReplicaOptions& options, std::uint32_t replicas,
                                          Router router, const tool::ServiceLevel& level, const Progress& progress) {
  std::vector<Replica> all;
  all.reserve(replicas);
  for (std::uint32_t i = 0; i < replicas; ++i) all.emplace_back(options, trace.block_tokens, level);
  constexpr std::size_t kBetweenReports = 256;
  for (std::size_t n = 0; n < trace.requests.size(); ++n) {
    if (progress && n % kBetweenReports == 0 &&
        !progress(static_cast<double>(n) / static_cast<double>(trace.requests.size()))) {
      return std::nullopt;
    }
    const double arrival = trace.requests[n].arrival;
    if (router == Router::round_robin) {
      Replica& replica = all[n % all.size()];
      replica.run_until(arrival);
      replica.submit(trace.requests[n]);
      continue;
    }
    for (Replica& replica : all) replica.run_until(arrival);
    all[choose(all, router, trace, n)].submit(trace.requests[n]);
  }
  tool::ServingFigures figures;
  figures.level = level;
  for (Replica& replica : all) {
    replica.run_to_the_end();
    figures.merge(replica.figures());
  }
  return figures;
}

}  // namespace tessera::simulate
