#include <tessera/extend/ranks.hpp>

#include <algorithm>
#include <thread>

#include <tessera/version.hpp>

#include "core/error.hpp"
#include "core/fp_state.hpp"
#include "core/guard.hpp"
#include "core/printable.hpp"
#include "engine/load/load_parts.hpp"
#include "engine/load/make_backend.hpp"
#include "engine/load/plan.hpp"
#include "engine/ranks/connect_ranks.hpp"
#include "engine/ranks/served_adapters.hpp"
#include "engine/session/token_budget.hpp"
#include <tessera/extend/files/model_source.hpp>
#include "model/spec/spec_text.hpp"
#include "ranks/processes/closed_transport.hpp"
#include "ranks/processes/own_pages.hpp"
#include "ranks/processes/rank_messages.hpp"
#include "ranks/processes/rank_steps.hpp"

namespace tessera {

using detail::make_error;

namespace {

constexpr std::chrono::seconds kHelloTime{10};  // time for a new connection to send its first message
constexpr std::chrono::minutes kJoinTime{10};   // time for the other ranks to load their parts
constexpr std::chrono::hours kIdleTime{24 * 365};

// The service of one rank. Its data outlives each engine that it serves.
class RankService {
 public:
  RankService(const std::filesystem::path& path, const RankOptions& options) : path_(path), options_(options) {}

  // Serves one engine over the options' transport. Returns when the engine has disconnected.
  Status serve_over_transport() {
    const std::shared_ptr<RankTransport>& transport = options_.transport;
    const std::uint32_t n = transport->ranks(), rank = transport->rank();
    if (n < 2 || n > detail::kMostRanks || rank == 0 || rank >= n) {
      return make_error(ErrorCode::invalid_argument, "the transport is rank {} of {}; expected 1 to {} of at most {}", rank, n, std::max(n, 2u) - 1, detail::kMostRanks);
    }
    std::vector<std::string> addresses;
    for (std::uint32_t i = 0; i < n; ++i) addresses.push_back(i == 0 ? "the engine" : "a rank beside this one");
    detail::ProcessRanks ranks(rank, std::make_unique<detail::TransportLines>(transport), std::move(addresses), kHelloTime);
    auto welcome = greet(ranks, kIdleTime);
    if (!welcome) return options_.stop.stop_requested() || ranks.engine_has_gone() ? Status() : welcome.error();
    if (welcome->rank != rank || welcome->ranks != n) {
      return refuse(ranks, make_error(ErrorCode::invalid_argument, "the engine calls this process rank {} of {}, and its transport rank {} of {}", welcome->rank,
                                      welcome->ranks, rank, n));
    }
    ranks.set_timeout(timeout_of(*welcome));
    Status served = serve_engine(*welcome, ranks, [] { return Status(); });
    if (options_.stop.stop_requested()) return {};
    if (served) tell(LogLevel::info, "the engine has gone");
    return served;
  }

  // Waits for engines at the options' address, and serves them one after another.
  Status serve_at_address() {
    TESSERA_TRY(listener_, os::Listener::open(options_.listen));
    if (options_.listening) options_.listening(listener_.address());
    for (;;) {
      if (options_.stop.stop_requested()) return {};
      auto socket = listener_.accept(kIdleTime, options_.stop);
      if (!socket) {
        if (options_.stop.stop_requested()) return {};
        if (socket.error().code() != ErrorCode::io) return socket.error();
        std::this_thread::sleep_for(std::chrono::milliseconds(100));  // after an error of accept(), for example too many open files
        continue;
      }
      // An error or exception while serving one engine ends that engine's service, but not serve_rank().
      const Status served = detail::guard([&] { return serve(*std::move(socket)); }, ErrorCode::callback_failed);
      if (options_.stop.stop_requested()) return {};
      tell(served ? LogLevel::info : LogLevel::warning, served ? "the engine has gone" : served.error().text());
    }
  }

 private:
  void tell(LogLevel level, std::string_view message) const {
    if (options_.log) options_.log(level, message);
  }

  // A new connection, before its first message: the caller is treated as rank 0 of two ranks.
  struct Stranger {
    detail::SocketLines* sockets;
    detail::ProcessRanks ranks;
  };
  static Stranger with(os::Socket socket) {
    auto lines = std::make_unique<detail::SocketLines>(2);
    detail::SocketLines* const sockets = lines.get();
    sockets->set(0, std::move(socket));
    constexpr std::uint64_t kMostHello = 1 << 20;  // bytes of the first message
    return {sockets, {1, std::move(lines), {"the engine", "this rank"}, kHelloTime, kMostHello}};
  }

  static Status refuse(detail::ProcessRanks& connection, Error why) {
    std::vector<std::byte> message;
    detail::write_message(detail::Refusal{.why = why.text()}, message);
    (void)connection.send(0, message);
    return why;
  }

  [[nodiscard]] bool is_secret(const std::string& text) const noexcept {
    unsigned difference = text.size() == options_.secret.size() ? 0 : 1;  // the loop takes the same time wherever the texts differ
    for (std::size_t i = 0; i < text.size(); ++i) difference |= static_cast<unsigned>(text[i] ^ options_.secret[i % std::max<std::size_t>(1, options_.secret.size())]);
    return difference == 0;
  }

  Status check(const detail::Welcome& welcome) const {
    if (welcome.addresses.size() > detail::kMostRanks) return make_error(ErrorCode::invalid_argument, "more than {} ranks", detail::kMostRanks);
    if (options_.transport == nullptr && !is_secret(welcome.secret)) return make_error(ErrorCode::invalid_argument, "the secret is another one");
    if (welcome.protocol != detail::kRankProtocol || welcome.library != version()) {
      return make_error(ErrorCode::invalid_argument, "rank 0 is tessera {}, this rank {}: use one version", detail::printable(welcome.library), version());
    }
    if (welcome.ranks < 2 || welcome.ranks > detail::kMostRanks || welcome.rank == 0 || welcome.rank >= welcome.ranks || welcome.addresses.size() != welcome.ranks) {
      return make_error(ErrorCode::invalid_argument, "rank {} of {} makes no sense", welcome.rank, welcome.ranks);
    }
    return {};
  }

  // Waits for the engine's first message, and answers it.
  Result<detail::Welcome> greet(detail::ProcessRanks& engine, std::chrono::milliseconds timeout) {
    std::vector<std::byte> message;
    std::uint64_t step = 0;
    TESSERA_TRY_STATUS(engine.receive(0, message, step, timeout, options_.stop));
    detail::Welcome welcome;
    if (!detail::read_message(message, welcome)) return make_error(ErrorCode::device_error, "a connection does not come from an engine");
    if (const Status good = check(welcome); !good) return refuse(engine, good.error()).error();
    detail::write_message(detail::Accepted{}, message);
    TESSERA_TRY_STATUS(engine.send(0, message));
    return welcome;
  }
  static std::chrono::milliseconds timeout_of(const detail::Welcome& welcome) {
    return std::chrono::milliseconds(std::clamp<std::uint64_t>(welcome.timeout, 1, 3'600'000));
  }

  Status serve(os::Socket socket) {
    Stranger hello = with(std::move(socket));
    TESSERA_TRY(const detail::Welcome welcome, greet(hello.ranks, kHelloTime));
    auto lines = std::make_unique<detail::SocketLines>(welcome.ranks);
    detail::SocketLines& sockets = *lines;
    sockets.set(0, hello.sockets->take(0));
    detail::ProcessRanks ranks(welcome.rank, std::move(lines), welcome.addresses, timeout_of(welcome));
    return serve_engine(welcome, ranks, [&] { return join(welcome, sockets); });
  }

  // Loads the rank's part, calls join() to connect to the other ranks, and executes the engine's steps.
  Status serve_engine(const detail::Welcome& welcome, detail::ProcessRanks& ranks, const std::function<Status()>& join) {
    tell(LogLevel::info, fmt::format("rank {} of {}: loading", welcome.rank, welcome.ranks));
    const Status served = compute_for(welcome, ranks, join);
    // The engine waits until this rank says that its part is loaded. If the rank fails before that, it answers with a refusal.
    if (!served && ranks.broken() && !is_ready_) return refuse(ranks, served.error());
    return served;
  }

  // Returns the bytes of the rank's weights and workspace.
  static std::uint64_t backend_bytes(const detail::Blueprint& blueprint, const backend::Backend& backend, std::uint32_t rank, const ModelSource& source,
                                     const EngineOptions& options) {
    const auto own = detail::weight_bytes(blueprint.division->bindings_of(rank, blueprint.bindings), source, blueprint.spec, backend);
    return own.packed + backend.workspace_bytes(detail::workspace_of(blueprint.spec, blueprint.step_rows, options.kv.budget, blueprint.plan.context));
  }
  Status check_budget(std::uint64_t taken) const {
    if (options_.memory_budget == 0 || taken < options_.memory_budget) return {};
    return make_error(ErrorCode::over_budget, "the rank's weights and workspace need {} bytes; its budget is {}", taken, options_.memory_budget);
  }

  Status compute_for(const detail::Welcome& welcome, detail::ProcessRanks& ranks, const std::function<Status()>& join) {
    is_ready_ = false;
    const detail::FpState fp_state;
    EngineOptions given;
    given.context = welcome.context;
    given.step_rows = welcome.step_rows;
    given.numerics = static_cast<Numerics>(welcome.numerics);
    given.activations = static_cast<Activations>(welcome.activations);
    given.rank_split = static_cast<RankSplit>(welcome.split);
    given.kv.budget.tokens = welcome.budget_tokens;
    given.kv.budget.choice = static_cast<TokenChoice>(welcome.budget_choice);
    if (welcome.sliding_window >= 0) given.sliding_window = static_cast<std::uint32_t>(std::min<std::int64_t>(welcome.sliding_window, UINT32_MAX));
    given.threads = options_.threads;
    given.instruction_set = options_.instruction_set;
    given.memory = options_.memory;
    given.tokenizer = TokenizerUse::none;
    given.rank_addresses.resize(welcome.ranks - 1);
    given.progress = options_.progress;
    given.stop = options_.stop;
    TESSERA_TRY(const EngineOptions options, detail::resolve_options(given));
    TESSERA_TRY(const auto source, open_model(path_, options.stop));
    TESSERA_TRY(const detail::Machine machine, detail::make_backend(options, &ranks));
    auto& backend = static_cast<detail::RankBackend&>(*machine.backend);
    TESSERA_TRY(const detail::Blueprint blueprint, detail::make_blueprint(*source, nullptr, options, backend));
    if (detail::spec_text(blueprint.spec) != welcome.spec) {
      return make_error(ErrorCode::invalid_argument, "the model here is another one: {} ({})", blueprint.spec.name, blueprint.spec.architecture);
    }
    if (const Status fits = check_budget(backend_bytes(blueprint, backend, welcome.rank, *source, options)); !fits) return fits;
    detail::Model model;
    TESSERA_TRY_STATUS(detail::load_part(*source, blueprint, options, welcome.rank, backend, model, detail::ReadBytes::all, options.progress));
    TESSERA_TRY_STATUS(join());
    std::vector<std::byte> message;
    detail::write_message(detail::Ready{.weights = model.weights_hash, .families = detail::families_of(backend)}, message);
    TESSERA_TRY_STATUS(ranks.send(0, message));
    is_ready_ = true;
    tell(LogLevel::info, fmt::format("rank {} of {}: ready, with {} bytes of weights", welcome.rank, welcome.ranks, blueprint.weights.packed));
    const std::uint64_t taken = backend_bytes(blueprint, backend, welcome.rank, *source, options);
    detail::OwnPages pages(blueprint.division, welcome.rank, *options.memory, options_.memory_budget == 0 ? UINT64_MAX : options_.memory_budget - taken);
    detail::ServedAdapters adapters(detail::AdapterPlaces(model, *source, blueprint.division->bindings_of(welcome.rank, blueprint.bindings)), backend, *source, pages);
    detail::RankSteps steps(ranks, model, backend, pages, adapters, blueprint.step_rows, counts_attention(options.kv.budget));
    for (;;) {
      std::uint64_t step = 0;
      const Status received = ranks.receive(0, message, step, kIdleTime, options_.stop);
      if (!received) return options_.stop.stop_requested() || ranks.engine_has_gone() ? Status() : received;
      // The engine may disconnect as soon as it has this rank's part of a step, before the step has ended here.
      if (const Status executed = steps.execute(message, step); !executed) return ranks.engine_has_gone() ? Status() : executed;
    }
  }

  // Connects to the ranks other than 0: this rank connects to ranks with lower numbers, and ranks with higher numbers connect to it.
  Status join(const detail::Welcome& welcome, detail::SocketLines& sockets) {
    std::vector<std::byte> message;
    for (std::uint32_t rank = 1; rank < welcome.rank; ++rank) {
      TESSERA_TRY(os::Socket socket, os::connect_to(welcome.addresses[rank], kHelloTime));
      Stranger connection = with(std::move(socket));
      detail::write_message(detail::Join{.secret = options_.secret, .group = welcome.group, .rank = welcome.rank}, message);
      TESSERA_TRY_STATUS(connection.ranks.send(0, message));
      sockets.set(rank, connection.sockets->take(0));
    }
    for (std::uint32_t missing = welcome.ranks - 1 - welcome.rank; missing != 0;) {
      TESSERA_TRY(os::Socket socket, listener_.accept(kJoinTime, options_.stop));
      Stranger connection = with(std::move(socket));
      std::uint64_t step = 0;
      if (!connection.ranks.receive(0, message, step, kHelloTime, options_.stop)) continue;
      detail::Join from;
      if (!detail::read_message(message, from) || !is_secret(from.secret) || from.group != welcome.group || from.rank <= welcome.rank || from.rank >= welcome.ranks || sockets.is_open(from.rank)) {
        (void)refuse(connection.ranks, make_error(ErrorCode::busy, "this rank serves another engine"));
        continue;
      }
      sockets.set(from.rank, connection.sockets->take(0));
      --missing;
    }
    return {};
  }

  const std::filesystem::path& path_;
  const RankOptions& options_;
  os::Listener listener_;
  bool is_ready_ = false;  // true: the engine has been told that it can begin
};

}  // namespace

Status serve_rank(const std::filesystem::path& path, const RankOptions& options) noexcept {
  return detail::guard([&]() -> Status {
    const detail::ClosedTransport closed(options.transport);
    if (const auto model = open_model(path, options.stop); !model) return options.stop.stop_requested() ? Status() : Status(model.error());
    RankService service(path, options);
    return options.transport != nullptr ? service.serve_over_transport() : service.serve_at_address();
  }, ErrorCode::callback_failed);
}

}  // namespace tessera
