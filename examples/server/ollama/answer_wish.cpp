#include "answer_wish.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "fields/closed_schema.hpp"
#include "fields/duration.hpp"
#include "names.hpp"

namespace server::ollama {

using tessera::GrammarSource;
using tessera::Json;

namespace {

// Calls `f` for each name in a list separated by blanks.
template <class F>
void each_name(std::string_view names, F&& f) {
  while (!names.empty()) {
    const std::size_t blank = std::min(names.find(' '), names.size());
    if (blank > 0) f(names.substr(0, blank));
    names.remove_prefix(std::min(blank + 1, names.size()));
  }
}

// Returns the object `options`, with the options that the client put into the body itself.
Json all_options(Fields& fields) {
  const Json* given = fields.object("options");
  Json options = given != nullptr ? *given : Json::object();
  const auto add = [&](std::string_view name) {
    const Json* beside = fields.any(name);
    if (beside != nullptr && options.find(name) == nullptr) options.set(std::string(name), *beside);
  };
  each_name(kDrawingFields, add);
  each_name("stop num_predict num_ctx", add);
  return options;
}

void read_options(Fields& options, const Api& api, AnswerFields& answer, Notes& notes) {
  read_drawing(options, api.job.model, answer);
  // -1 means without end, -2 up to the end of the context. Both become 0, which means as many tokens as there is room for.
  const std::int64_t most = options.integer("num_predict", -2, 1 << 30).value_or(0);
  answer.max_tokens = most > 0 ? static_cast<std::size_t>(most) : 0;
  answer.stops = read_stops(options, "stop", api.limits);
  answer.context = read_context(options, api.job.model, notes);
}

std::optional<AnswerForm> read_format(Fields& fields) {
  const Json* format = fields.any("format");
  if (format == nullptr) return std::nullopt;
  if (format->string() != nullptr && format->string()->empty()) return std::nullopt;
  if (format->string() != nullptr && *format->string() == "json") return AnswerForm{GrammarSource::Kind::json_schema, R"({"type": "object"})", "format"};
  if (format->members() == nullptr) fields.refuse("format", "This must be \"json\" or a JSON Schema.");
  return AnswerForm{GrammarSource::Kind::json_schema, closed_schema(*format).dump(), "format"};
}

Thinking read_think(Fields& fields, const ServedModel& model) {
  Thinking thinking;
  const Json* given = fields.any("think");
  if (given == nullptr) return thinking;
  if (given->boolean() != nullptr) {
    thinking.on = *given->boolean();
  } else {
    if (given->string() == nullptr) fields.refuse("think", "This must be true, false, \"low\", \"medium\" or \"high\".");
    thinking.effort = fields.choice("think", {"low", "medium", "high", "max"}).value_or("");
    thinking.on = true;
  }
  if (*thinking.on && !model.reasons()) fields.refuse("think", fmt::format("\"{}\" does not support thinking: leave think out, or set it to false.", listed_name(model.id())));
  return thinking;
}

}  // namespace

std::optional<double> keep_alive_of(Fields& fields) {
  const Json* given = fields.any("keep_alive");
  if (given == nullptr) return std::nullopt;
  std::optional<double> seconds;
  if (given->string() != nullptr) seconds = duration_of(*given->string());
  if (given->number() != nullptr) seconds = *given->number();
  if (given->integer() != nullptr) seconds = static_cast<double>(*given->integer());
  if (!seconds) fields.refuse("keep_alive", "This must be a duration such as \"5m\", or seconds as a number.");
  return seconds;
}

bool read_keep_alive(Fields& fields, const Api& api, Notes& notes) {
  const std::optional<double> seconds = keep_alive_of(fields);
  if (!seconds) return false;
  // A duration below 0 asks to keep the model for ever. The server does this anyway, so the field needs no note.
  if (api.stays && *seconds >= 0.0) notes.ignore("keep_alive", "keep_alive", "the model stays loaded as long as the server runs.");
  return *seconds == 0.0;
}

std::size_t read_context(Fields& options, const ServedModel& model, Notes& notes) {
  const auto tokens = static_cast<std::size_t>(options.integer("num_ctx", 0, std::int64_t{1} << 40).value_or(0));
  if (tokens > model.context()) {
    notes.warn(fmt::format("num_ctx {} is more than this server's context of {} tokens, which applies (see --ctx).", tokens, model.context()));
  }
  return tokens < model.context() ? tokens : 0;
}

AnswerWish read_answer_wish(Fields& fields, const Api& api, const Call& call) {
  Notes& notes = call.notes;
  AnswerWish wish{.name = call.caller.answering(read_name(fields, api))};
  const Json given = all_options(fields);
  Fields options(given, "options");
  read_options(options, api, wish.drawing, notes);
  wish.drawing.shows_logprobs = fields.boolean("logprobs").value_or(false);
  wish.drawing.logprobs = static_cast<std::uint32_t>(fields.integer("top_logprobs", 0, api.limits.logprobs).value_or(0));
  if (wish.drawing.logprobs > 0 && !wish.drawing.shows_logprobs) notes.ignore("top_logprobs", "top_logprobs", "logprobs is not true.");
  wish.form = read_format(fields);
  read_guided(fields, wish.form);
  wish.thinking = read_think(fields, api.job.model);
  wish.cuts_prompt = fields.boolean("truncate").value_or(true);
  wish.unloads = read_keep_alive(fields, api, notes);
  wish.streams = fields.boolean("stream").value_or(true);
  return wish;
}

void set_thinking(ChatFields& chat, const Thinking& thinking) {
  if (!thinking.on) return;
  if (!*thinking.on) return set_effort(chat, "none");
  chat.wish.request.arguments.emplace_back("enable_thinking", true);
  if (!thinking.effort.empty()) set_effort(chat, thinking.effort);
}

}  // namespace server::ollama
