#include "answers/stream_progress.hpp"

#include "json_object.hpp"

namespace server {

tessera::Json to_json(const PromptProgress& progress) {
  return Object()
      .set("total", static_cast<std::int64_t>(progress.total))
      .set("cache", static_cast<std::int64_t>(progress.cached))
      .set("processed", static_cast<std::int64_t>(progress.computed))
      .set("time_ms", static_cast<std::int64_t>(progress.seconds * 1000.0));
}

std::string ProgressComments::next(const PromptProgress& progress) {
  if (progress.computed >= progress.total || progress.seconds < due_) return {};
  due_ = progress.seconds + kEvery;
  return ": prompt_progress " + to_json(progress).dump() + "\n\n";
}

}  // namespace server
