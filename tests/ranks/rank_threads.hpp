// Ranks that serve in threads of the test, over Unix sockets: to the engine they are other processes.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include <tessera/extend/ranks.hpp>

#include "ranks/divided.hpp"

namespace tessera::test {

class RankThreads {
 public:
  // Starts `n` ranks for the model, and waits until they listen.
  RankThreads(const std::filesystem::path& model, std::size_t n, std::string secret = "") {
    for (std::size_t i = 0; i < n; ++i) {
      auto rank = std::make_unique<Rank>();
      rank->address = "unix:/tmp/tessera-rank-" + std::to_string(::getpid()) + "-" + std::to_string(next()++);
      RankOptions options;
      options.listen = rank->address;
      options.secret = secret;
      options.threads = 1;
      options.stop = rank->stop.get_token();
      options.log = [this](LogLevel, std::string_view line) {
        const std::lock_guard lock(mutex_);
        lines_.emplace_back(line);
      };
      options.listening = [this](const std::string&) {
        const std::lock_guard lock(mutex_);
        ++listening_;
        changed_.notify_all();
      };
      rank->thread = std::thread([model, options, rank = rank.get()] { rank->ended = serve_rank(model, options); });
      ranks_.push_back(std::move(rank));
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return listening_ == n; });
  }
  ~RankThreads() {
    for (std::size_t i = 0; i < ranks_.size(); ++i) stop(i);
    for (const auto& rank : ranks_) CHECK(rank->ended.has_value());
  }
  void stop(std::size_t rank) {
    ranks_[rank]->stop.request_stop();
    if (ranks_[rank]->thread.joinable()) ranks_[rank]->thread.join();
  }
  [[nodiscard]] EngineOptions options() const {
    EngineOptions options;
    for (const auto& rank : ranks_) options.rank_addresses.push_back(rank->address);
    options.threads = 1;
    options.rank_timeout_ms = 20'000;
    return options;
  }
  [[nodiscard]] std::vector<std::string> lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  struct Rank {
    std::string address;
    std::stop_source stop;
    std::thread thread;
    Status ended = {};
  };
  static std::size_t& next() {
    static std::size_t n = 0;
    return n;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t listening_ = 0;
  std::vector<std::string> lines_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace tessera::test
