#include <tessera/decoding/rejection_sampling.hpp>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace tessera {
namespace {

using detail::guard;
using detail::make_error;

Result<double> sum_of(std::span<const float> weights, const char* whose) {
  double sum = 0.0;
  for (const float weight : weights) {
    if (!(weight >= 0.0f) || !std::isfinite(weight)) {
      return make_error(ErrorCode::numeric, "the {}'s distribution has a probability of {}", whose, weight);
    }
    sum += static_cast<double>(weight);
  }
  if (sum <= 0.0) return make_error(ErrorCode::numeric, "the {}'s distribution has no token that can be drawn", whose);
  return sum;
}

struct Sums {
  double target, draft;
};

Result<Sums> sums_of(std::span<const float> target, std::span<const float> draft) {
  if (target.size() != draft.size()) {
    return make_error(ErrorCode::invalid_argument, "probabilities of {} tokens and of {}: the vocabularies must be one", target.size(),
                      draft.size());
  }
  TESSERA_TRY(const double of_target, sum_of(target, "target"));
  TESSERA_TRY(const double of_draft, sum_of(draft, "draft"));
  return Sums{of_target, of_draft};
}

}  // namespace

Result<RejectionDraw> draw_by_rejection(std::span<const float> target, std::span<const float> draft, Token drafted, double accept,
                                        double redraw) noexcept {
  return guard([&]() -> Result<RejectionDraw> {
    TESSERA_TRY(const Sums sums, sums_of(target, draft));
    const auto p = [&](std::size_t i) { return static_cast<double>(target[i]) / sums.target; };
    const auto q = [&](std::size_t i) { return static_cast<double>(draft[i]) / sums.draft; };
    if (drafted < 0 || static_cast<std::size_t>(drafted) >= draft.size() || draft[static_cast<std::size_t>(drafted)] == 0.0f) {
      return make_error(ErrorCode::invalid_argument, "token {} cannot have been drawn from the draft's distribution", drafted);
    }
    const auto at = static_cast<std::size_t>(drafted);
    if (accept * q(at) < p(at)) return RejectionDraw{.token = drafted, .accepted = true};
    double residual = 0.0;
    for (std::size_t i = 0; i < target.size(); ++i) residual += std::max(p(i) - q(i), 0.0);
    double left = redraw * residual;
    Token last = -1;
    for (std::size_t i = 0; i < target.size(); ++i) {
      const double more = p(i) - q(i);
      if (more <= 0.0) continue;
      last = static_cast<Token>(i);
      if (left < more) break;
      left -= more;
    }
    // The two are equal but for rounding: then the draft is as good as any.
    return last < 0 ? RejectionDraw{.token = drafted, .accepted = true} : RejectionDraw{.token = last, .accepted = false};
  });
}

Result<double> rejection_acceptance(std::span<const float> target, std::span<const float> draft) noexcept {
  return guard([&]() -> Result<double> {
    TESSERA_TRY(const Sums sums, sums_of(target, draft));
    double both = 0.0;
    for (std::size_t i = 0; i < target.size(); ++i) {
      both += std::min(static_cast<double>(target[i]) / sums.target, static_cast<double>(draft[i]) / sums.draft);
    }
    return both;
  });
}

}  // namespace tessera
