#include "decoding/draft_length.hpp"

#include <algorithm>
#include <utility>

namespace tessera::detail {
namespace {

constexpr double kMemory = 0.985;         // factor of the weight of all earlier drafts, at each step with drafts: halved after 46 steps
constexpr double kTried = 2.0, kRight = 1.4;  // the first estimate: as if kTried drafts had been tried and kRight accepted
constexpr double kAlike = 4.0;            // in a position's acceptance rate, the rate of all positions counts like this number of tries
constexpr std::uint64_t kProbe = 16, kMostProbe = 1024;  // if drafts do not pay: steps until drafts are tried again, at first and at most
constexpr std::size_t kProbed = 4;        // number of drafts in a step that tries drafts again
constexpr std::size_t kTrusted = 1;       // number of drafts in the first step that has drafts

}  // namespace

DraftLengths::DraftLengths(std::size_t most)
    : positions_(most), all_{kTried, kRight}, steps_(most + 1), drafting_(most), next_probe_(kProbe), probe_after_(kProbe), trusted_(std::min(most, kTrusted)) {}

void DraftLengths::observe_step(std::size_t rows, double seconds) noexcept {
  steps_.observe(rows, seconds);
  cycle_ += steps_.at(rows);
  if (rows <= 1) end_cycle(1);  // a step with drafts is counted by observe_accepted(), when the number of accepted drafts is known
}

void DraftLengths::end_cycle(std::size_t tokens) noexcept {
  ledger_.observe({.seconds = std::exchange(cycle_, 0.0), .without = static_cast<double>(tokens) * steps_.at(1)});
}

double DraftLengths::expected(std::size_t k) const noexcept {
  double tokens = 1.0, chance = 1.0;
  for (std::size_t i = 0; i < std::min(k, positions_.size()); ++i) {
    const Position& at = positions_[i];
    chance *= (at.right + kAlike * all_.right / all_.tried) / (at.tried + kAlike);
    tokens += chance;
  }
  return tokens;
}

double DraftLengths::chance() noexcept {
  const std::uint64_t turn = chosen_++;
  const double known = all_.right / all_.tried;
  if (turn < next_probe_) return known;
  probe_after_ = 2.0 * known > 1.0 ? kProbe : std::min(2 * probe_after_, kMostProbe);
  next_probe_ = chosen_ + probe_after_;
  return std::max(known, kRight / kTried);
}

void DraftLengths::observe_accepted(std::size_t drafts, std::size_t accepted) noexcept {
  // The counts of a position that is no longer tried decay, so that the position will be tried again.
  const auto note = [](Position& at, double tried, double right) {
    at.tried = kMemory * at.tried + tried;
    at.right = kMemory * at.right + right;
  };
  // Drafts after the first rejected draft are neither right nor wrong, so they do not count as tried.
  const std::size_t tried = std::min(drafts, accepted + 1);
  for (std::size_t i = 0; i < positions_.size(); ++i) note(positions_[i], i < tried ? 1.0 : 0.0, i < accepted ? 1.0 : 0.0);
  note(all_, static_cast<double>(tried), static_cast<double>(accepted));
  trusted_ = std::min(positions_.size(), trusted_ + accepted);
  end_cycle(accepted + 1);
}

std::size_t DraftLengths::explored(std::size_t room, std::size_t best) noexcept {
  exploring_ = false;
  if (room == 0) return 0;
  const std::uint64_t turn = chosen_++;
  if (!ledger_.may_draft(1)) return 0;
  if (best > 0) {
    probe_after_ = kProbe;
    next_probe_ = chosen_ + probe_after_;
    return std::min(best, trusted_);
  }
  if (turn < next_probe_) return 0;
  std::size_t probed = std::min({room, kProbed, trusted_});
  while (probed > 0 && !ledger_.can_lose(drafting_.at(probed))) --probed;
  if (probed == 0) return 0;
  exploring_ = true;
  probe_after_ = std::min(2 * probe_after_, kMostProbe);
  next_probe_ = chosen_ + probe_after_;
  return probed;
}

}  // namespace tessera::detail
