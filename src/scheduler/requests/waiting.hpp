// The waiting requests, unordered. Their PlannedRequests are in a separate array, because a plan may have to read a thousand of them in
// microseconds.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "scheduler/requests/active.hpp"

namespace tessera::detail {

class Waiting {
 public:
  // Reserves memory for `n` more requests, so that add() cannot fail for them.
  void make_room(std::size_t n) {
    if (requests_.size() + n <= requests_.capacity()) return;
    const std::size_t room = 2 * requests_.size() + n + 16;
    plans_.reserve(room);
    tenants_.reserve(room);
    requests_.reserve(room);
  }
  void add(ActivePtr active) {
    make_room(1);
    plans_.push_back(active->planned);
    tenants_.push_back(active->tenant);
    rows_ += rows_of(active->planned);
    requests_.push_back(std::move(active));
  }

  // Takes request i out, and leaves a gap in its place, so that the other requests keep their indices until close_gaps().
  [[nodiscard]] ActivePtr lift(std::size_t i) noexcept {
    rows_ -= rows_of(plans_[i]);
    has_gaps_ = true;
    return std::move(requests_[i]);
  }
  void close_gaps() noexcept {
    if (!std::exchange(has_gaps_, false)) return;
    for (std::size_t i = requests_.size(); i-- > 0;) {
      if (requests_[i] != nullptr) continue;
      requests_[i] = std::move(requests_.back());
      plans_[i] = plans_.back();
      tenants_[i] = tenants_.back();
      requests_.pop_back();
      plans_.pop_back();
      tenants_.pop_back();
    }
  }

  template <class Wanted>
  [[nodiscard]] std::vector<ActivePtr> take_if(Wanted&& wanted) {
    std::vector<ActivePtr> taken;
    taken.reserve(requests_.size());
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (wanted(*requests_[i])) taken.push_back(lift(i));
    }
    close_gaps();
    return taken;
  }

  // Returns the PlannedRequests of all waiting requests, after setting their tenant_service to the present value.
  [[nodiscard]] std::span<const PlannedRequest> plans() noexcept {
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      if (plans_[i].tenant_service != tenants_[i]->service) plans_[i].tenant_service = tenants_[i]->service;
    }
    return plans_;
  }
  // Stores the prefix index's result for request i: `saved` tokens need not be computed, and other sequences already use `shared` bytes of
  // their pages.
  void set_known(std::size_t i, std::uint64_t saved, std::uint64_t shared) noexcept {
    rows_ -= rows_of(plans_[i]);
    plans_[i].saved = saved;
    plans_[i].shared = shared;
    rows_ += rows_of(plans_[i]);
  }
  [[nodiscard]] std::span<const ActivePtr> requests() const noexcept { return requests_; }
  [[nodiscard]] std::size_t size() const noexcept { return requests_.size(); }
  [[nodiscard]] bool empty() const noexcept { return requests_.empty(); }
  // Returns the number of rows that must be computed until every waiting request can draw. Does not count tokens that the prefix index has.
  [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }

 private:
  [[nodiscard]] static std::uint64_t rows_of(const PlannedRequest& request) noexcept { return request.needed() - request.saved; }

  std::vector<ActivePtr> requests_;
  std::vector<PlannedRequest> plans_;         // copies that add() makes; set_known() and plans() update some of their fields
  std::vector<const Tenants::Tenant*> tenants_;
  std::uint64_t rows_ = 0;
  bool has_gaps_ = false;
};

}  // namespace tessera::detail
