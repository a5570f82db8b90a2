// Rejection sampling of drafts (Leviathan, Kalman, Matias 2023, algorithm 1; Chen et al. 2023), for comparison, and for hosts
// that draft from a distribution and want its acceptance. The library's own generations do not use it: they draw what they
// draw without drafts (docs/speculation.md). Here the tokens are others than without drafts; what stays is their distribution.
#pragma once

#include <span>

#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>

namespace tessera {

struct RejectionDraw {
  Token token = -1;
  bool accepted = false;  // it is the draft; else the drafts behind it are void
};

// The target's token where `drafted` was drawn from `draft`. Both: what each model draws with, behind temperature and the
// like  [vocab], counted as parts of their sums. `accept` and `redraw`: independent uniform numbers in [0, 1). The draft is
// kept with chance min(1, target / draft), else the token is drawn from what the target has more than the draft has. So it
// is distributed as the target says. Errors: invalid_argument (sizes, a draft that `draft` cannot give), numeric (what is
// negative, not finite, or all 0).
[[nodiscard]] Result<RejectionDraw> draw_by_rejection(std::span<const float> target, std::span<const float> draft, Token drafted,
                                                      double accept, double redraw) noexcept;

// The chance that a draft is kept: the sum of min(target, draft).
[[nodiscard]] Result<double> rejection_acceptance(std::span<const float> target, std::span<const float> draft) noexcept;

}  // namespace tessera
