#include "cuda/attention/votes.hpp"

#include "core/error.hpp"
#include "core/guard.hpp"

namespace tessera::cuda {

Status VoteCounter::reserve_host() {
  return detail::guard([&]() -> Status {
    host_.resize(std::size_t{most_} * stride_);
    voters_.reserve(most_);
    return {};
  });
}

Status VoteCounter::begin(const Device& device, StepArena& arena, std::span<const backend::RowVotes> votes,
                          std::span<const backend::RowTable> rows) {
  voters_.clear();
  counts_ = false;
  if (votes.empty()) return {};
  if (votes.size() > most_) {
    return detail::make_error(ErrorCode::internal, "{} rows vote in a workspace for {}", votes.size(), most_);
  }
  for (const backend::RowVotes& voter : votes) {
    const std::uint64_t keys = rows[voter.row].position + 1;
    if (keys > stride_ || keys > voter.of_keys.size()) {
      return detail::make_error(ErrorCode::internal, "a row votes for {} keys in a workspace for {}, and a list of {}", keys, stride_,
                                voter.of_keys.size());
    }
  }
  TESSERA_TRY(const auto list, arena.add<std::uint32_t>(votes.size()));
  for (std::size_t i = 0; i < votes.size(); ++i) list.host[i] = votes[i].row;
  rows_ = list.device;
  voters_.assign(votes.begin(), votes.end());
  counts_ = true;
  const std::size_t bytes = votes.size() * stride_ * sizeof(std::uint64_t);
  return device.check(device.api().cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(sums_), 0, bytes, device.stream()), "clear votes");
}

Status VoteCounter::count(const Device& device, Kernel kernel, VoteArgs args) const {
  args.voters = rows_;
  args.scores = scores_;
  args.sums = sums_;
  args.stride = stride_;
  args.units = static_cast<float>(backend::kVoteUnits);
  return device.launch(kernel, {.x = static_cast<std::uint32_t>(voters_.size()), .y = args.heads}, kVoteThreads,
                       vote_shared_bytes(args.layer.key_dim), args);
}

Status VoteCounter::fetch(const Device& device) {
  if (voters_.empty()) return {};
  return device.to_host(host_.data(), reinterpret_cast<CUdeviceptr>(sums_), voters_.size() * stride_ * sizeof(std::uint64_t));
}

void VoteCounter::add() noexcept {
  for (std::size_t i = 0; i < voters_.size(); ++i) {
    const std::uint64_t* const sums = host_.data() + i * stride_;
    const std::span<std::uint64_t> to = voters_[i].of_keys;
    for (std::size_t key = 0; key < to.size() && key < stride_; ++key) to[key] += sums[key];
  }
  voters_.clear();
}

}  // namespace tessera::cuda
