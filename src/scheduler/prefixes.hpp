// Who shares whose beginning: what the prefix index has for each of those who wait, and whose pages they wait for. Whoever drives
// has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "scheduler/requests.hpp"
#include "scheduler/setup.hpp"

namespace tessera::detail {

// Those whom a step may admit, in order.
struct Candidates {
  std::vector<std::size_t> places;    // among those who wait
  std::vector<PlannedRequest> plans;  // [places]

  void clear() noexcept {
    places.clear();
    plans.clear();
  }
};

class Prefixes {
 public:
  Prefixes(const Setup& setup, Requests& requests) : setup_(setup), requests_(requests) {}

  // What a new request asks the index by; nullptr: it shares nothing. May throw bad_alloc.
  [[nodiscard]] std::shared_ptr<const PrefixProbe> probe_of(const Active& active);
  // Asks the index for the i-th of those who wait, and notes what it has. Where there is no memory to look, that is nothing.
  void look_up(std::size_t i) noexcept;
  // Asks for a few of those who wait, in turn: so that ranks learn of what has changed.
  void look_up_some() noexcept;
  // Returns the order of the request that computes the next page that this one, planned so, lacks; kNobody: none does. It is a
  // request that the policy serves before this one, so that nobody waits for a request that waits for rows.
  [[nodiscard]] std::uint64_t awaited_by(const Active& active, const PlannedRequest& planned,
                                         std::span<const PlannedRequest> running, const Candidates& candidates, double time) const;

 private:
  const Setup& setup_;
  Requests& requests_;
  // By types, page, salt.
  std::map<std::tuple<DType, WideLayers, std::uint32_t, std::string>, std::shared_ptr<PrefixProbe>> probes_;
  std::vector<Token> looked_for_;
  std::size_t next_look_up_ = 0;
};

}  // namespace tessera::detail
