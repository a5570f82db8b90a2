// Fetches prompts that other servers have computed: the bytes of saved sessions. The command line names these servers. A request cannot make
// this server ask any other address. Fetches run on threads of their own, so that a slow server holds up no other request.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "upstream.hpp"

namespace server {

// Says where a prompt's keys and values can be fetched: the fields of kv_transfer_params.tessera.
struct KvOrigin {
  std::string host, port, id;
  std::uint64_t bytes = 0;
};

// Any thread may call.
class KvPeers {
 public:
  struct Options {
    std::vector<Url> urls{};         // servers that may be asked
    std::chrono::seconds time{10};   // for a whole fetch, with its wait for a thread
    std::size_t at_once = 4;         // threads
    std::size_t waiting = 256;       // fetches that may wait for a thread
  };
  enum class Outcome { fetched, unknown_peer, unreachable, gone, busy };
  struct Fetched {
    Outcome outcome = Outcome::fetched;
    std::string bytes{};
    std::string error{};    // a sentence for the client, unless the outcome is `fetched`
    std::string detail{};   // a sentence for the log, which names the other server; may be empty
    double seconds = 0.0;   // of the fetch
  };
  using Done = std::function<void(Fetched)>;

  explicit KvPeers(Options options) : options_(std::move(options)) {}
  // Stops the fetches that run. Fetches that wait end without a call of `done`.
  ~KvPeers();
  KvPeers(const KvPeers&) = delete;
  KvPeers& operator=(const KvPeers&) = delete;

  // Begins to fetch at most `most` bytes, and calls `done` with them, or with an error, on any thread. `authorization`: the header that the
  // other server gets. `stop` ends the fetch. `done` must not throw.
  void fetch(KvOrigin origin, std::uint64_t most, std::string authorization, std::stop_token stop, Done done);

 private:
  struct Task {
    const Url* from;
    KvOrigin origin;
    std::uint64_t most;
    std::string authorization;
    std::stop_token stop;
    Done done;
    std::chrono::steady_clock::time_point begin;
  };
  [[nodiscard]] const Url* find(const KvOrigin& origin) const noexcept;
  [[nodiscard]] Fetched run(const Task& task) const;
  void work();

  Options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::size_t idle_ = 0;  // threads without a task
  bool is_ending_ = false;
  std::stop_source ending_;
  std::vector<std::thread> threads_;  // made when they are needed, as threads inherit the caller's mask of signals (main.cpp)
};

}  // namespace server
