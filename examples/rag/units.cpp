#include "units.hpp"

#include <array>

namespace rag {

namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\f");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\f") - first + 1);
}

// Goes through the lines of a text.
class LineWalk {
 public:
  explicit LineWalk(std::string_view text) : rest_(text) {}

  bool next(std::string_view& line) {
    if (rest_.empty()) return false;
    const std::size_t end = rest_.find('\n');
    line = rest_.substr(0, end);
    rest_ = end == rest_.npos ? std::string_view{} : rest_.substr(end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++number_;
    return true;
  }
  [[nodiscard]] std::size_t number() const { return number_; }

 private:
  std::string_view rest_;
  std::size_t number_ = 0;
};

// Gathers lines into units.
class Gatherer {
 public:
  void set_heading(std::string heading) {
    end();
    heading_ = std::move(heading);
  }
  void add(std::string_view line, std::size_t number) {
    if (text_.empty()) first_ = number;
    else text_ += '\n';
    text_ += line;
    last_ = number;
  }
  // Ends the present unit. `joined`: the next unit follows without an empty line.
  void end(bool joined = false) {
    if (!text_.empty()) units_.push_back({heading_, text_, first_, last_, joined_});
    text_.clear();
    joined_ = joined;
  }
  std::vector<Unit> finish() {
    end();
    return std::move(units_);
  }

 private:
  std::string heading_, text_;
  std::size_t first_ = 0, last_ = 0;
  bool joined_ = false;
  std::vector<Unit> units_;
};

// Returns the level of a heading, 1 to 6; 0 if the line is no heading.
std::size_t heading_level(std::string_view line) {
  const std::size_t level = line.find_first_not_of('#');
  return level != line.npos && level >= 1 && level <= 6 && line[level] == ' ' ? level : 0;
}

// Keeps the headings above the present line.
class HeadingPath {
 public:
  void set(std::size_t level, std::string_view text) {
    levels_[level - 1] = text;
    for (std::size_t i = level; i < levels_.size(); ++i) levels_[i].clear();
  }
  [[nodiscard]] std::string text(std::string_view name) const {
    std::string path;
    for (const std::string& level : levels_) {
      if (level.empty()) continue;
      if (!path.empty()) path += kHeadingSeparator;
      path += level;
    }
    return path.empty() ? std::string(name) : path;
  }

 private:
  std::array<std::string, 6> levels_;
};

}  // namespace

bool is_markdown(std::string_view name) noexcept { return name.ends_with(".md") || name.ends_with(".markdown") || name.ends_with(".MD"); }

std::vector<Unit> markdown_units(std::string_view name, std::string_view text) {
  Gatherer gatherer;
  HeadingPath headings;
  gatherer.set_heading(std::string(name));
  LineWalk lines(text);
  std::string_view line, fence;
  bool in_front_matter = false;
  while (lines.next(line)) {
    const std::string_view bare = trimmed(line);
    if (lines.number() == 1 && bare == "---") in_front_matter = true;
    else if (in_front_matter) in_front_matter = bare != "---";
    else if (!fence.empty()) {
      gatherer.add(line, lines.number());
      if (bare.starts_with(fence) && trimmed(bare.substr(fence.size())).empty()) fence = {}, gatherer.end();
    } else if (bare.starts_with("```") || bare.starts_with("~~~")) {
      gatherer.end(true);
      fence = bare.substr(0, 3);
      gatherer.add(line, lines.number());
    } else if (bare.empty()) {
      gatherer.end();
    } else if (const std::size_t level = heading_level(line); level != 0) {
      std::string_view heading = trimmed(line.substr(level));
      while (heading.ends_with('#')) heading.remove_suffix(1);
      headings.set(level, trimmed(heading));
      gatherer.set_heading(headings.text(name));
    } else if (bare.starts_with("<!--") && bare.ends_with("-->")) {
      continue;
    } else if (bare.starts_with('|')) {  // a row of a table
      gatherer.end(true);
      gatherer.add(line, lines.number());
      gatherer.end(true);
    } else if (bare.starts_with("- ") || bare.starts_with("* ")) {  // an item of a list
      gatherer.end(true);
      gatherer.add(line, lines.number());
    } else {
      gatherer.add(line, lines.number());
    }
  }
  return gatherer.finish();
}

std::vector<Unit> plain_units(std::string_view name, std::string_view text) {
  Gatherer gatherer;
  gatherer.set_heading(std::string(name));
  LineWalk lines(text);
  for (std::string_view line; lines.next(line);) {
    if (trimmed(line).empty()) gatherer.end();
    else gatherer.add(line, lines.number());
  }
  return gatherer.finish();
}

}  // namespace rag
