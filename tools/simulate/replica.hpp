// Simulates one engine with a scheduler: the scheduler's own planner (plan_step.hpp), and a cost model instead of a model.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include <tessera/unstable/scheduler/plan_step.hpp>
#include <tessera/unstable/scheduler/tenants.hpp>

#include "serving/serving_figures.hpp"
#include "serving/trace.hpp"

namespace tessera::simulate {

struct ReplicaOptions {
  CostModel costs;
  PageCost pages;
  std::uint64_t kv_budget = 0;   // bytes of KV pages; 0: as many as the requests need
  double file_rate = 0.0;        // bytes a second to and from the file for pages of preempted requests; 0: no file
  StepLimits limits;
  PolicyPtr policy;
  std::uint64_t max_waiting = 0;  // the most waiting requests; 0: any number
  bool one_by_one = false;        // simulates equal steps one by one instead of together, which is slower
};

// The prefix blocks in the cache. The least recently used block is dropped first.
class BlockCache {
 public:
  // Returns how many leading blocks are in the cache, and marks these blocks as used.
  std::size_t find(std::span<const std::uint64_t> blocks);
  [[nodiscard]] std::size_t count(std::span<const std::uint64_t> blocks) const;
  void insert(std::span<const std::uint64_t> blocks);
  void shrink(std::size_t most);

 private:
  std::list<std::uint64_t> order_;  // the most recently used first
  std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> places_;
};

class Replica {
 public:
  Replica(const ReplicaOptions& options, std::uint32_t block_tokens, const tool::ServiceLevel& level);

  // Submits a request. The caller keeps it at the same address until it has ended.
  void submit(const tool::TraceRequest& request);
  // Runs the steps that begin before `time`.
  void run_until(double time);
  void run_to_the_end() { run_until(std::numeric_limits<double>::infinity()); }

  // Called at the end of each request, with the time of its last token.
  using Finished = std::function<void(const tool::TraceRequest&, double)>;
  void on_finished(Finished callback) { finished_ = std::move(callback); }

  // Returns the rows still to compute for all submitted requests.
  [[nodiscard]] std::uint64_t work() const noexcept { return work_; }
  [[nodiscard]] std::size_t known_blocks(const tool::TraceRequest& request) const { return cache_.count(request.blocks); }
  [[nodiscard]] const tool::ServingFigures& figures() const noexcept { return figures_; }
  [[nodiscard]] const Tenants& tenants() const noexcept { return tenants_; }
  [[nodiscard]] double now() const noexcept { return now_; }

 private:
  struct Times {
    const tool::TraceRequest* request = nullptr;
    Tenants::Tenant* tenant = nullptr;
    double scheduled = -1.0, first = 0.0, last = 0.0;  // times of the first row, the first token and the last token
  };

  bool step();
  std::uint64_t steps_alike(double until) const;
  void decode_alike(std::uint64_t steps);
  void preempt(std::size_t index);
  void admit(std::size_t index);
  void compute(std::size_t index, std::uint32_t rows);
  void remove_finished();
  void look_for_prefixes();
  [[nodiscard]] std::uint64_t held() const noexcept;
  [[nodiscard]] PageRoom room() const noexcept;
  void wait_for_batch(double until);

  ReplicaOptions options_;
  std::uint32_t block_tokens_;
  double now_ = 0.0;
  double file_seconds_ = 0.0;  // seconds that reading and writing the file add to the present step
  std::uint64_t submitted_ = 0, work_ = 0;
  std::vector<PlannedRequest> running_, waiting_;
  std::vector<Times> running_times_, waiting_times_;
  Tenants tenants_;
  BlockCache cache_;
  StepPlanner planner_;
  StepPlan plan_;
  tool::ServingFigures figures_;
  Finished finished_;
};

}  // namespace tessera::simulate
