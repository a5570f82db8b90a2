#include "store/passages.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "units.hpp"

namespace rag {

namespace {

// Collects units into passages.
class Packer {
 public:
  Packer(const CountTokens& count, const CutOptions& options) : count_(count), options_(options) {}

  void add(const Unit& unit) {
    const std::size_t tokens = count_(unit.text);
    if (tokens > options_.most_tokens) {
      for (const Unit& part : split(unit)) add_fitting(part, std::min(count_(part.text), options_.most_tokens));
    } else {
      add_fitting(unit, tokens);
    }
  }

  std::vector<Passage> finish() {
    end();
    return std::move(passages_);
  }

 private:
  struct Counted {
    Unit unit;
    std::size_t tokens = 0;
  };

  void add_fitting(const Unit& unit, std::size_t tokens) {
    const bool is_other_section = !held_.empty() && unit.heading != held_.back().unit.heading;
    const bool is_short = tokens_ < options_.most_tokens / 4;
    if (is_other_section && !is_short) {
      end();
      held_.clear();
      tokens_ = 0;
    } else if (tokens_ + tokens > options_.most_tokens) {
      end();
      keep_overlap(unit, tokens);
    }
    held_.push_back({unit, tokens});
    tokens_ += tokens;
    is_new_ = true;
  }

  // Keeps only the last units, as far as they belong to the section of `next` and fit into the overlap.
  void keep_overlap(const Unit& next, std::size_t tokens) {
    std::size_t kept = 0, first = held_.size();
    while (first > 0) {
      const Counted& before = held_[first - 1];
      const bool fits = kept + before.tokens <= options_.overlap && kept + before.tokens + tokens <= options_.most_tokens;
      if (!fits || before.unit.heading != next.heading) break;
      kept += before.tokens;
      --first;
    }
    held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(first));
    tokens_ = kept;
    is_new_ = false;
  }

  void end() {
    if (held_.empty() || !is_new_) return;
    Passage passage{.heading = held_.front().unit.heading, .text = {}, .first_line = held_.front().unit.first_line, .last_line = held_.back().unit.last_line};
    const std::string* heading = &held_.front().unit.heading;
    for (const Counted& each : held_) {
      if (!passage.text.empty()) passage.text += each.unit.joined ? "\n" : "\n\n";
      if (each.unit.heading != *heading) {  // a short section before it
        heading = &each.unit.heading;
        passage.text += last_heading(*heading) + "\n";
      }
      passage.text += each.unit.text;
    }
    passages_.push_back(std::move(passage));
    is_new_ = false;
  }

  static std::string last_heading(const std::string& path) {
    const std::size_t at = path.rfind(kHeadingSeparator);
    return at == path.npos ? path : path.substr(at + kHeadingSeparator.size());
  }

  // Cuts a unit that is too long: between lines, else between sentences, else between words.
  std::vector<Unit> split(const Unit& unit) const {
    static constexpr std::array<std::string_view, 3> kEnds = {"\n", ". ", " "};
    for (const std::string_view end : kEnds) {
      if (unit.text.find(end) == std::string::npos) continue;
      std::vector<Unit> parts;
      std::size_t line = unit.first_line;
      for (std::size_t at = 0; at < unit.text.size();) {
        // Takes as many pieces of the unit as fit into one passage. The search adds one more piece, then two, then four, and so on, so that
        // it counts tokens only a few times, and never those of a text that is much too long.
        std::size_t stop = piece_end(unit.text, at, end);
        for (std::size_t step = 1; stop < unit.text.size();) {
          std::size_t further = stop;
          for (std::size_t i = 0; i < step && further < unit.text.size(); ++i) further = piece_end(unit.text, further, end);
          if (count_(std::string_view(unit.text).substr(at, further - at)) <= options_.most_tokens) stop = further, step *= 2;
          else if (step == 1) break;
          else step = 1;
        }
        Unit part{unit.heading, unit.text.substr(at, stop - at), line, line, at != 0 || unit.joined};
        part.last_line = line + static_cast<std::size_t>(std::ranges::count(part.text, '\n')) - (part.text.ends_with('\n') ? 1 : 0);
        line = part.last_line + (part.text.ends_with('\n') ? 1 : 0);
        while (!part.text.empty() && (part.text.back() == '\n' || part.text.back() == ' ')) part.text.pop_back();
        at = stop;
        if (part.text.empty()) continue;
        if (end != kEnds.back() && count_(part.text) > options_.most_tokens) {
          for (Unit& smaller : split(part)) parts.push_back(std::move(smaller));
        } else {
          parts.push_back(std::move(part));
        }
      }
      if (parts.size() > 1 || end == kEnds.back()) return parts;
    }
    return {unit};  // one very long word: the embedder cuts it
  }

  static std::size_t piece_end(std::string_view text, std::size_t at, std::string_view end) {
    const std::size_t found = text.find(end, at);
    return found == text.npos ? text.size() : found + end.size();
  }

  const CountTokens& count_;
  CutOptions options_;
  std::vector<Counted> held_;  // units of the passage that is being made
  std::size_t tokens_ = 0;     // of held_
  bool is_new_ = false;        // held_ has more than the overlap
  std::vector<Passage> passages_;
};

}  // namespace

std::vector<Passage> cut_text(std::string_view name, std::string_view text, const CountTokens& count, const CutOptions& options) {
  Packer packer(count, options);
  for (const Unit& unit : is_markdown(name) ? markdown_units(name, text) : plain_units(name, text)) packer.add(unit);
  return packer.finish();
}

}  // namespace rag
