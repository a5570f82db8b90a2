#include "text/pipeline/splitter.hpp"

#include <algorithm>
#include <utility>

#include "core/guard.hpp"
#include "text/models/byte_alphabet.hpp"

namespace tessera::detail {
namespace {

using SplitStepKind = SplitStep::Kind;

// Cuts a text into stretches, and calls part(begin, end, matches) for each. A stretch is as many characters as possible that all match
// (`matches` is true), or that all do not match. Exception: if `single`, each matching character is a stretch by itself.
template <class Matches, class Part>
Status each_stretch(std::string_view text, const Matches& matches, bool single, const Part& part) {
  std::size_t begin = 0;
  bool before = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    const bool now = matches(next_code_point(text, at));
    if (here > begin && (now != before || (now && single))) {
      TESSERA_TRY_STATUS(part(begin, here, before));
      begin = here;
    }
    before = now;
  }
  return begin < text.size() ? part(begin, text.size(), before) : Status();
}

}  // namespace

std::uint64_t Splitter::memory_bytes() const noexcept {
  std::uint64_t total = steps_.capacity() * sizeof(SplitStep);
  for (const SplitStep& step : steps_) total += step.mark.capacity() + step.pattern.memory_bytes();
  return total;
}

bool Splitter::take_last_bytes() noexcept {
  if (steps_.empty() || steps_.back().kind != SplitStepKind::bytes) return false;
  steps_.pop_back();
  return true;
}

// For one step of a splitter: gets the stretches of a text by add(), in order, each with whether it matches the step's pattern. Drops,
// separates or joins the stretches as the step's behavior says, and hands each resulting piece on to the next step.
class Splitter::Runner::Parts {
 public:
  Parts(Runner& runner, std::size_t step, std::string_view text, std::size_t origin) noexcept
      : runner_(runner), step_(step), text_(text), origin_(origin) {}

  Status add(std::size_t begin, std::size_t end, bool matches) {
    const SplitStep& step = runner_.splitter_->steps_[step_];
    const bool match = matches != step.invert;
    bool joins = false;
    switch (step.behavior) {
      case SplitBehavior::removed:
        if (match) return {};
        break;
      case SplitBehavior::isolated: break;
      case SplitBehavior::contiguous: joins = match == last_; break;
      case SplitBehavior::merged_with_previous: joins = match && !last_; break;
      case SplitBehavior::merged_with_next: joins = !match && last_; break;
    }
    if (!joins || !held_) TESSERA_TRY_STATUS(flush());
    if (!held_) begin_ = begin;
    end_ = end;
    held_ = true;
    last_ = match;
    return {};
  }

  // Hands on the piece that is held back. Call it at the end, too.
  Status flush() {
    if (!std::exchange(held_, false) || begin_ == end_) return {};
    return runner_.run_from(step_ + 1, text_.substr(begin_, end_ - begin_), origin_ - std::min(origin_, begin_));
  }

 private:
  Runner& runner_;
  std::size_t step_;
  std::string_view text_;
  std::size_t origin_;
  bool held_ = false, last_ = false;  // last_: whether the stretch that was added last is a match
  std::size_t begin_ = 0, end_ = 0;   // the piece that is held back, because the next stretch may join it
};

Result<Splitter::Runner> Splitter::Runner::create(const Splitter& splitter) {
  Runner made;
  made.splitter_ = &splitter;
  made.finders_.resize(splitter.steps_.size());
  made.texts_.resize(splitter.steps_.size());
  for (std::size_t i = 0; i < made.finders_.size(); ++i) {
    if (splitter.steps_[i].kind != SplitStepKind::pattern) continue;
    TESSERA_TRY(made.finders_[i], Regex::Finder::create(splitter.steps_[i].pattern));
  }
  return made;
}

Status Splitter::Runner::run(std::string_view text, std::size_t origin, const Word& word) {
  word_ = &word;
  return run_from(0, text, origin);
}

Status Splitter::Runner::by_pattern(std::size_t index, std::string_view text, Parts& parts) {
  Regex::Finder& finder = finders_[index];
  finder.begin(text);
  std::size_t done = 0;
  for (;;) {
    TESSERA_TRY(const Regex::Match match, finder.next());
    if (match.begin == text.npos) break;
    if (match.begin > done) TESSERA_TRY_STATUS(parts.add(done, match.begin, false));
    TESSERA_TRY_STATUS(parts.add(match.begin, match.end, true));
    done = match.end;
  }
  return done < text.size() ? parts.add(done, text.size(), false) : Status();
}

Status Splitter::Runner::metaspace(std::size_t index, std::string_view text, std::size_t origin) {
  const SplitStep& step = splitter_->steps_[index];
  std::string& marked = texts_[index];
  marked.clear();
  const bool wants = step.scheme == PrependScheme::always || (step.scheme == PrependScheme::first && origin > 0);
  if (wants && !text.starts_with(' ') && !text.starts_with(step.mark)) marked.append(step.mark);
  const std::size_t marked_front = marked.size();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    marked.append(text.substr(at, space - at));
    if (space < text.size()) marked.append(step.mark);
    at = space + 1;
  }
  std::size_t front = origin == 0 ? 0 : marked_front + origin;
  for (std::size_t i = 0; i < origin; ++i) front += text[i] == ' ' ? step.mark.size() - 1 : 0;
  if (!step.splits) return run_from(index + 1, marked, front);
  const std::string_view whole = marked;
  std::size_t begin = 0;
  for (std::size_t at = whole.find(step.mark, 0); at != whole.npos; at = whole.find(step.mark, at + step.mark.size())) {
    if (at > begin) TESSERA_TRY_STATUS(run_from(index + 1, whole.substr(begin, at - begin), front - std::min(front, begin)));
    begin = at;
  }
  return begin < whole.size() ? run_from(index + 1, whole.substr(begin), front - std::min(front, begin)) : Status();
}

Status Splitter::Runner::run_from(std::size_t index, std::string_view text, std::size_t origin) {
  if (text.empty()) return {};
  origin = std::min(origin, text.size());
  if (index == splitter_->steps_.size()) return (*word_)(text);
  const SplitStep& step = splitter_->steps_[index];
  Parts parts(*this, index, text, origin);
  const auto add = [&](std::size_t begin, std::size_t end, bool matches) { return parts.add(begin, end, matches); };
  // Each matching character is a match by itself; the behavior may join them again.
  switch (step.kind) {
    case SplitStepKind::pattern: TESSERA_TRY_STATUS(by_pattern(index, text, parts)); break;
    case SplitStepKind::white_space: TESSERA_TRY_STATUS(each_stretch(text, is_white_space, true, add)); break;
    case SplitStepKind::numeric: TESSERA_TRY_STATUS(each_stretch(text, is_numeric, true, add)); break;
    case SplitStepKind::punctuation: TESSERA_TRY_STATUS(each_stretch(text, is_punctuation, true, add)); break;
    case SplitStepKind::delimiter:
      TESSERA_TRY_STATUS(each_stretch(text, [&](CodePoint c) { return c == step.delimiter; }, true, add));
      break;
    case SplitStepKind::words:
      TESSERA_TRY_STATUS(each_stretch(text, is_word_character, false, [&](std::size_t begin, std::size_t end, bool word) -> Status {
        if (word) return parts.add(begin, end, false);
        return each_stretch(text.substr(begin, end - begin), is_white_space, false,
                            [&](std::size_t from, std::size_t to, bool space) { return parts.add(begin + from, begin + to, space); });
      }));
      break;
    case SplitStepKind::fixed_length: {
      std::size_t begin = 0, count = 0;
      for (std::size_t at = 0; at < text.size();) {
        (void)next_code_point(text, at);
        if (++count < step.length && at < text.size()) continue;
        TESSERA_TRY_STATUS(parts.add(begin, at, false));
        begin = at;
        count = 0;
      }
      break;
    }
    case SplitStepKind::metaspace: return metaspace(index, text, origin);
    case SplitStepKind::prefix_space:
      if (text.starts_with(' ')) return run_from(index + 1, text, origin);
      texts_[index].assign(1, ' ').append(text);
      return run_from(index + 1, texts_[index], origin == 0 ? 0 : origin + 1);
    case SplitStepKind::bytes: {
      const std::size_t origin_bytes = origin;
      texts_[index].clear();
      spell_bytes(text.substr(0, origin), texts_[index]);
      origin = texts_[index].size();
      spell_bytes(text.substr(origin_bytes), texts_[index]);
      return run_from(index + 1, texts_[index], origin);
    }
  }
  return parts.flush();
}

}  // namespace tessera::detail
