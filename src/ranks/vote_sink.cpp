#include "ranks/vote_sink.hpp"

#include <algorithm>

namespace tessera::detail {

void VoteSink::begin(const StepDescription& step) {
  step_ = &step;
  sums_.assign(step.pages.sequences.size(), {});
  for (const DescribedRow& row : step.rows) {
    if (row.votes && row.position + 1 > sums_[row.sequence].size()) sums_[row.sequence].resize(row.position + 1);
  }
}

void VoteSink::add_to(OutputSink& sink) const {
  std::vector<bool> added(sums_.size());
  for (std::size_t row = 0; row < step_->rows.size(); ++row) {
    const std::uint32_t sequence = step_->rows[row].sequence;
    if (!step_->rows[row].votes || added[sequence]) continue;
    added[sequence] = true;
    const std::span<std::uint64_t> to = sink.votes(row);
    for (std::size_t i = 0; i < sums_[sequence].size(); ++i) to[i] += sums_[sequence][i];
  }
}

bool VoteSink::any() const noexcept {
  return std::ranges::any_of(sums_, [](const auto& sums) { return !sums.empty(); });
}

void VoteSink::write(ByteWriter& to) const {
  for (const auto& sums : sums_) to.add(std::as_bytes(std::span(sums)));
}

bool VoteSink::read(ByteReader& from) {
  for (auto& sums : sums_) {
    const auto bytes = from.take(sums.size() * sizeof(std::uint64_t));
    if (!bytes.empty()) std::memcpy(sums.data(), bytes.data(), bytes.size());
  }
  return from.is_at_end();
}

}  // namespace tessera::detail
