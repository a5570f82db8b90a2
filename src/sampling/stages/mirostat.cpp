#include "sampling/stages/mirostat.hpp"

#include "sampling/range.hpp"
#include "sampling/surprise.hpp"

namespace tessera::sampling {
namespace {

constexpr double kLn2 = 0x1.62e42fefa39efp-1;

}  // namespace

Status Mirostat::check() const noexcept {
  TESSERA_TRY_STATUS(detail::require(options_.tau > 0.0f && detail::finite(2.0f * options_.tau), "mirostat tau",
                                     options_.tau, "a number above 0"));
  return detail::require(options_.eta > 0.0f && detail::finite(options_.eta), "mirostat eta", options_.eta,
                         "a number above 0");
}

void Mirostat::operator()(Candidates& candidates, const Context&) const noexcept {
  if (!candidates.softmax()) return;
  const detail::Surprise surprise(candidates);
  const double limit = static_cast<double>(mu_) * kLn2;
  if (surprise(candidates.best().logit) > limit) return candidates.keep_best(1);
  candidates.remove_if([&](const Candidate& candidate) { return surprise(candidate.logit) > limit; });
}

Status Mirostat::accept(Token, float probability) {
  if (before_.capacity() == 0) before_.reserve(1024);
  before_.push_back(mu_);
  if (probability > 0.0f) {
    const double surprise = -math::log(static_cast<double>(probability)) / kLn2;
    mu_ += static_cast<float>(static_cast<double>(options_.eta) * (static_cast<double>(options_.tau) - surprise));
  }
  return {};
}

void Mirostat::rollback(std::size_t n) noexcept {
  if (n == 0 || n > before_.size()) return;
  mu_ = before_[before_.size() - n];
  before_.resize(before_.size() - n);
}

}  // namespace tessera::sampling
