#include "engine/run/draw.hpp"

#include <algorithm>
#include <functional>

#include "core/error.hpp"
#include "engine/run/log_probs.hpp"

namespace tessera::detail {

void draw_from(Draw& draw, std::span<const float> logits, std::span<const Token> history, std::uint64_t position,
               std::span<const Token> suppressed) noexcept {
  draw.status = guard([&]() -> Status {
    draw.piece = {};
    TESSERA_TRY(draw.piece.token, draw.sampler->sample(logits, history, position, suppressed));
    return draw.logprobs == 0 ? Status() : add_log_probs(logits, draw.logprobs, draw.piece);
  });
}

Status HostDraws::begin(Memory& memory, Executor& executor, std::size_t rows, std::size_t vocab, std::span<const Token> suppressed) {
  suppressed_ = suppressed;
  executor_ = &executor;
  vocab_ = vocab;
  left_ = rows;
  single_ = rows == 1;
  items_.clear();
  slots_ = std::min(rows, std::clamp<std::size_t>(executor.concurrency(), 1, 64));
  items_.reserve(slots_);
  return logits_.ensure(memory, slots_, vocab);
}

std::span<float> HostDraws::destination() noexcept { return logits_.values().subspan(items_.size() * vocab_, vocab_); }

void HostDraws::add(Draw& draw, std::span<const Token> history, std::uint64_t position) noexcept {
  items_.push_back({&draw, history, position, items_.size()});
  --left_;
  if (!single_ && (left_ == 0 || items_.size() == slots_)) draw_all();
}

void HostDraws::finish() noexcept {
  draw_items(0, items_.size());
  items_.clear();
}

void HostDraws::draw_items(std::size_t first, std::size_t last) noexcept {
  for (std::size_t i = first; i < last; ++i) {
    const Item& item = items_[i];
    draw_from(*item.draw, logits_.values().subspan(item.slot * vocab_, vocab_), item.history, item.position, suppressed_);
  }
}

// Draws from all collected rows in parallel. Rows that share a sampler are drawn by one task, one after another, because only one thread
// at a time may use a sampler.
void HostDraws::draw_all() noexcept {
  std::ranges::sort(items_, [](const Item& a, const Item& b) {
    return a.draw->sampler != b.draw->sampler ? std::less<>()(a.draw->sampler, b.draw->sampler) : a.slot < b.slot;
  });
  struct Tasks {
    HostDraws* draws;
    std::size_t first[65] = {};  // index of each task's first item, then the number of items; slots_ is at most 64
    std::size_t n = 0;
  } tasks{.draws = this};
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (i == 0 || items_[i].draw->sampler != items_[i - 1].draw->sampler) tasks.first[tasks.n++] = i;
  }
  tasks.first[tasks.n] = items_.size();
  executor_->parallel_for(tasks.n, [](void* context, std::size_t i) {
    const Tasks& of = *static_cast<const Tasks*>(context);
    of.draws->draw_items(of.first[i], of.first[i + 1]);
  }, &tasks);
  items_.clear();
}

}  // namespace tessera::detail
