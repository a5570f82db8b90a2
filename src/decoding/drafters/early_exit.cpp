// Drafts with the target's first layers and its head, over the target's own keys and values. The drafts' keys and values lie behind
// the session's length, where the step that computes the drafts writes the same values again.
#include <tessera/decoding/drafters.hpp>

#include <algorithm>
#include <chrono>

#include "core/error.hpp"
#include "core/seconds.hpp"
#include "decoding/drafters/check_engine.hpp"
#include "decoding/drafters/sampled_drafts.hpp"
#include "engine/run/streams.hpp"

namespace tessera {
namespace {

using detail::Run;

class EarlyExitDrafter final : public Drafter {
 public:
  explicit EarlyExitDrafter(std::uint32_t layers) noexcept : layers_(layers) {}

  Result<std::unique_ptr<Drafter>> start(const Engine& target) const override {
    TESSERA_TRY_STATUS(detail::check_engine(target));
    const std::uint32_t all = target.spec().n_layers();
    if (layers_ == 0 || layers_ >= all) {
      return detail::make_error(ErrorCode::invalid_argument, "an early exit after layer {} of {}; choose 1 to {}", layers_, all,
                                all - 1);
    }
    if (std::ranges::any_of(target.spec().layers, &LayerSpec::is_recurrent)) {
      return detail::make_error(ErrorCode::unsupported,
                                "{} has recurrent layers: drafts of its first layers would be written over their state. Choose another "
                                "drafter",
                                target.spec().architecture);
    }
    return std::unique_ptr<Drafter>(std::make_unique<EarlyExitDrafter>(layers_));
  }

  Result<std::size_t> propose(const DraftContext& context, std::span<Token> out) override {
    Session::State& session = *context.session;
    logits_.resize(session.vocab());
    history_.reserve(context.history.size() + out.size());
    history_.assign(context.history.begin(), context.history.end());
    detail::SampledDrafts drafts(context, session.vocab(), room_);
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < out.size(); ++i) {
      TESSERA_TRY_STATUS(compute(session, i == 0 ? nullptr : &out[i - 1], i, context.stop));
      TESSERA_TRY(out[i], drafts.draw(logits_, history_));
      history_.push_back(out[i]);
    }
    seconds_ = detail::seconds_since(begin) / static_cast<double>(out.size());
    return out.size();
  }

  [[nodiscard]] double cost(std::size_t n) const noexcept override { return static_cast<double>(n) * seconds_; }

 private:
  // Computes the logits after the session's pending tokens (`draft` is nullptr), or after the i-th draft behind them.
  Status compute(Session::State& session, const Token* draft, std::size_t i, const std::stop_token& stop) {
    const std::uint64_t pending = session.pending().size();
    Run run(*session.shared, {.first_layer = 0,
                              .last_layer = layers_,
                              .head = detail::Head::anywhere,
                              .keep = detail::Keep::nothing,
                              .stop = stop});
    const std::size_t part = draft == nullptr ? run.begin_part(session) : run.begin_drafts(session, pending + i - 1);
    if (draft != nullptr) run.add({.token = *draft});
    detail::RunRow& last = run.rows(part).back();
    last.output = detail::RowOutput::logits;
    last.to = logits_.data();
    TESSERA_TRY_STATUS(detail::make_ready(run, part));
    run.compute();
    TESSERA_TRY_STATUS(run.outcome(part));
    run.leave(part);
    return {};
  }

  std::uint32_t layers_;
  double seconds_ = 0.0;        // seconds of a draft; 0: not known
  std::vector<float> logits_, room_;
  std::vector<Token> history_;  // the sequence, and the drafts so far
};

}  // namespace

Result<std::shared_ptr<const Drafter>> early_exit_drafter(std::uint32_t layers) noexcept {
  return detail::guard([&]() -> Result<std::shared_ptr<const Drafter>> {
    return std::shared_ptr<const Drafter>(std::make_shared<EarlyExitDrafter>(layers));
  });
}

}  // namespace tessera
