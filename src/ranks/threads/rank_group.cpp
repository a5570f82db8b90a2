#include "ranks/threads/rank_group.hpp"

#include <algorithm>
#include <new>

#include "core/error.hpp"
#include "core/fp_state.hpp"
#include "core/guard.hpp"
#include "core/wait.hpp"
#include "os/error.hpp"

namespace tessera::detail {

// The thread of a rank.
class RankGroup::Worker {
 public:
  using Job = void (*)(void* context, std::uint32_t rank);

  explicit Worker(std::uint32_t rank) noexcept : rank_(rank) {}
  ~Worker() {
    if (!started_) return;
    begin(nullptr, nullptr);
    os::join_thread(thread_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  Status start() {
    const auto body = [](void* worker) -> void* {
      static_cast<Worker*>(worker)->work();
      return nullptr;
    };
    if (const int error = os::start_thread(body, this, thread_); error != 0) {
      return make_error(ErrorCode::out_of_memory, "the thread of rank {} does not start: {}. Ask for fewer ranks", rank_, os::words_of(error));
    }
    started_ = true;
    return {};
  }

  // Makes the thread call job(context, rank). nullptr: the thread ends.
  void begin(Job job, void* context) noexcept {
    job_ = job;
    context_ = context;
    begun_.fetch_add(1);  // sequentially consistent: either notify_one() sees the thread parked, or the thread sees this
    begun_.notify_one();
  }
  void wait() noexcept { wait_while(ended_, begun_.load(std::memory_order_relaxed) - 1); }

 private:
  void work() noexcept {
    const FpState fp_state;
    for (std::uint32_t seen = 0;; ++seen) {
      wait_while(begun_, seen);
      if (job_ == nullptr) return;
      job_(context_, rank_);
      ended_.fetch_add(1);
      ended_.notify_one();
    }
  }

  std::uint32_t rank_;
  os::ThreadHandle thread_{};
  bool started_ = false;
  Job job_ = nullptr;
  void* context_ = nullptr;
  std::atomic<std::uint32_t> begun_ = 0, ended_ = 0;
};

Result<std::unique_ptr<RankGroup>> RankGroup::start(std::shared_ptr<const ModelDivision> division, std::unique_ptr<ThreadRanks> ranks,
                                                    std::vector<std::unique_ptr<RankPart>> parts, KvPools pools) {
  std::unique_ptr<RankGroup> group(new RankGroup);
  group->ranks_ = std::move(ranks);
  group->parts_ = std::move(parts);
  group->adapters_.resize(group->parts_.size());
  group->sinks_.resize(group->parts_.size());
  for (std::uint32_t rank = 0; rank < group->parts_.size(); ++rank) {
    RankPart& part = *group->parts_[rank];
    group->pages_.push_back(std::make_unique<RankPages>(pools, division, rank));
    group->executors_.push_back(std::make_unique<BackendExecutor>(part.model, *part.backend, *group->pages_.back()));
    if (rank == 0) continue;
    group->workers_.push_back(std::make_unique<Worker>(rank));
    TESSERA_TRY_STATUS(group->workers_.back()->start());
  }
  return group;
}

RankGroup::~RankGroup() = default;

template <class Work>
Status RankGroup::on_all(const Work& work) noexcept {
  struct Call {
    RankGroup& group;
    const Work& work;
    std::atomic<bool> failed = false;
    Status error = {};  // the error of the first rank that failed: the other ranks fail because that rank has stopped the step

    void run(std::uint32_t rank) noexcept {
      Status status = work(*group.executors_[rank], rank);
      if (status || failed.exchange(true)) return;
      error = std::move(status);
      group.ranks_->of(rank).stop();
    }
  } call{*this, work};
  for (const auto& worker : workers_) {
    worker->begin([](void* context, std::uint32_t rank) { static_cast<Call*>(context)->run(rank); }, &call);
  }
  call.run(0);
  for (const auto& worker : workers_) worker->wait();
  if (!call.failed) return {};
  ranks_->restart();
  return std::move(call.error);
}

Status RankGroup::execute(const StepDescription& step, const StepInputs& inputs, OutputSink& sink, const std::stop_token& stop) noexcept {
  return guard([&]() -> Status {
    for (std::uint32_t rank = 1; rank < parts_.size(); ++rank) {
      sinks_[rank].begin(step);
      adapters_[rank].clear();
      for (const backend::AdapterWeights* adapter : inputs.adapters) adapters_[rank].push_back(&adapter->of_rank(rank));
    }
    TESSERA_TRY_STATUS(on_all([&](BackendExecutor& executor, std::uint32_t rank) {
      return rank == 0 ? executor.execute(step, inputs, sink, stop)
                       : executor.execute(step, {.embeddings = inputs.embeddings, .adapters = adapters_[rank]}, sinks_[rank], {});
    }));
    for (std::uint32_t rank = 1; rank < parts_.size(); ++rank) sinks_[rank].add_to(sink);
    return {};
  }, ErrorCode::callback_failed);
}

Status RankGroup::guess(const StepDescription&, std::span<float>, std::span<float>, const std::stop_token&) noexcept {
  return make_error(ErrorCode::internal, "an engine of several ranks has no draft heads");
}

Status RankGroup::reserve(const StepPages& pages) noexcept {
  for (const auto& executor : executors_) TESSERA_TRY_STATUS(executor->reserve(pages));
  return {};
}

Status RankGroup::move(const MoveDescription& move) noexcept {
  return on_all([&](BackendExecutor& executor, std::uint32_t) { return executor.move(move); });
}

}  // namespace tessera::detail
