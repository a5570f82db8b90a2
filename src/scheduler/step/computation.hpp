// Computes a step: puts the rows of the plan's requests into one run (engine/run/run.hpp), computes the run, and hands out the results.
// Used by the driving thread. The lists are members so that no step allocates them.
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

  // Makes room for all requests that the planned step moves and all pieces that it draws, so that none can be lost. Throws
  // bad_alloc; then no request has moved.
  void make_room();
  // Computes the planned step, after make_room(). An error of one request ends that request alone. Returns whether something has changed:
  // rows were computed, or a request gave its pages up or failed.
  bool compute(double begin) noexcept;

 private:
  // A request that takes part in the step.
  struct Member {
    Active* active;
    std::size_t first_part = 0, parts = 0;  // parts of the run: several for beams, none if the logits are known
    // The result: pieces, several if drafts were accepted.
    std::size_t first_piece = 0, pieces = 0;  // indices into pieces_
    Status status = {};                       // an error behind the pieces
  };
  // The rows of a run, and the seconds that making their drafts took.
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
