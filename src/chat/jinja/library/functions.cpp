// The functions that templates can call: those of jinja2's global functions that chat templates use, and two that transformers adds.
#include <array>

#include "chat/jinja/evaluator.hpp"
#include "core/error.hpp"

namespace tessera::jinja {
namespace {

constexpr std::int64_t kLongestRange = 100'000;  // as MAX_RANGE of jinja2's sandbox

Value range(Evaluator& evaluator, const Args& args) {
  if (args.positional.empty() || args.positional.size() > 3 || !args.keyword.empty()) {
    fail("range() takes one to three numbers");
  }
  std::array<std::int64_t, 3> bounds{0, 0, 1};  // start, stop, step
  constexpr std::int64_t kMost = std::int64_t{1} << 61;
  for (std::size_t i = 0; i < args.positional.size(); ++i) {
    const Value& value = args.positional[i];
    if (value.is(Kind::undefined)) fail_undefined(value);
    if (!value.is_whole()) fail(fmt::format("range() takes integers, not a {}", type_name(value)));
    if (value.whole() > kMost || value.whole() < -kMost) fail("a range beyond what fits", ErrorCode::over_budget);
    bounds[args.positional.size() == 1 ? 1 : i] = value.whole();
  }
  const auto [start, stop, step] = bounds;
  if (step == 0) fail("range() with a step of zero");
  const std::int64_t width = step > 0 ? stop - start : start - stop, stride = step > 0 ? step : -step;
  const std::int64_t size = width <= 0 ? 0 : (width - 1) / stride + 1;
  if (size > kLongestRange) {
    fail(fmt::format("a range of {} numbers; at most {} are allowed", size, kLongestRange), ErrorCode::over_budget);
  }
  return Value::object(Kind::range, std::make_shared<Range>(evaluator.budget(), start, step, size));
}

// Returns the members of a dict that is made by dict(), dict(pairs), dict(a=1) or dict(other, a=1).
Members dict_members(Evaluator& evaluator, std::string_view function, const Args& args) {
  if (args.positional.size() > 1) fail(fmt::format("{}() takes at most one argument without a name", function));
  Members members;
  if (!args.positional.empty()) {
    const Value& of = args.positional[0];
    if (of.is(Kind::dict)) {
      members = of.members();
    } else {
      for (const Value& pair : iterate(evaluator.budget(), of)) {
        Values two = iterate(evaluator.budget(), pair);
        if (two.size() != 2) fail(fmt::format("{}() of something that is no list of pairs", function));
        members.emplace_back(std::move(two[0]), std::move(two[1]));
      }
    }
  }
  for (const auto& [name, value] : args.keyword) members.emplace_back(evaluator.string(name), value);
  return members;
}

Value dict(Evaluator& evaluator, const Args& args) {
  return make_dict(evaluator.budget(), dict_members(evaluator, "dict", args));
}

Value make_namespace(Evaluator& evaluator, const Args& args) {
  const Value made = make_dict(evaluator.budget(), dict_members(evaluator, "namespace", args));
  std::vector<std::pair<std::string, Value>> attributes;
  for (const auto& [key, value] : made.members()) {
    if (key.is(Kind::string)) attributes.emplace_back(std::string(key.bytes()), value);
  }
  return evaluator.make_namespace(std::move(attributes));
}

Value raise_exception(Evaluator& evaluator, const Args& args) {
  const auto [message] = args.bind<1>("raise_exception", {"message"}, 1);
  fail(std::string(to_string(evaluator, message).bytes()));
}

constexpr std::array<std::string_view, 7> kDays{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths{"January", "February", "March",     "April",   "May",      "June",
                                                   "July",    "August",   "September", "October", "November", "December"};

int day_of_year(const LocalTime& t) {
  constexpr std::array<int, 12> before{0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
  const bool leap = (t.year % 4 == 0 && t.year % 100 != 0) || t.year % 400 == 0;
  return before[static_cast<std::size_t>(t.month - 1)] + t.day + (leap && t.month > 2);
}
// Returns the day of the week, where Sunday is 0 (Sakamoto's form of Zeller's rule).
int day_of_week(const LocalTime& t) {
  constexpr std::array<int, 12> shift{0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4};
  const int year = t.year - (t.month < 3);
  return (year + year / 4 - year / 100 + year / 400 + shift[static_cast<std::size_t>(t.month - 1)] + t.day) % 7;
}

// Returns the text for one directive of strftime (%d, %B, ...), in the C locale.
std::string time_field(char directive, const LocalTime& t) {
  const auto day = kDays[static_cast<std::size_t>(day_of_week(t))];
  const auto month = kMonths[static_cast<std::size_t>(t.month - 1)];
  const int hour12 = t.hour % 12 == 0 ? 12 : t.hour % 12;
  switch (directive) {
    case 'Y': return fmt::format("{}", t.year);
    case 'y': return fmt::format("{:02}", t.year % 100);
    case 'm': return fmt::format("{:02}", t.month);
    case 'd': return fmt::format("{:02}", t.day);
    case 'e': return fmt::format("{:2}", t.day);
    case 'H': return fmt::format("{:02}", t.hour);
    case 'I': return fmt::format("{:02}", hour12);
    case 'M': return fmt::format("{:02}", t.minute);
    case 'S': return fmt::format("{:02}", t.second);
    case 'f': return "000000";
    case 'p': return t.hour < 12 ? "AM" : "PM";
    case 'j': return fmt::format("{:03}", day_of_year(t));
    case 'w': return fmt::format("{}", day_of_week(t));
    case 'u': return fmt::format("{}", day_of_week(t) == 0 ? 7 : day_of_week(t));
    case 'A': return std::string(day);
    case 'a': return std::string(day.substr(0, 3));
    case 'B': return std::string(month);
    case 'b':
    case 'h': return std::string(month.substr(0, 3));
    case 'F': return fmt::format("{}-{:02}-{:02}", t.year, t.month, t.day);
    case 'T': return fmt::format("{:02}:{:02}:{:02}", t.hour, t.minute, t.second);
    case 'R': return fmt::format("{:02}:{:02}", t.hour, t.minute);
    case 'D':
    case 'x': return fmt::format("{:02}/{:02}/{:02}", t.month, t.day, t.year % 100);
    case 'X': return fmt::format("{:02}:{:02}:{:02}", t.hour, t.minute, t.second);
    case 'c':
      return fmt::format("{} {} {:2} {:02}:{:02}:{:02} {}", day.substr(0, 3), month.substr(0, 3), t.day, t.hour, t.minute,
                         t.second, t.year);
    case 'Z':
    case 'z': return "";  // the time has no zone
    case 'n': return "\n";
    case 't': return "\t";
    case '%': return "%";
    default: fail(fmt::format("strftime_now() does not know '%{}'", directive), ErrorCode::unsupported);
  }
}

Value strftime_now(Evaluator& evaluator, const Args& args) {
  const auto [format] = args.bind<1>("strftime_now", {"format"}, 1);
  if (!format.is(Kind::string)) fail("strftime_now() takes a string");
  if (!evaluator.now()) fail("the template asks for the time: give RenderOptions::now", ErrorCode::invalid_state);
  const LocalTime& t = *evaluator.now();
  if (t.month < 1 || t.month > 12 || t.day < 1 || t.day > 31 || t.year < 1 || t.year > 9999 || t.hour < 0 || t.hour > 23 ||
      t.minute < 0 || t.minute > 59 || t.second < 0 || t.second > 60) {
    fail("RenderOptions::now is no date");
  }
  Builder out(evaluator.budget());
  format.text().for_each([&](std::string_view piece, TextOrigin origin) {
    for (std::size_t at = 0; at < piece.size(); ++at) {
      if (piece[at] != '%' || at + 1 == piece.size()) {
        out.add(piece.substr(at, 1), origin);
        continue;
      }
      ++at;
      const bool bare = piece[at] == '-' && at + 1 < piece.size();  // "%-d": without a leading zero
      if (bare) ++at;
      std::string field = time_field(piece[at], t);
      if (bare) {
        while (field.size() > 1 && (field[0] == '0' || field[0] == ' ')) field.erase(0, 1);
      }
      out.add(field, origin);
    }
  });
  return out.finish();
}

struct Function : Callable {
  using Body = Value (*)(Evaluator&, const Args&);
  Function(Budget& budget, Body body_) : Callable(budget, sizeof(Function)), body(body_) {}
  Value call(Evaluator& evaluator, const Args& args) const override { return body(evaluator, args); }
  Body body;
};

template <const char* const& Name>
Value not_supported(Evaluator&, const Args&) {
  fail(fmt::format("the function {}() is not supported", Name), ErrorCode::unsupported);
}
const char* const kLipsum = "lipsum";
const char* const kCycler = "cycler";
const char* const kJoiner = "joiner";

}  // namespace

Value find_function(Evaluator& evaluator, std::string_view name) {
  constexpr std::pair<std::string_view, Function::Body> functions[] = {
      {"range", range},
      {"dict", dict},
      {"namespace", make_namespace},
      {"raise_exception", raise_exception},
      {"strftime_now", strftime_now},
      {"lipsum", not_supported<kLipsum>},
      {"cycler", not_supported<kCycler>},
      {"joiner", not_supported<kJoiner>},
  };
  for (const auto& [known, body] : functions) {
    if (known == name) return Value::object(Kind::callable, std::make_shared<Function>(evaluator.budget(), body));
  }
  return {};
}

}  // namespace tessera::jinja
