#include "kv/kv_peers.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

namespace server {

KvPeers::~KvPeers() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    tasks_.clear();
  }
  ending_.request_stop();
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

const Url* KvPeers::find(const KvOrigin& origin) const noexcept {
  const auto found = std::ranges::find_if(options_.urls, [&](const Url& url) { return url.host == origin.host && url.port == origin.port; });
  return found == options_.urls.end() ? nullptr : &*found;
}

void KvPeers::fetch(KvOrigin origin, std::uint64_t most, std::string authorization, std::stop_token stop, Done done) {
  const Url* from = find(origin);
  if (from == nullptr) return done({.outcome = Outcome::unknown_peer, .error = "no --kv-peer names the server that has it"});
  if (origin.bytes > most) return done({.outcome = Outcome::gone, .error = "it is larger than a full context of this model"});
  {
    const std::lock_guard lock(mutex_);
    if (tasks_.size() < options_.waiting) {
      // Makes the thread before it queues the task: if the system refuses the thread, the exception comes while no task is queued, and the
      // caller answers the request.
      if (idle_ < tasks_.size() + 1 && threads_.size() < options_.at_once) threads_.emplace_back([this] { work(); });
      tasks_.push_back({from, std::move(origin), most, std::move(authorization), std::move(stop), std::move(done), std::chrono::steady_clock::now()});
      changed_.notify_one();
      return;
    }
  }
  done({.outcome = Outcome::busy, .error = "too many fetches wait"});
}

KvPeers::Fetched KvPeers::run(const Task& task) const {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(task.begin + options_.time - begin);
  if (time <= std::chrono::milliseconds(0)) return {.outcome = Outcome::busy, .error = "too many fetches wait"};
  const Upstream peer(*task.from, {}, {.connect_time = std::min(time, std::chrono::milliseconds(2000)), .answer_time = time, .silence = time, .answer_bytes = task.most});
  Fetched fetched;
  std::stop_source stop;
  const std::stop_callback by_client(task.stop, [&] { stop.request_stop(); });
  const std::stop_callback by_end(ending_.get_token(), [&] { stop.request_stop(); });
  try {
    fetched.bytes.reserve(task.origin.bytes);
    const UpstreamAnswer answer = peer.ask("GET", "/v1/kv/" + task.origin.id, {}, task.authorization, stop.get_token(), [&](std::string_view piece) {
      if (Clock::now() - begin > time) throw UpstreamError(UpstreamError::Kind::late, fmt::format("{} did not send it within {} s", task.from->text(), options_.time.count()));
      fetched.bytes += piece;
    });
    if (answer.status != 200) {
      fetched.outcome = Outcome::gone;
      fetched.error = fmt::format("the server that has it answers {}", answer.status);
      fetched.detail = fmt::format("{} answers {}", task.from->text(), answer.status);
    }
  } catch (const std::exception& error) {
    fetched = {.outcome = Outcome::unreachable, .error = "the server that has it was not reached, or did not send it in time", .detail = error.what()};
  }
  fetched.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return fetched;
}

void KvPeers::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    changed_.wait(lock, [&] { return is_ending_ || !tasks_.empty(); });
    --idle_;
    if (is_ending_) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    try {
      task.done(run(task));
    } catch (const std::exception& error) {  // no memory: the request's reply is destroyed, which sends an error to the client
      std::fprintf(stderr, "a request was given up while its prompt was fetched: %s\n", error.what());
    }
    task = {};  // releases the request before this thread waits
    lock.lock();
  }
}

}  // namespace server
