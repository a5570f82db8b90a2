// Ranks whose bytes a program carries itself: the same bits, and errors where the program's transport fails.
#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>
#include <thread>

#include <tessera/extend/ranks.hpp>

#include "ranks/divided.hpp"

namespace test_rank_transport {

using namespace tessera;
using namespace tessera::test;

namespace {

std::filesystem::path file_of(const std::string& name) { return golden_dir() / (name + ".gguf"); }

// The wires between all ranks of a test, which are threads.
struct Wires {
  explicit Wires(std::uint32_t n) : ranks(n), bytes(std::size_t{n} * n), closed(std::size_t{n} * n) {}
  [[nodiscard]] std::size_t wire(std::uint32_t from, std::uint32_t to) const { return std::size_t{from} * ranks + to; }

  std::uint32_t ranks;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::deque<std::byte>> bytes;
  std::vector<bool> closed;
};

// Moves a few bytes at a time, and fails when the rank has sent `most` bytes.
class ThreadTransport final : public RankTransport {
 public:
  ThreadTransport(std::shared_ptr<Wires> wires, std::uint32_t rank, std::uint64_t most = UINT64_MAX) : wires_(std::move(wires)), rank_(rank), most_(most), random_(rank) {}

  [[nodiscard]] std::uint32_t rank() const noexcept override { return rank_; }
  [[nodiscard]] std::uint32_t ranks() const noexcept override { return wires_->ranks; }
  Result<std::size_t> send(std::uint32_t to, std::span<const std::byte> bytes) noexcept override {
    const std::lock_guard lock(wires_->mutex);
    if (sent_ >= most_) return Error(ErrorCode::io, "the wire is cut");
    const std::size_t n = std::min<std::size_t>(bytes.size(), random_() % 100'000);
    sent_ += n;
    auto& wire = wires_->bytes[wires_->wire(rank_, to)];
    wire.insert(wire.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
    wires_->changed.notify_all();
    return n;
  }
  Result<std::size_t> receive(std::uint32_t from, std::span<std::byte> bytes) noexcept override {
    const std::lock_guard lock(wires_->mutex);
    auto& wire = wires_->bytes[wires_->wire(from, rank_)];
    if (wire.empty() && wires_->closed[wires_->wire(from, rank_)]) return Error(ErrorCode::io, "it has closed");
    const std::size_t n = std::min({bytes.size(), wire.size(), std::size_t{1} + random_() % 50'000});
    std::copy_n(wire.begin(), n, bytes.begin());
    wire.erase(wire.begin(), wire.begin() + static_cast<std::ptrdiff_t>(n));
    return n;
  }
  void wait(std::chrono::milliseconds timeout) noexcept override {
    std::unique_lock lock(wires_->mutex);
    if (random_() % 4 == 0) return;
    wires_->changed.wait_for(lock, std::min(timeout, std::chrono::milliseconds(1)));
  }
  void close(std::uint32_t to) noexcept override {
    const std::lock_guard lock(wires_->mutex);
    wires_->closed[wires_->wire(rank_, to)] = true;
    wires_->changed.notify_all();
  }

 private:
  std::shared_ptr<Wires> wires_;
  std::uint32_t rank_;
  std::uint64_t most_, sent_ = 0;
  std::mt19937 random_;
};

// Serves all ranks but 0 in threads, which end with their engine.
class Served {
 public:
  Served(const std::string& name, std::uint32_t ranks, std::uint64_t most_of_last = UINT64_MAX) : wires_(std::make_shared<Wires>(ranks)), ended_(ranks) {
    for (std::uint32_t rank = 1; rank < ranks; ++rank) {
      const auto transport = std::make_shared<ThreadTransport>(wires_, rank, rank + 1 == ranks ? most_of_last : UINT64_MAX);
      threads_.emplace_back([this, name, rank, transport] { ended_[rank] = serve_rank(file_of(name), {.transport = transport, .threads = 1}); });
    }
  }
  ~Served() { end(); }
  void end() {
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  [[nodiscard]] EngineOptions options() const {
    EngineOptions options;
    options.rank_transport = std::make_shared<ThreadTransport>(wires_, 0u);
    options.threads = 1;
    options.rank_timeout_ms = 5'000;
    return options;
  }
  [[nodiscard]] const Status& ended(std::uint32_t rank) const { return ended_[rank]; }

 private:
  std::shared_ptr<Wires> wires_;
  std::vector<Status> ended_;
  std::vector<std::thread> threads_;
};

}  // namespace

TEST_CASE("logits over a program's own transport are one rank's, and so is a saved session") {
  for (const char* name : {"llama-gqa", "mistral", "qwen35", "deepseek-v3"}) {
    const auto tokens = golden_tokens(name);
    Session alone = must(load_golden(name).session());
    const auto expected = all_logits(alone, tokens, tokens.size());
    for (const std::uint32_t ranks : {2u, 3u}) {
      INFO(name << " on " << ranks << " ranks");
      Served served(name, ranks);
      {
        EngineOptions options = served.options();
        options.rank_split = ranks == 3 && name == std::string("qwen35") ? RankSplit::layers : RankSplit::heads;
        const Engine engine = must(Engine::load(file_of(name), options));
        Session session = must(engine.session());
        CHECK(same_bits(all_logits(session, tokens, 3), expected));
        CHECK(must(session.verify()).verdict == Verdict::same);
        CHECK(std::ranges::any_of(must(engine.explain()), [](const KernelUse& use) { return use.kind == Operation::exchange_rows; }));
      }
      served.end();
      for (std::uint32_t rank = 1; rank < ranks; ++rank) CHECK(served.ended(rank).has_value());
    }
  }
}

TEST_CASE("a transport that fails at any byte is an error of the call, and nobody waits") {
  const std::string name = "llama-gqa";
  const auto tokens = golden_tokens(name);
  std::size_t loaded = 0, failed = 0;
  for (const std::uint64_t most : {0u, 30u, 100u, 5'000u, 20'000u, 60'000u}) {
    INFO("the last rank's wire is cut after " << most << " bytes");
    Served served(name, 3, most);
    {
      auto engine = Engine::load(file_of(name), served.options());
      if (!engine) continue;
      ++loaded;
      Session session = must(engine->session());
      Status status;
      for (int i = 0; i < 40 && status; ++i) {
        const auto logits = session.append(tokens);
        if (!logits) status = logits.error();
        else must(session.truncate(0));
      }
      if (status) continue;
      ++failed;
      CHECK(status.error().code() == ErrorCode::device_error);
      CHECK(session.tokens().empty());
      CHECK(session.append(tokens).error().code() == ErrorCode::device_error);
    }
  }
  CHECK(loaded >= 2);
  CHECK(failed >= 2);
}

TEST_CASE("ranks whose engine is not loaded end, and so does an engine whose rank has no model") {
  {
    Served served("llama-gqa", 3);
    CHECK(Engine::load("/nowhere.gguf", served.options()).error().code() == ErrorCode::not_found);
    served.end();
    for (const std::uint32_t rank : {1u, 2u}) CHECK(served.ended(rank).has_value());
  }
  Served served("there-is-no-such-model", 2);
  CHECK(Engine::load(file_of("llama-gqa"), served.options()).error().code() == ErrorCode::device_error);
  served.end();
  CHECK(served.ended(1).error().code() == ErrorCode::not_found);
}

TEST_CASE("wrong uses of a transport are errors that say what is wrong") {
  const auto wires = std::make_shared<Wires>(3);
  const auto with = [&](std::uint32_t rank) { return std::make_shared<ThreadTransport>(wires, rank); };
  const auto error_of = [&](const EngineOptions& options) {
    const auto engine = Engine::load(file_of("llama-gqa"), options);
    REQUIRE(!engine);
    CHECK(engine.error().code() == ErrorCode::invalid_argument);
    return engine.error().text();
  };
  CHECK_THAT(error_of({.rank_transport = with(1)}), Catch::Contains("rank 1 of 3"));
  CHECK_THAT(error_of({.rank_addresses = {"unix:/nowhere"}, .rank_transport = with(0)}), Catch::Contains("one of the two"));
  CHECK_THAT(error_of({.rank_transport = std::make_shared<ThreadTransport>(std::make_shared<Wires>(1), 0u)}), Catch::Contains("rank 0 of 1"));
  const Status served = serve_rank(file_of("llama-gqa"), {.transport = with(0)});
  REQUIRE(!served);
  CHECK(served.error().code() == ErrorCode::invalid_argument);
  // A stop ends a rank to which no engine has come.
  std::stop_source stop;
  std::thread stopper([&] { stop.request_stop(); });
  CHECK(serve_rank(file_of("llama-gqa"), {.transport = with(1), .stop = stop.get_token()}).has_value());
  stopper.join();
}

}  // namespace test_rank_transport
