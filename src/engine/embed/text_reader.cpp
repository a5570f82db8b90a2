#include "engine/embed/text_reader.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "engine/run/run.hpp"
#include "engine/session/make_session.hpp"
#include "engine/states.hpp"

namespace tessera::detail {

std::size_t most_tokens(const Engine::State& state, std::size_t asked, bool as_model) {
  std::size_t most = state.plan.context;
  if (const auto own = state.metadata.unsigned_integer(Setting::text_tokens); as_model && own && *own != 0) most = std::min<std::size_t>(most, *own);
  return asked != 0 ? std::min(most, asked) : most;
}

TextReader::TextReader(const Engine& engine, const std::shared_ptr<const Engine::State>& state, Wish wish, std::stop_token stop) noexcept
    : engine_(engine), state_(state), wish_(wish), stop_(std::move(stop)) {}
TextReader::~TextReader() = default;

// Reads the texts in groups, each group in one step: as many texts as the limits of Engine::State::texts allow. Every text has pages of
// its own, even if it does not fill a page; so texts are counted in whole pages.
Status TextReader::read(std::span<const TextTokens> texts, const Take& take) {
  const std::uint64_t page = state_->options.kv.page_tokens;
  const auto pages_of = [&](const TextTokens& text) { return (text.tokens.size() + page - 1) / page; };
  for (std::size_t first = 0; first < texts.size();) {
    std::size_t end = first;
    std::uint64_t rows = 0, pages = 0;
    do {
      rows += texts[end].tokens.size();
      pages += pages_of(texts[end]);
      ++end;
    } while (end < texts.size() && rows + texts[end].tokens.size() <= state_->texts.rows && pages + pages_of(texts[end]) <= state_->texts.pages);
    TESSERA_TRY_STATUS(read_together(texts.subspan(first, end - first), first, take));
    first = end;
  }
  return {};
}

Status TextReader::read_together(std::span<const TextTokens> texts, std::size_t first, const Take& take) {
  std::size_t rows = 0;
  for (const TextTokens& text : texts) rows += rows_of(text);
  values_.resize(rows * wish_.width);
  while (sessions_.size() < texts.size()) {
    TESSERA_TRY(auto session, make_session(engine_, state_, {.kv = {.kind = KvKind::paged, .prefix = PrefixReuse::off}}));
    sessions_.push_back(std::move(session));
  }
  Run run(*state_, all_layers(*state_, stop_));
  float* to = values_.data();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::size_t n = texts[i].tokens.size();
    const std::size_t part = run.begin_part(*sessions_[i], stop_);
    for (std::size_t at = 0; at < n; ++at) {
      const bool is_wanted = wish_.rows == RowsOf::all || at == (wish_.rows == RowsOf::first ? 0 : n - 1);
      run.add({.token = texts[i].tokens[at],
               .output = is_wanted ? wish_.output : RowOutput::nothing,
               .segment = texts[i].second != 0 && at >= texts[i].second ? 1u : 0u,
               .to = is_wanted ? to : nullptr});
      if (is_wanted) to += wish_.width;
    }
    TESSERA_TRY_STATUS(run.check(part));
    TESSERA_TRY_STATUS(run.prepare(part));
  }
  run.compute();
  const float* from = values_.data();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    TESSERA_TRY_STATUS(run.outcome(i));
    const std::size_t size = rows_of(texts[i]) * wish_.width;
    TESSERA_TRY_STATUS(take(first + i, {from, size}));
    from += size;
  }
  return {};
}

}  // namespace tessera::detail
