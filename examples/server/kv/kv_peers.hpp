// Fetches prompts that other servers have computed, as the bytes of saved sessions. The command line names these servers. A request cannot
// make this server ask any other address. Fetches run on their own threads, so that a slow server delays no other request.
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

// The place from which a prompt's keys and values can be fetched: the fields of kv_transfer_params.tessera.
struct KvOrigin {
  std::string host, port, id;
  std::uint64_t bytes = 0;
};

// Any thread may call.
class KvPeers {
 public:
  struct Options {
    std::vector<Url> urls{};         // servers that may be asked
    std::chrono::seconds time{10};   // the longest time of a fetch, with its wait for a thread
    std::size_t at_once = 4;         // threads
    std::size_t waiting = 256;       // fetches that may wait for a thread
  };
  enum class Outcome { fetched, unknown_peer, unreachable, gone, busy };
  struct Fetched {
    Outcome outcome = Outcome::fetched;
    std::string bytes{};
    std::string error{};    // a sentence for the client, unless the outcome is `fetched`
    std::string detail{};   // a sentence for the log, which names the other server; may be empty
    double seconds = 0.0;   // seconds that the fetch took
  };
  using Done = std::function<void(Fetched)>;

  explicit KvPeers(Options options) : options_(std::move(options)) {}
  // Stops the fetches that run. Drops the fetches that wait, without a call of their `done`.
  ~KvPeers();
  KvPeers(const KvPeers&) = delete;
  KvPeers& operator=(const KvPeers&) = delete;

  // Begins to fetch a prompt from the server `origin`, and returns without waiting for the answer. Calls `done` with the bytes or with an
  // error, on any thread; a fetch that cannot begin calls `done` before this function returns. `done` must not throw. `most`: an answer with
  // more bytes is an error. `authorization`: the value of the header Authorization for the other server. A requested `stop` ends the fetch.
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
  // Started when they are needed, not by the constructor: when main.cpp makes this object, the signals are not blocked yet, and the threads
  // would not inherit the block (EndSignals).
  std::vector<std::thread> threads_;
};

}  // namespace server
