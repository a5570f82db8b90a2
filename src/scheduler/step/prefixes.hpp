// Finds out how many of a waiting request's first tokens it need not compute, because the prefix index has them, or because another request
// with the same beginning will compute them. Used only by the driving thread.
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

  // Returns the probe with which a new request is looked up in the prefix index; nullptr if the request shares no pages. May throw
  // bad_alloc.
  [[nodiscard]] std::shared_ptr<const PrefixProbe> probe_of(const Active& active);
  // Looks up waiting request i in the prefix index, and stores how many of its tokens the index has; stores 0 if memory is short.
  void look_up(std::size_t i) noexcept;
  // Looks up a few waiting requests, other ones in each step, so that the stored numbers follow changes of the index.
  void look_up_some() noexcept;
  // Returns the `order` of the request that will compute the next page that `active` needs; kNobody if there is none. `planned` is the plan
  // of `active`. Considers only requests that the policy serves before `active`; otherwise `active` might wait for a request that gets no
  // rows.
  [[nodiscard]] std::uint64_t awaited_by(const Active& active, const PlannedRequest& planned,
                                         std::span<const PlannedRequest> running, const Candidates& candidates, double time) const;

 private:
  const Setup& setup_;
  Requests& requests_;
  // Probes, by KV type, wide layers, tokens of a page, and salt.
  std::map<std::tuple<DType, WideLayers, std::uint32_t, std::string>, std::shared_ptr<PrefixProbe>> probes_;
  std::vector<Token> looked_for_;
  std::size_t next_look_up_ = 0;
};

}  // namespace tessera::detail
