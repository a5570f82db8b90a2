// Drafts with the target's own MTP head, which reads the target's hidden states and has keys and values beside the target's.
#include <tessera/decoding/drafters.hpp>

#include <chrono>

#include "core/error.hpp"
#include "core/seconds.hpp"
#include "decoding/drafters/check_engine.hpp"
#include "decoding/drafters/sampled_drafts.hpp"
#include "engine/run/mtp.hpp"

namespace tessera {
namespace {

class MtpDrafter final : public Drafter {
 public:
  Result<std::unique_ptr<Drafter>> start(const Engine& target) const override {
    TESSERA_TRY_STATUS(detail::check_engine(target));
    const ModelSpec& spec = target.spec();
    if (!spec.has_mtp()) {
      return spec.n_left_out == 0
                 ? detail::make_error(ErrorCode::invalid_argument, "the model's file has no MTP head; choose another drafter")
                 : detail::make_error(ErrorCode::invalid_argument,
                                      "the model's MTP head is not loaded; load the engine with EngineOptions::mtp = MtpHeads::load");
    }
    return std::unique_ptr<Drafter>(std::make_unique<MtpDrafter>());
  }

  Result<std::size_t> propose(const DraftContext& context, std::span<Token> out) override {
    Session::State& session = *context.session;
    // With more than one pending token the hidden states between them are not known before this step.
    if (session.kv.length() == 0 || session.pending().size() != 1) return std::size_t{0};
    const auto begin = std::chrono::steady_clock::now();
    logits_.resize(session.vocab());
    hidden_.resize(session.shared->model.spec.d_model);
    history_.reserve(context.history.size() + out.size());
    history_.assign(context.history.begin(), context.history.end());
    detail::SampledDrafts drafts(context, session.vocab(), room_);
    auto guesses = detail::MtpGuesses::begin(session, out.size(), hidden_);
    if (!guesses && guesses.error().code() == ErrorCode::cache_full) return std::size_t{0};  // others need the room
    if (!guesses) return std::move(guesses).error();
    for (Token& draft : out) {
      TESSERA_TRY_STATUS(guesses->next(history_.back(), logits_, context.stop));
      TESSERA_TRY(draft, drafts.draw(logits_, history_));
      history_.push_back(draft);
    }
    seconds_ = detail::seconds_since(begin) / static_cast<double>(out.size());
    return out.size();
  }

  [[nodiscard]] double cost(std::size_t n) const noexcept override { return static_cast<double>(n) * seconds_; }

 private:
  double seconds_ = 0.0;  // seconds of a draft; 0: not known
  std::vector<float> logits_, hidden_, room_;
  std::vector<Token> history_;  // the sequence, and the drafts so far
};

}  // namespace

Result<std::shared_ptr<const Drafter>> mtp_drafter() noexcept {
  return detail::guard([&]() -> Result<std::shared_ptr<const Drafter>> {
    return std::shared_ptr<const Drafter>(std::make_shared<MtpDrafter>());
  });
}

}  // namespace tessera
