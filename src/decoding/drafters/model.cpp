// Drafts with a second, smaller model (the draft model). Its session always gets the same tokens as the target's session.
#include <algorithm>
#include <chrono>

#include <tessera/decoding/drafters.hpp>

#include "core/error.hpp"
#include "core/seconds.hpp"
#include "decoding/drafters/check_engine.hpp"
#include "decoding/drafters/sampled_drafts.hpp"

namespace tessera {
namespace {

Status check_vocabularies(const Engine& draft, const Engine& target) {
  const Tokenizer &ours = draft.tokenizer(), &its = target.tokenizer();
  const bool has_none = ours.vocab_size() == 0 && its.vocab_size() == 0;
  if (has_none ? draft.spec().vocab_size == target.spec().vocab_size : ours.fingerprint() == its.fingerprint()) return {};
  return detail::make_error(ErrorCode::invalid_argument,
                            "the draft model has another vocabulary ({} tokens, the model {}): its tokens mean other texts. "
                            "Choose a draft model of the same family",
                            draft.spec().vocab_size, target.spec().vocab_size);
}

class ModelDrafter final : public Drafter {
 public:
  ModelDrafter(Engine engine, SessionOptions options) : engine_(std::move(engine)), options_(std::move(options)) {}

  Result<std::unique_ptr<Drafter>> start(const Engine& target) const override {
    TESSERA_TRY_STATUS(detail::check_engine(target));
    TESSERA_TRY_STATUS(check_vocabularies(engine_, target));
    auto made = std::make_unique<ModelDrafter>(engine_, options_);
    TESSERA_TRY(made->session_, engine_.session(options_));
    made->vocab_ = target.spec().vocab_size;
    return std::unique_ptr<Drafter>(std::move(made));
  }

  Result<std::size_t> propose(const DraftContext& context, std::span<Token> out) override {
    const std::span<const Token> history = context.history;
    if (history.size() > session_->context()) return std::size_t{0};
    const std::size_t known = keep_common(history);
    TESSERA_TRY(Logits logits, session_->append(history.subspan(known), {.stop = context.stop}));
    const std::size_t n = std::min(out.size(), session_->context() - history.size() + 1);
    detail::SampledDrafts drafts(context, vocab_, room_);
    for (std::size_t i = 0; i < n; ++i) {
      TESSERA_TRY(out[i], drafts.draw(logits[logits.rows() - 1], session_->tokens()));
      if (i + 1 == n || static_cast<std::uint32_t>(out[i]) >= engine_.spec().vocab_size) return i + 1;
      const auto begin = std::chrono::steady_clock::now();
      TESSERA_TRY(logits, session_->append(out.subspan(i, 1), {.stop = context.stop}));
      seconds_ = detail::seconds_since(begin);
    }
    return n;
  }

  // Returns the expected seconds for n drafts, without the time in which the first call reads the prompt.
  [[nodiscard]] double cost(std::size_t n) const noexcept override { return static_cast<double>(n) * seconds_; }
  void observe(const DraftOutcome& outcome) override { (void)keep_common(outcome.history); }

 private:
  // Truncates the draft model's session to the tokens that it shares with the sequence. Returns the number of these tokens.
  std::size_t keep_common(std::span<const Token> history) {
    const std::span<const Token> own = session_->tokens();
    const auto ends = std::ranges::mismatch(own, history);
    const auto same = static_cast<std::size_t>(ends.in1 - own.begin());
    (void)session_->truncate(same);  // cannot fail, because no other call uses this session
    return session_->tokens().size();
  }

  Engine engine_;
  SessionOptions options_;
  std::optional<Session> session_;  // empty until start()
  std::size_t vocab_ = 0;
  double seconds_ = 0.0;            // measured seconds for one draft; 0: not measured yet
  std::vector<float> room_;
};

}  // namespace

Result<std::shared_ptr<const Drafter>> model_drafter(const Engine& draft, const SessionOptions& session) noexcept {
  return detail::guard([&]() -> Result<std::shared_ptr<const Drafter>> {
    TESSERA_TRY_STATUS(detail::check_engine(draft));
    return std::shared_ptr<const Drafter>(std::make_shared<ModelDrafter>(draft, session));
  });
}

}  // namespace tessera
