// Finds out which tokens at its beginning a waiting request need not compute: those that the prefix index has, and those that another
// request with the same beginning is going to compute. Only the driving thread uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "scheduler/requests/requests.hpp"
#include "scheduler/setup.hpp"

namespace tessera::detail {

// The waiting requests that a step may admit, in the policy's order.
struct Candidates {
  std::vector<std::size_t> places;    // indices of the candidates among the waiting requests
  std::vector<PlannedRequest> plans;  // the candidates' plans, in the same order

  void clear() noexcept {
    places.clear();
    plans.clear();
  }
};

class Prefixes {
 public:
  Prefixes(const Setup& setup, Requests& requests) : setup_(setup), requests_(requests) {}

  // Returns the probe with which a new request looks itself up in the prefix index; nullptr if it shares no pages. May throw bad_alloc.
  [[nodiscard]] std::shared_ptr<const PrefixProbe> probe_of(const Active& active);
  // Looks up the i-th waiting request in the prefix index, and stores how many of its tokens the index has. Stores 0 if there is no
  // memory for that.
  void look_up(std::size_t i) noexcept;
  // Looks up a few waiting requests, different ones in each step, so that the stored numbers follow changes of the index.
  void look_up_some() noexcept;
  // Returns the `order` of the request that will compute the next page that `active` needs (`planned` is its plan); kNobody if there is
  // none. Considers only requests that the policy serves before `active`. Otherwise `active` could await a request that gets no rows.
  [[nodiscard]] std::uint64_t awaited_by(const Active& active, const PlannedRequest& planned,
                                         std::span<const PlannedRequest> running, const Candidates& candidates, double time) const;

 private:
  const Setup& setup_;
  Requests& requests_;
  // Probes by KV type, wide layers, tokens of a page, and salt.
  std::map<std::tuple<DType, WideLayers, std::uint32_t, std::string>, std::shared_ptr<PrefixProbe>> probes_;
  std::vector<Token> looked_for_;
  std::size_t next_look_up_ = 0;
};

}  // namespace tessera::detail
