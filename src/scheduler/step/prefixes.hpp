// Finds shared beginnings of prompts: tokens of a waiting request that the prefix index has, and other requests that will compute tokens
// with which the waiting request begins too. Used by the driving thread.
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
  std::vector<std::size_t> places;    // indices into the waiting requests
  std::vector<PlannedRequest> plans;  // [places]

  void clear() noexcept {
    places.clear();
    plans.clear();
  }
};

class Prefixes {
 public:
  Prefixes(const Setup& setup, Requests& requests) : setup_(setup), requests_(requests) {}

  // Returns the probe by which a new request asks the index; nullptr if the request shares nothing. May throw bad_alloc.
  [[nodiscard]] std::shared_ptr<const PrefixProbe> probe_of(const Active& active);
  // Asks the index for the i-th waiting request, and notes how many of its tokens the index has (0 if there is no memory to ask).
  void look_up(std::size_t i) noexcept;
  // Asks for a few of the waiting requests, in turn, so that ranks follow the changes of the index.
  void look_up_some() noexcept;
  // Returns the `order` of the request that will compute the next page that `active`, planned as `planned`, lacks; kNobody if there
  // is none. Considers only requests that the policy serves before `active`, so that no request awaits one that gets no rows.
  [[nodiscard]] std::uint64_t awaited_by(const Active& active, const PlannedRequest& planned,
                                         std::span<const PlannedRequest> running, const Candidates& candidates, double time) const;

 private:
  const Setup& setup_;
  Requests& requests_;
  // Key: KV type, wide layers, tokens of a page, salt.
  std::map<std::tuple<DType, WideLayers, std::uint32_t, std::string>, std::shared_ptr<PrefixProbe>> probes_;
  std::vector<Token> looked_for_;
  std::size_t next_look_up_ = 0;
};

}  // namespace tessera::detail
