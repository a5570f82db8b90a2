// The command line of tessera-simulate.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "cluster.hpp"
#include "rank_costs.hpp"
#include "serving/serving_options.hpp"

namespace tessera::simulate {

struct Options {
  tool::ServingOptions serving;
  std::uint32_t replicas = 1;
  std::string router = "round-robin";
  std::uint32_t ranks = 1;
  std::string rank_split = "heads";
  std::string link, shape;                  // "delay=1e-4,rate=1.25e8", "layers=32,width=4096"
  std::string costs;                        // "fixed=2e-3,key=1e-8"
  std::uint64_t kv_per_token = 0, kv_budget = 0;
  std::uint32_t page_tokens = 32;
  double file_rate = 0.0;                   // bytes a second
  std::string plot;                         // a file; empty: none
  bool json = false;
};

void add_options(CLI::App& app, Options& options);

// Parses --costs. Errors say what is wrong.
[[nodiscard]] Result<CostModel::Costs> costs_of(const std::string& text);

// The ranks of a replica.
struct Ranks {
  std::uint32_t count = 1;
  RankSplit split = RankSplit::heads;
  ModelShape shape = {};
  Link link = {};
};
// Parses --ranks, --rank-split, --link and --shape. Errors say what is wrong.
[[nodiscard]] Result<Ranks> ranks_of(const Options& options);

}  // namespace tessera::simulate
