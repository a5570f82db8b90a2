#include "names.hpp"

#include <chrono>

#include <fmt/format.h>

namespace server::ollama {

namespace {

constexpr std::string_view kLatest = ":latest";

std::string time_text(std::int64_t unix_seconds, std::int64_t microseconds) {
  using namespace std::chrono;
  const sys_seconds time{seconds(unix_seconds)};
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", int{date.year()}, unsigned{date.month()}, unsigned{date.day()},
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(), microseconds);
}

}  // namespace

std::string_view without_latest(std::string_view name) {
  return name.ends_with(kLatest) ? name.substr(0, name.size() - kLatest.size()) : name;
}

std::string listed_name(const std::string& id) {
  // A colon in front of a slash belongs to a host: "host:80/name".
  const std::size_t colon = id.rfind(':'), slash = id.rfind('/');
  const bool has_tag = colon != std::string::npos && (slash == std::string::npos || colon > slash);
  return has_tag ? id : id + std::string(kLatest);
}

std::string asked_name(Fields& fields) {
  const auto model = fields.text("model"), name = fields.text("name");
  return model && !model->empty() ? *model : name.value_or("");
}

std::string read_name(Fields& fields, const Api& api) {
  std::string asked = asked_name(fields);
  const std::string& id = api.job.model.id();
  return without_latest(asked) == without_latest(id) ? std::move(asked) : listed_name(id);
}

std::string time_text(std::int64_t unix_seconds) { return time_text(unix_seconds, 0); }

std::string time_now() {
  using namespace std::chrono;
  const auto now = duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
  return time_text(now / 1'000'000, now % 1'000'000);
}

}  // namespace server::ollama
