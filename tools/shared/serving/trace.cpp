#include "serving/trace.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <optional>
#include <random>
#include <unordered_set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tessera::tool {
namespace {

Error bad_line(const std::filesystem::path& path, std::size_t line, std::string message) {
  return {ErrorCode::corrupt_file, std::move(message), fmt::format("{}, line {}", path.string(), line)};
}

template <class T>
std::optional<T> number(std::string_view text) {
  while (!text.empty() && (text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Returns a time like "2023-11-16 18:15:46.6805900" in seconds since an arbitrary day. All days have 24 hours.
std::optional<double> seconds_of(std::string_view stamp) {
  if (stamp.size() < 19 || stamp[4] != '-' || stamp[7] != '-' || stamp[13] != ':' || stamp[16] != ':') return std::nullopt;
  const auto year = number<int>(stamp.substr(0, 4)), month = number<int>(stamp.substr(5, 2)),
             day = number<int>(stamp.substr(8, 2)), hour = number<int>(stamp.substr(11, 2)),
             minute = number<int>(stamp.substr(14, 2));
  const auto second = number<double>(stamp.substr(17));
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  // Days from a civil date: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
  const int y = *year - (*month <= 2 ? 1 : 0), era = y / 400, of_era = y - era * 400;
  const int of_year = (153 * (*month + (*month > 2 ? -3 : 9)) + 2) / 5 + *day - 1;
  const long days = long{era} * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year;
  return static_cast<double>(days) * 86400.0 + *hour * 3600.0 + *minute * 60.0 + *second;
}

constexpr std::uint32_t kMostTokens = 1u << 24;

Result<Trace> read_csv(const std::filesystem::path& path, std::ifstream& in) {
  Trace trace;
  std::string line;
  std::getline(in, line);  // the names of the columns
  for (std::size_t n = 2; std::getline(in, line); ++n) {
    if (line.empty() || line == "\r") continue;
    const std::size_t first = line.find(','), second = line.find(',', first == line.npos ? first : first + 1);
    if (second == line.npos) return bad_line(path, n, "expected TIMESTAMP,ContextTokens,GeneratedTokens");
    const auto arrival = seconds_of(std::string_view(line).substr(0, first));
    const auto prompt = number<std::uint32_t>(std::string_view(line).substr(first + 1, second - first - 1));
    const auto output = number<std::uint32_t>(std::string_view(line).substr(second + 1));
    if (!arrival || !prompt || !output || *prompt > kMostTokens || *output > kMostTokens) {
      return bad_line(path, n, "expected a time as 2023-11-16 18:15:46.68, and two numbers of tokens");
    }
    trace.requests.push_back({.arrival = *arrival, .prompt = std::max(*prompt, 1u), .output = std::max(*output, 1u), .blocks = {}});
  }
  return trace;
}

Result<Trace> read_json_lines(const std::filesystem::path& path, std::ifstream& in) {
  Trace trace;
  std::string line;
  for (std::size_t n = 1; std::getline(in, line); ++n) {
    if (line.empty()) continue;
    const auto object = nlohmann::json::parse(line, nullptr, false);
    const auto unsigned_of = [&](const char* name) -> std::optional<std::uint64_t> {
      const auto at = object.is_object() ? object.find(name) : object.end();
      if (at == object.end() || !at->is_number_unsigned()) return std::nullopt;
      return at->get<std::uint64_t>();
    };
    const auto stamp = unsigned_of("timestamp"), prompt = unsigned_of("input_length"), output = unsigned_of("output_length");
    if (!stamp || !prompt || !output || *prompt > kMostTokens || *output > kMostTokens) {
      return bad_line(path, n, "expected an object with timestamp (ms), input_length and output_length");
    }
    TraceRequest request{.arrival = static_cast<double>(*stamp) / 1000.0,
                         .prompt = std::max(static_cast<std::uint32_t>(*prompt), 1u),
                         .output = std::max(static_cast<std::uint32_t>(*output), 1u),
                         .blocks = {}};
    if (const auto blocks = object.find("hash_ids"); blocks != object.end()) {
      if (!blocks->is_array()) return bad_line(path, n, "hash_ids is not a list");
      for (const auto& block : *blocks) {
        if (!block.is_number_unsigned()) return bad_line(path, n, "hash_ids holds something that is no number");
        request.blocks.push_back(block.get<std::uint64_t>());
      }
    }
    trace.requests.push_back(std::move(request));
  }
  return trace;
}

}  // namespace

Result<Trace> read_trace(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) return Error(ErrorCode::not_found, "cannot open the trace", path.string());
  auto trace = in.peek() == '{' ? read_json_lines(path, in) : read_csv(path, in);
  if (!trace) return trace;
  if (trace->requests.empty()) return Error(ErrorCode::corrupt_file, "the trace has no requests", path.string());
  trace->name = path.filename().string();
  std::ranges::stable_sort(trace->requests, {}, &TraceRequest::arrival);
  const double first = trace->requests.front().arrival;
  for (TraceRequest& request : trace->requests) request.arrival -= first;
  return trace;
}

Trace make_trace(const MadeUpTrace& how) {
  Trace trace{.name = fmt::format("made up, {} a second", how.rate), .requests = {}};
  std::mt19937_64 random(how.seed);
  // Written out, because the distributions of standard libraries differ.
  const auto exponential = [&random](double mean) {
    const double uniform = (static_cast<double>(random() >> 11) + 0.5) * 0x1.0p-53;
    return -mean * std::log(uniform);
  };
  const auto tokens = [&](double mean) {
    return static_cast<std::uint32_t>(std::clamp(std::round(exponential(mean)), 1.0, static_cast<double>(kMostTokens)));
  };
  double now = 0.0;
  trace.requests.reserve(how.requests);
  for (std::uint64_t i = 0; i < how.requests; ++i) {
    trace.requests.push_back({.arrival = now, .prompt = tokens(how.prompt), .output = tokens(how.output), .blocks = {}});
    now += exponential(1.0 / how.rate);
  }
  return trace;
}

void scale(Trace& trace, double lengths, double speed, std::uint64_t most) {
  if (most != 0 && most < trace.requests.size()) trace.requests.resize(most);
  const auto shorter = [lengths](std::uint32_t tokens) {
    return std::max(1u, static_cast<std::uint32_t>(std::lround(tokens / lengths)));
  };
  trace.block_tokens = shorter(trace.block_tokens);
  for (TraceRequest& request : trace.requests) {
    request.arrival /= speed;
    request.prompt = shorter(request.prompt);
    request.output = shorter(request.output);
  }
}

double ideal_prefix_hit(const Trace& trace) {
  std::unordered_set<std::uint64_t> known;
  std::uint64_t tokens = 0, saved = 0;
  for (const TraceRequest& request : trace.requests) {
    tokens += request.prompt;
    bool prefix = true;
    for (std::size_t i = 0; i < request.blocks.size(); ++i) {
      prefix = known.contains(request.blocks[i]) && prefix;
      const std::uint64_t begin = i * trace.block_tokens;
      if (prefix && begin < request.prompt) saved += std::min<std::uint64_t>(trace.block_tokens, request.prompt - begin);
    }
    known.insert(request.blocks.begin(), request.blocks.end());
  }
  return tokens == 0 ? 0.0 : static_cast<double>(saved) / static_cast<double>(tokens);
}

}  // namespace tessera::tool
