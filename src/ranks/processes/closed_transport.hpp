// Closes a transport's connections at the end of a scope, so that the other ranks do not wait for a rank that has failed.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include <tessera/extend/backend/rank_transport.hpp>

namespace tessera::detail {

class ClosedTransport {
 public:
  explicit ClosedTransport(std::shared_ptr<RankTransport> transport) noexcept : transport_(std::move(transport)) {}
  ClosedTransport(const ClosedTransport&) = delete;
  ClosedTransport& operator=(const ClosedTransport&) = delete;
  ~ClosedTransport() {
    for (std::uint32_t rank = 0; transport_ != nullptr && rank < transport_->ranks(); ++rank) {
      if (rank != transport_->rank()) transport_->close(rank);
    }
  }
  // Leaves the connections open.
  void release() noexcept { transport_ = nullptr; }

 private:
  std::shared_ptr<RankTransport> transport_;
};

}  // namespace tessera::detail
