// Engine::embed(): cuts texts to the tokens that the model reads, and pools their rows into vectors.
#include <tessera/embedding.hpp>

#include <algorithm>

#include <tessera/engine.hpp>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "core/fp_state.hpp"
#include "core/token_error.hpp"
#include "engine/embed/pool.hpp"
#include "engine/embed/text_reader.hpp"
#include "engine/states.hpp"

namespace tessera {

using detail::guard;
using detail::make_error;
using detail::RowsOf;
using detail::TextReader;
using detail::TextTokens;

namespace {

// The options of a call, in which the model's values replace automatic ones.
struct EmbedPlan {
  Pooling pooling = Pooling::mean;
  std::size_t dimensions = 0;
  std::size_t most = 0;     // the most tokens that are read of a text (of a window of a long text), including the frame's tokens
  TextFrame frame;
  std::string prompt;
};

Result<std::string> prompt_of(const Settings& settings, const EmbedOptions& options) {
  if (options.prompt) return *options.prompt;
  if (options.role == TextRole::plain) return std::string();
  if (options.role != TextRole::query && options.role != TextRole::document) {
    return make_error(ErrorCode::invalid_argument, "a role of kind {}; choose plain, query or document", static_cast<int>(options.role));
  }
  TESSERA_TRY(const auto text, settings.string_or(options.role == TextRole::query ? Setting::query_prompt : Setting::document_prompt, ""));
  return std::string(text);
}

// Makes the plan of a call, and checks the call's options. `frame`: the tokens to put around each text; nullptr: the caller's tokens
// already include these tokens.
Result<EmbedPlan> plan_of(const Engine::State& state, const TextFrame* frame, const EmbedOptions& options) {
  const ModelSpec& spec = state.model.spec;
  EmbedPlan plan;
  plan.pooling = options.pooling == Pooling::automatic ? spec.pooling : options.pooling;
  if (options.pooling == Pooling::automatic && plan.pooling == Pooling::rank) plan.pooling = Pooling::cls;  // the ranking head's row
  if (options.pooling == Pooling::automatic && plan.pooling == Pooling::none) plan.pooling = Pooling::mean;
  if (plan.pooling < Pooling::none || plan.pooling > Pooling::last) {
    return make_error(ErrorCode::invalid_argument, "a pooling of kind {}; choose none, mean, cls or last",
                      static_cast<int>(options.pooling));
  }
  const std::uint32_t width = spec.embedding_width();
  if (options.dimensions > width) {
    return make_error(ErrorCode::invalid_argument, "{} dimensions; the model's vectors have {}", options.dimensions, width);
  }
  plan.dimensions = options.dimensions != 0 ? options.dimensions : width;
  if (frame != nullptr) plan.frame = *frame;
  plan.most = detail::most_tokens(state, options.most_tokens, frame != nullptr);
  const std::size_t around = plan.frame.front.size() + plan.frame.back.size();
  if (plan.most <= around) {
    return make_error(ErrorCode::invalid_argument, "at most {} tokens of a text are asked for; the tokenizer puts {} around each text: allow more", plan.most, around);
  }
  if (options.long_text < LongText::cut || options.long_text > LongText::windows) {
    return make_error(ErrorCode::invalid_argument, "long texts of kind {}; choose cut, refuse or windows", static_cast<int>(options.long_text));
  }
  if (options.long_text == LongText::windows && plan.pooling == Pooling::none) {
    return make_error(ErrorCode::invalid_argument, "windows have no vectors of tokens: choose a pooling, or cut");
  }
  if (options.long_text == LongText::windows && options.overlap >= plan.most - around) {
    return make_error(ErrorCode::invalid_argument, "windows overlap by {} tokens and have {}", options.overlap, plan.most - around);
  }
  TESSERA_TRY(plan.prompt, prompt_of(state.metadata, options));
  return plan;
}

RowsOf rows_of(Pooling pooling) noexcept {
  return pooling == Pooling::cls ? RowsOf::first : pooling == Pooling::last ? RowsOf::last : RowsOf::all;
}

// The windows of all texts. A window is a range of tokens that the model reads at once; a text that the model can read at once is one window.
class Windows {
 public:
  struct Window {
    std::size_t text = 0, first = 0, size = 0;  // tokens [first, first + size) of tokens()
    double weight = 1.0;                        // a text's vector is the sum over its windows: weight times the window's vector
  };

  Windows(const EmbedPlan& plan, const EmbedOptions& options) noexcept : plan_(plan), options_(options) {}

  // Adds the windows of a text. `tokens` has no frame. Returns whether some tokens were cut off.
  Result<bool> add(std::size_t text, std::span<const Token> tokens) {
    const std::size_t room = plan_.most - plan_.frame.front.size() - plan_.frame.back.size();
    if (tokens.size() <= room) {
      add_window(text, tokens, 1.0);
      return false;
    }
    if (options_.long_text == LongText::refuse) {
      return make_error(ErrorCode::invalid_argument, "text {} has {} tokens, and the model reads {}", text, tokens.size(), room);
    }
    if (options_.long_text == LongText::cut) {
      add_window(text, tokens.first(room), 1.0);
      return true;
    }
    const std::size_t begin = windows_.size(), step = room - options_.overlap;
    double all = 0.0;
    for (std::size_t first = 0; first == 0 || first + options_.overlap < tokens.size(); first += step) {
      const std::size_t size = std::min(room, tokens.size() - first);
      add_window(text, tokens.subspan(first, size), static_cast<double>(size));
      all += static_cast<double>(size);
    }
    for (std::size_t i = begin; i < windows_.size(); ++i) windows_[i].weight /= all;
    return false;
  }

  [[nodiscard]] const std::vector<Window>& windows() const noexcept { return windows_; }
  [[nodiscard]] std::span<const Token> tokens(const Window& window) const noexcept { return std::span(tokens_).subspan(window.first, window.size); }

 private:
  void add_window(std::size_t text, std::span<const Token> tokens, double weight) {
    const std::size_t first = tokens_.size();
    const TextFrame& frame = plan_.frame;
    tokens_.insert(tokens_.end(), frame.front.begin(), frame.front.end());
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    tokens_.insert(tokens_.end(), frame.back.begin(), frame.back.end());
    windows_.push_back({text, first, tokens_.size() - first, weight});
  }

  const EmbedPlan& plan_;
  const EmbedOptions& options_;
  std::vector<Token> tokens_;
  std::vector<Window> windows_;
};

// Pools the rows of windows into the vectors of texts.
class Pooled {
 public:
  Pooled(std::size_t texts, const EmbedPlan& plan, std::size_t width) : plan_(plan), sums_(texts * width), width_(width) {}

  void add(const Windows::Window& window, std::span<const float> rows) noexcept {
    detail::add_mean(rows, window.weight, std::span(sums_).subspan(window.text * width_, width_));
  }
  [[nodiscard]] std::vector<float> vectors() const {
    const std::size_t texts = sums_.size() / width_;
    std::vector<float> values;
    values.reserve(texts * plan_.dimensions);
    for (std::size_t text = 0; text < texts; ++text) {
      for (std::size_t i = 0; i < plan_.dimensions; ++i) values.push_back(static_cast<float>(sums_[text * width_ + i]));
    }
    return values;
  }

 private:
  const EmbedPlan& plan_;
  std::vector<double> sums_;  // [texts, width]
  std::size_t width_;
};

}  // namespace

// Makes the Embeddings of a call.
class detail::EmbeddingMaker {
 public:
  EmbeddingMaker(const Engine& engine, const std::shared_ptr<const Engine::State>& state, const EmbedOptions& options)
      : engine_(engine), state_(state), options_(options) {}

  // Calls tokens_of(i, prompt) to get each text's tokens, without the frame's tokens.
  template <class TokensOf>
  Result<Embeddings> make(std::size_t texts, const TextFrame* frame, const TokensOf& tokens_of) {
    TESSERA_TRY(const EmbedPlan plan, plan_of(*state_, frame, options_));
    Windows windows(plan, options_);
    made_.dimensions_ = plan.dimensions;
    for (std::size_t i = 0; i < texts; ++i) {
      TESSERA_TRY(const std::vector<Token> tokens, tokens_of(i, plan.prompt));
      if (tokens.empty() && plan.frame.front.empty() && plan.frame.back.empty()) {
        return make_error(ErrorCode::invalid_argument, "text {} has no tokens", i);
      }
      TESSERA_TRY(const bool was_cut, windows.add(i, tokens));
      made_.texts_.push_back({.first = i, .rows = 1, .tokens = 0, .was_cut = was_cut});
    }
    for (const Windows::Window& window : windows.windows()) made_.texts_[window.text].tokens += window.size;
    TESSERA_TRY_STATUS(plan.pooling == Pooling::none ? read_rows(windows, plan) : read_pooled(windows, plan));
    for (std::size_t i = 0; options_.normalises && i < made_.values_.size(); i += plan.dimensions) {
      detail::normalise(std::span(made_.values_).subspan(i, plan.dimensions));
    }
    return std::move(made_);
  }

 private:
  template <class Take>
  Status read(const Windows& windows, RowsOf rows, const Take& take) {
    std::vector<TextTokens> texts;
    texts.reserve(windows.windows().size());
    for (const Windows::Window& window : windows.windows()) texts.push_back({.tokens = windows.tokens(window)});
    const std::size_t all = made_.texts_.size();
    TextReader reader(engine_, state_, {.rows = rows, .width = state_->model.spec.embedding_width()}, options_.stop);
    return reader.read(texts, [&](std::size_t index, std::span<const float> values) -> Status {
      const Windows::Window& window = windows.windows()[index];
      take(window, values);
      const bool ends_text = index + 1 == texts.size() || windows.windows()[index + 1].text != window.text;
      if (!options_.progress || !ends_text || options_.progress(window.text + 1, all)) return {};
      return make_error(ErrorCode::cancelled, "the progress callback stopped after {} of {} texts", window.text + 1, all);
    });
  }

  Status read_pooled(const Windows& windows, const EmbedPlan& plan) {
    Pooled pooled(made_.texts_.size(), plan, state_->model.spec.embedding_width());
    TESSERA_TRY_STATUS(read(windows, rows_of(plan.pooling), [&](const Windows::Window& window, std::span<const float> rows) { pooled.add(window, rows); }));
    made_.values_ = pooled.vectors();
    return {};
  }

  Status read_rows(const Windows& windows, const EmbedPlan& plan) {
    const std::size_t width = state_->model.spec.embedding_width();
    std::size_t first = 0;
    return read(windows, RowsOf::all, [&](const Windows::Window& window, std::span<const float> rows) {
      made_.texts_[window.text].first = first;
      made_.texts_[window.text].rows = rows.size() / width;
      first += rows.size() / width;
      for (std::size_t row = 0; row < rows.size(); row += width) {
        made_.values_.insert(made_.values_.end(), rows.begin() + static_cast<std::ptrdiff_t>(row),
                             rows.begin() + static_cast<std::ptrdiff_t>(row + plan.dimensions));
      }
    });
  }

  const Engine& engine_;
  const std::shared_ptr<const Engine::State>& state_;
  const EmbedOptions& options_;
  Embeddings made_;
};

Result<Embeddings> Engine::embed(std::span<const std::string_view> texts, const EmbedOptions& options) const noexcept {
  return guard([&]() -> Result<Embeddings> {
    if (state_ == nullptr) return detail::empty_handle("Engine");
    const detail::FpState fp_state;
    return detail::EmbeddingMaker(*this, state_, options).make(texts.size(), &state_->tokenizer.frame(), [&](std::size_t i, const std::string& prompt) -> Result<std::vector<Token>> {
      if (prompt.empty()) return state_->tokenizer.encode(texts[i], {.bos = Bos::never, .special = options.special});
      return state_->tokenizer.encode(std::string(prompt).append(texts[i]), {.bos = Bos::never, .special = options.special});
    });
  }, ErrorCode::callback_failed);
}

Result<Embeddings> Engine::embed(std::span<const std::vector<Token>> tokens, const EmbedOptions& options) const noexcept {
  return guard([&]() -> Result<Embeddings> {
    if (state_ == nullptr) return detail::empty_handle("Engine");
    const detail::FpState fp_state;
    if (options.prompt || options.role != TextRole::plain) {
      return make_error(ErrorCode::invalid_argument, "a prompt stands in front of texts, not of tokens: put its tokens in front yourself");
    }
    return detail::EmbeddingMaker(*this, state_, options).make(tokens.size(), nullptr, [&](std::size_t i, const std::string&) -> Result<std::vector<Token>> {
      for (const Token token : tokens[i]) TESSERA_TRY_STATUS(detail::check_token(token, state_->model.spec.vocab_size));
      return tokens[i];
    });
  }, ErrorCode::callback_failed);
}

}  // namespace tessera
