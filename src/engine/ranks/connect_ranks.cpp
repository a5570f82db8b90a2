#include "engine/ranks/connect_ranks.hpp"

#include <map>
#include <random>
#include <set>
#include <utility>

#include <fmt/ranges.h>

#include <tessera/version.hpp>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "engine/load/plan.hpp"
#include "model/spec/spec_text.hpp"
#include "ranks/processes/rank_messages.hpp"

namespace tessera::detail {

namespace {

constexpr std::chrono::seconds kConnectTime{10};
constexpr std::chrono::seconds kAcceptTime{15};  // time for a rank to answer that it serves this engine
constexpr std::chrono::minutes kStartTime{10};  // time for the same answer over a transport, whose processes may start later than the engine's
constexpr std::chrono::hours kLoadTime{1};  // time for a rank to load its part

// Kernel families of each operation and weight type. There are several if matrices of one type round their inputs in different ways.
using Families = std::map<std::pair<Operation, DType>, std::set<std::string>>;

Families by_operation(const std::vector<RankFamily>& list) {
  Families families;
  for (const RankFamily& one : list) families[{one.operation, one.dtype}].insert(one.family);
  return families;
}

// Returns the error for a rank's message of an unexpected kind. If the message is a refusal, the error includes its reason.
Status refusal_of(const ProcessRanks& ranks, std::uint32_t rank, std::span<const std::byte> bytes) {
  Refusal refusal;
  if (read_message(bytes, refusal)) {
    return make_error(ErrorCode::invalid_argument, "rank {} ({}) refuses: {}", rank, ranks.address(rank), printable(refusal.why, 500));
  }
  return make_error(ErrorCode::device_error, "rank {} ({}) answers with no message of this version", rank, ranks.address(rank));
}

}  // namespace

std::vector<RankFamily> families_of(const backend::Backend& backend) {
  std::vector<RankFamily> families;
  for (backend::Explanation& line : backend.explain()) {
    if (!line.family.empty()) families.push_back({line.operation, line.dtype.value_or(DType::automatic), std::move(line.family)});
  }
  return families;
}

Result<std::unique_ptr<ProcessRanks>> connect_ranks(const EngineOptions& options, const ModelSpec& spec, std::uint32_t context) {
  const auto n = static_cast<std::uint32_t>(ranks_elsewhere(options) + 1);
  std::vector<std::string> addresses(n);
  std::unique_ptr<RankLines> lines;
  if (options.rank_transport != nullptr) {
    for (std::uint32_t rank = 1; rank < n; ++rank) addresses[rank] = "of the transport";
    lines = std::make_unique<TransportLines>(options.rank_transport);
  } else {
    auto sockets = std::make_unique<SocketLines>(n);
    for (std::uint32_t rank = 1; rank < n; ++rank) {
      addresses[rank] = options.rank_addresses[rank - 1];
      TESSERA_TRY(os::Socket socket, os::connect_to(addresses[rank], kConnectTime));
      sockets->set(rank, std::move(socket));
    }
    lines = std::move(sockets);
  }
  auto ranks = std::make_unique<ProcessRanks>(0, std::move(lines), addresses, std::chrono::milliseconds(options.rank_timeout_ms));
  std::vector<std::byte> message;
  std::random_device random;
  const auto number = [&] { return std::uint64_t{random()} << 32 | random(); };
  const Hash128 group{.low = number(), .high = number()};
  for (std::uint32_t rank = 1; rank < n; ++rank) {
    write_message(Welcome{.library = std::string(version()),
                          .secret = options.rank_secret,
                          .group = group,
                          .rank = rank,
                          .ranks = n,
                          .addresses = addresses,
                          .context = context,
                          .step_rows = options.step_rows,
                          .sliding_window = options.sliding_window ? std::int64_t{*options.sliding_window} : -1,
                          .numerics = static_cast<std::int32_t>(options.numerics),
                          .activations = static_cast<std::int32_t>(options.activations),
                          .split = static_cast<std::int32_t>(options.rank_split),
                          .timeout = options.rank_timeout_ms,
                          .budget_tokens = options.kv.budget.tokens,
                          .budget_choice = static_cast<std::int32_t>(options.kv.budget.choice),
                          .spec = spec_text(spec)},
                  message);
    TESSERA_TRY_STATUS(ranks->send(rank, message));
  }
  TESSERA_TRY_STATUS(ranks->receive_from_all(options.rank_transport != nullptr ? kStartTime : kAcceptTime, options.stop, [&](std::uint32_t rank, std::span<const std::byte> bytes) {
    Accepted accepted;
    return read_message(bytes, accepted) ? Status() : refusal_of(*ranks, rank, bytes);
  }));
  return ranks;
}

Status await_ranks(ProcessRanks& ranks, const Hash128& weights, const backend::Backend& backend, const std::stop_token& stop) {
  const Families own = by_operation(families_of(backend));
  return ranks.receive_from_all(kLoadTime, stop, [&](std::uint32_t rank, std::span<const std::byte> bytes) -> Status {
    Ready ready;
    if (!read_message(bytes, ready)) return refusal_of(ranks, rank, bytes);
    if (ready.weights != weights) {
      return make_error(ErrorCode::invalid_argument, "rank {} ({}) has other weights: give all ranks the same file", rank, ranks.address(rank));
    }
    for (const auto& [key, families] : by_operation(ready.families)) {
      const auto here = own.find(key);
      if (here == own.end() || here->second == families) continue;
      return make_error(ErrorCode::invalid_argument,
                        "rank {} ({}) computes {} of {} by {}, and rank 0 by {}: choose numerics that both have (invariant), or one instruction set",
                        rank, ranks.address(rank), to_string(key.first), to_string(key.second), printable(fmt::format("{}", fmt::join(families, ", "))),
                        fmt::join(here->second, ", "));
    }
    return {};
  });
}

}  // namespace tessera::detail
