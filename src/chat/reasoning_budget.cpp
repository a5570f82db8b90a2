#include <tessera/extend/chat/reasoning_budget.hpp>

#include <algorithm>
#include <utility>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "core/utf8.hpp"

namespace tessera {

using detail::guard;
using detail::make_error;

struct [[gnu::visibility("hidden")]] ReasoningBudget::Rules {
  struct Region {
    std::vector<std::string> open, close;
    bool at_start;
    std::vector<Token> end;  // the tokens that this stage makes the model write: ReasoningBudgetOptions::last_words, then the end marker
  };
  Tokenizer tokenizer;
  std::size_t tokens;
  std::vector<Region> regions;
};

namespace {

constexpr std::size_t kPatience = 4;  // number of tokens beyond the budget that the stage waits for, if a character is not complete

struct Found {
  std::size_t at = std::string::npos, size = 0;
};

Found find_first(std::string_view text, const std::vector<std::string>& markers, std::size_t from) {
  Found found;
  for (const std::string& marker : markers) {
    const std::size_t at = text.find(marker, from);
    if (at < found.at) found = {at, marker.size()};
  }
  return found;
}

std::size_t longest(const std::vector<std::string>& markers) {
  std::size_t size = 0;
  for (const std::string& marker : markers) size = std::max(size, marker.size());
  return size;
}

// Returns whether the text ends in the middle of a UTF-8 character.
bool ends_within_a_character(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto step = detail::utf8_step(text.substr(text.size() - back));
    if (step.kind == detail::Utf8Kind::incomplete && step.size == back) return true;
  }
  return false;
}

}  // namespace

ReasoningBudget::ReasoningBudget(std::shared_ptr<const Rules> rules) : rules_(std::move(rules)), states_(1) {}

Result<ReasoningBudget> ReasoningBudget::create(const Tokenizer& tokenizer, const OutputFormat& format,
                                                const ReasoningBudgetOptions& options) noexcept {
  return guard([&]() -> Result<ReasoningBudget> {
    if (tokenizer.vocab_size() == 0) return detail::no_tokenizer_error();
    auto rules = std::make_shared<Rules>(Rules{.tokenizer = tokenizer, .tokens = options.tokens, .regions = {}});
    for (const OutputRegion& region : format.regions) {
      if (region.kind != RegionKind::reasoning || region.open.empty() || region.close.empty()) continue;
      TESSERA_TRY(std::vector<Token> end, tokenizer.encode(options.last_words, {.bos = Bos::never}));
      TESSERA_TRY(const std::vector<Token> marker, tokenizer.encode(region.close[0], {.bos = Bos::never, .special = Special::parse}));
      end.insert(end.end(), marker.begin(), marker.end());
      rules->regions.push_back({.open = region.open, .close = region.close, .at_start = region.at_start, .end = std::move(end)});
    }
    if (rules->regions.empty()) {
      return make_error(ErrorCode::unsupported, "the output format {} has no reasoning to put an end to", format.name);
    }
    ReasoningBudget budget(std::move(rules));
    budget.states_.back().region = options.starts_in_reasoning ? 1 : 0;
    return budget;
  });
}

Status ReasoningBudget::check() const noexcept {
  if (rules_ == nullptr) return detail::empty_handle("ReasoningBudget");
  return {};
}

Hash128 ReasoningBudget::tokenizer() const noexcept { return rules_ == nullptr ? Hash128{} : rules_->tokenizer.fingerprint(); }

bool ReasoningBudget::is_over() const noexcept {
  const State& now = states_.back();
  if (now.region == 0) return false;
  if (now.written > 0) return now.written < rules_->regions[now.region - 1].end.size();
  if (now.tokens < rules_->tokens) return false;
  return now.tokens >= rules_->tokens + kPatience || !ends_within_a_character(text_);
}

Status ReasoningBudget::operator()(sampling::Candidates& candidates, const sampling::Context&) {
  TESSERA_TRY_STATUS(check());
  if (!is_over()) return {};
  const State& now = states_.back();
  const Token wanted = rules_->regions[now.region - 1].end[now.written];
  const auto tokens = candidates.tokens();
  if (std::find(tokens.begin(), tokens.end(), wanted) == tokens.end()) return {};
  candidates.remove_if([wanted](const sampling::Candidate& candidate) { return candidate.token != wanted; });
  return {};
}

Status ReasoningBudget::accept(Token token, float) {
  TESSERA_TRY_STATUS(check());
  State next = states_.back();
  if (is_over()) {
    const bool wrote = token == rules_->regions[next.region - 1].end[next.written];
    next.written = wrote ? next.written + 1 : 0;
  }
  if (next.region != 0) ++next.tokens;
  states_.push_back(next);
  text_ += rules_->tokenizer.is_control(token) ? rules_->tokenizer.text(token) : rules_->tokenizer.piece(token);
  states_.back().text = text_.size();
  scan();
  return {};
}

// Searches the text for complete markers, and enters or leaves a region of reasoning at each of them. Sets `scanned`, where the next search
// begins, so that a marker whose first bytes are the text's last bytes is still found.
void ReasoningBudget::scan() {
  State& now = states_.back();
  for (;;) {
    Found first;
    std::size_t opened = 0, size = 1;
    if (now.region != 0) {
      const auto& close = rules_->regions[now.region - 1].close;
      first = find_first(text_, close, now.scanned);
      size = longest(close);
    } else {
      for (std::size_t i = 0; i < rules_->regions.size(); ++i) {
        const Rules::Region& region = rules_->regions[i];
        size = std::max(size, longest(region.open));
        const Found found = find_first(text_, region.open, now.scanned);
        if (found.at >= first.at || (region.at_start && text_.find_first_not_of(" \t\r\n") < found.at)) continue;
        first = found;
        opened = i + 1;
      }
    }
    if (first.size == 0) {
      now.scanned = std::max(now.scanned, text_.size() - std::min(text_.size(), size - 1));
      return;
    }
    now.region = opened;
    now.written = 0;
    now.scanned = first.at + first.size;
  }
}

void ReasoningBudget::rollback(std::size_t n) noexcept {
  if (rules_ == nullptr) return;
  states_.resize(std::max<std::size_t>(1, states_.size() - std::min(n, states_.size())));
  text_.resize(states_.back().text);
}

}  // namespace tessera
