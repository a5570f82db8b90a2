// Computes a step: adds the planned rows of all requests to one run (engine/run/run.hpp), computes the run, and delivers the results. Used
// only by the driving thread. Its lists are members, so that steps reuse their memory.
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

  // Reserves memory for each move of a request between lists, and for each piece of text that the planned step will draw, so that compute()
  // cannot lose a request or a piece. Throws bad_alloc; no request has moved then.
  void make_room();
  // Computes the planned step. Call make_room() first. An error of one request ends only that request. Returns whether anything has
  // changed: rows were computed, or a request gave up its pages or failed.
  bool compute(double begin) noexcept;

 private:
  // A request that has rows in the step, or draws from known logits.
  struct Member {
    Active* active;
    std::size_t first_part = 0, parts = 0;  // its parts of the run: several for beams, none if its logits are already known
    // The results: drawn pieces (several if drafts were accepted), then possibly an error.
    std::size_t first_piece = 0, pieces = 0;  // indices into pieces_
    Status status = {};                       // an error that comes after the pieces
  };
  // The load of a run's computed rows, and the seconds that making the run's drafts took.
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
