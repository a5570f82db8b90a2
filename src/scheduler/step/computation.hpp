// Computes a step: puts the planned rows of all requests into one run (engine/run/run.hpp), computes the run, and hands out the results.
// Only the driving thread uses it. Its lists are members, so that steps reuse their memory.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "scheduler/step/admission.hpp"
#include "scheduler/plan/planning.hpp"

namespace tessera::detail {

class Computation {
 public:
  Computation(const Setup& setup, HostCalls& host, Accounts& accounts, Delivery& delivery, Requests& requests, Planning& planning,
              Admission& admission, Preemption& preemption, Drops& drops, Learnt& learnt, EngineTime& engine_time)
      : setup_(setup), host_(host), accounts_(accounts), delivery_(delivery), requests_(requests), planning_(planning),
        admission_(admission), preemption_(preemption), drops_(drops), learnt_(learnt), engine_time_(engine_time) {}

  // Allocates room for each request that the planned step will move to another list (from waiting to running, say) and for each piece of
  // text that it will draw, so that compute() cannot lose one for lack of memory. Throws bad_alloc; all requests are where they were then.
  void make_room();
  // Computes the planned step. Call make_room() first. An error of one request ends only that request. Returns whether anything has
  // changed: rows were computed, or a request gave its pages up or failed.
  bool compute(double begin) noexcept;

 private:
  // A request that has rows in the step, or draws from known logits.
  struct Member {
    Active* active;
    std::size_t first_part = 0, parts = 0;  // its parts of the run: several for beams, none if its logits are known
    // The results: the pieces that were drawn (several if drafts were accepted), then perhaps an error.
    std::size_t first_piece = 0, pieces = 0;  // indices into pieces_
    Status status = {};                       // an error that comes after the pieces
  };
  // The load of a run's computed rows, and the seconds that it took to make the run's drafts.
  struct Load {
    StepLoad rows;
    double drafting = 0.0;
  };

  bool offer_rows(Run& run, double begin) noexcept;
  Status put_in(Run& run, Active& active, const StepPlan::Share& part) noexcept;
  [[nodiscard]] Load load_of(const Run& run) const noexcept;
  void draw(Run& run, Member& member) noexcept;
  void note_drafts(const Run& run, const Load& load, double seconds) noexcept;
  void finish(const Member& member, double begin, double time);
  void end_running(Active& active, std::optional<Error> error) noexcept { delivery_.end(*requests_.take_running(active), std::move(error)); }

  const Setup& setup_;
  HostCalls& host_;
  Accounts& accounts_;
  Delivery& delivery_;
  Requests& requests_;
  Planning& planning_;
  Admission& admission_;
  Preemption& preemption_;
  Drops& drops_;
  Learnt& learnt_;
  EngineTime& engine_time_;

  std::vector<Member> members_;
  std::vector<Piece> pieces_;
  std::vector<std::pair<ActivePtr, Error>> failed_;
};

}  // namespace tessera::detail
