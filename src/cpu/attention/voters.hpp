// The rows of a step that vote (backend::RowVotes), and the memory to which attention writes their scores for the votes of a layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "core/error.hpp"
#include "cpu/attention/attention_job.hpp"

namespace tessera::cpu {

class Voters {
 public:
  // Returns how many floats the scores of a model's voters take.
  [[nodiscard]] static std::uint64_t floats(const backend::WorkspaceShape& shape) noexcept {
    return std::uint64_t{shape.voters} * shape.max_heads * rounded_up(shape.vote_keys, 16);
  }
  // Sets the memory for the voters' scores. `scores`: floats(shape) floats.
  void reserve(const backend::WorkspaceShape& shape, float* scores) {
    if (shape.voters == 0) return;
    scores_ = scores;
    most_ = shape.voters;
    heads_ = shape.max_heads;
    stride_ = rounded_up(shape.vote_keys, 16);
    voters_.reserve(shape.voters);
    at_.reserve(shape.rows);
  }

  // Gives each voter of a step with these rows its part of the memory.
  Status begin(std::span<const backend::RowVotes> votes, std::span<const backend::RowTable> rows) {
    clear();
    if (votes.empty()) return {};
    if (votes.size() > most_) {
      return detail::make_error(ErrorCode::internal, "{} rows vote in a workspace for {}", votes.size(), most_);
    }
    at_.resize(rows.size(), nullptr);
    for (const backend::RowVotes& voter : votes) {
      const std::uint64_t keys = rows[voter.row].position + 1;
      if (keys > stride_ || keys > voter.of_keys.size()) {
        return detail::make_error(ErrorCode::internal,
                                  "a row votes for {} keys in a workspace for {}, and a list of {}", keys, stride_,
                                  voter.of_keys.size());
      }
      at_[voter.row] = scores_ + voters_.size() * heads_ * stride_;
      voters_.push_back(voter);
    }
    return {};
  }
  // Ends the voting: from now on no row of the step votes.
  void clear() noexcept {
    voters_.clear();
    at_.clear();
  }

  [[nodiscard]] bool any() const noexcept { return !at_.empty(); }
  [[nodiscard]] std::span<const backend::RowVotes> all() const noexcept { return voters_; }
  // Returns, for each row of the step, a pointer to the memory for its scores [heads][stride()], which attention writes and count_votes()
  // turns into votes; nullptr if the row does not vote.
  [[nodiscard]] float* const* scores() const noexcept { return at_.data(); }
  [[nodiscard]] std::size_t stride() const noexcept { return stride_; }

 private:
  float* scores_ = nullptr;
  std::size_t most_ = 0, heads_ = 0;
  std::size_t stride_ = 0;  // floats from a head to the next
  std::vector<backend::RowVotes> voters_;
  std::vector<float*> at_;  // [rows of the step]; empty: no row votes
};

}  // namespace tessera::cpu
