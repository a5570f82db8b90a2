// A step in the making: the rows of the plan's requests in one run, and what came of each. Whoever drives has it. Its lists are
// members so that no step has to allocate them.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "scheduler/admission.hpp"
#include "scheduler/planning.hpp"

namespace tessera::detail {

class Computation {
 public:
  Computation(const Setup& setup, HostCalls& host, Accounts& accounts, Delivery& delivery, Requests& requests, Planning& planning,
              Admission& admission, Preemption& preemption, Drops& drops, Learnt& learnt, EngineTime& engine_time)
      : setup_(setup), host_(host), accounts_(accounts), delivery_(delivery), requests_(requests), planning_(planning),
        admission_(admission), preemption_(preemption), drops_(drops), learnt_(learnt), engine_time_(engine_time) {}

  // Makes room for all that the plan's step moves and draws: nobody is lost on the way from one list to another, and no piece that
  // has been drawn. Throws bad_alloc; then everybody is where they were.
  void make_room();
  // Computes the plan's step, for which there is room. What fails is one member's. Returns whether anything has come of it.
  bool compute(double begin) noexcept;

 private:
  struct Member {
    Active* active;
    std::size_t first_part = 0, parts = 0;  // of the run; several of beams, none where logits are known
    // What came of it: its pieces, several where drafts were right, and then perhaps an error.
    std::size_t first_piece = 0, pieces = 0;  // of pieces_
    Status status = {};
  };
  // Rows of a run, and the seconds that their drafts took to make.
  struct Load {
    StepLoad rows;
    double drafting = 0.0;
  };

  bool offer_rows(Run& run, double begin) noexcept;
  Status put_in(Run& run, Active& active, const StepPlan::Part& part) noexcept;
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
