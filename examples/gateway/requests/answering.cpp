#include "requests/answering.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api_error.hpp"
#include "requests/request_body.hpp"

namespace gateway {

using server::ApiError;
using server::HttpResponse;
using tessera::Json;

namespace {

constexpr const char* kEventStream = "text/event-stream; charset=utf-8";
constexpr const char* kIdle = ": the answer is being computed\n\n";

const char* name_of(UpstreamError::Kind kind) {
  switch (kind) {
    case UpstreamError::Kind::unreachable: return "unreachable";
    case UpstreamError::Kind::late: return "late";
    case UpstreamError::Kind::broken: return "broken";
    case UpstreamError::Kind::cancelled: return "cancelled";
  }
  return "";
}

}  // namespace

unsigned Answering::run(Question question, bool cacheable, bool storable) {
  std::string never = question.never_cached;
  if (never.empty() && (parts_.cache == nullptr || !parts_.embed)) never = "no cache";
  if (never.empty() && !storable) never = "no-store";
  if (never.empty() && std::ranges::any_of(parts_.never_cached, [&](const Pattern& pattern) { return pattern.is_in(question.text).value_or(true); })) never = "pattern";
  if (never.empty() && vector(question).empty()) never = "no vector";
  if (!never.empty()) {
    parts_.figures.count_lookup("bypass", never);
    cache_note_ = "bypass; reason=" + never;
    return answer_by_models(question);
  }
  const CacheKey key = key_of(tenant_, question.context);
  if (cacheable) {
    const SemanticCache::Lookup found = parts_.cache->find(key, vector(question));
    if (found.hit) {
      parts_.figures.count_lookup("hit");
      cache_note_ = fmt::format("hit; similarity={:.4f}", found.similarity);
      const unsigned status = send_answer(question, found.hit->answer);
      if (parts_.quality != nullptr) {
        parts_.quality->consider(question, {.source = "cache", .text = found.hit->answer.text, .authorization = authorization_,
                                            .similarity = found.similarity, .entry = found.hit->id});
      }
      return status;
    }
    cache_note_ = fmt::format("miss; similarity={:.4f}", found.similarity);
  } else {
    cache_note_ = "refresh";
  }
  std::string name = tenant_ + '\n' + std::string(key.context.begin(), key.context.end()) + question.text;
  Flights::Joined joined = cacheable ? parts_.flights.join(name, [&] { return stop_.stop_requested(); }, [&] { put_away(question); }) : Flights::Joined{};
  if (joined.answer) {
    parts_.figures.count_lookup("shared");
    cache_note_ = "shared";
    return send_answer(question, *joined.answer);
  }
  take_up(question);
  parts_.figures.count_lookup(cacheable ? "miss" : "refresh");
  store_ = [&](const Answer& answer) {
    if (answer.is_plain) parts_.cache->put(key, question.text, vector(question), answer);
    if (joined.lead) joined.lead->land(answer.is_plain ? std::optional(answer) : std::nullopt);
  };
  unsigned status = 0;
  try {
    status = answer_by_models(question);
  } catch (...) {
    store_ = {};
    if (joined.lead && !stop_.stop_requested()) joined.lead->land(std::nullopt);  // the others need not wait for a second failure
    throw;
  }
  store_ = {};  // store_ refers to this function's objects
  if (joined.lead) joined.lead->land(std::nullopt);  // does nothing if an answer was stored
  return status;
}

unsigned Answering::answer_by_models(const Question& question) {
  std::optional<Question> shortened;
  if (parts_.compressor != nullptr) {
    shortened = question;
    const Compressor::Saved saved = parts_.compressor->shorten(shortened->api, shortened->body);
    if (saved.before > saved.after) {
      parts_.figures.count_compressed(saved);
      compressed_note_ = fmt::format("{}->{}", saved.before, saved.after);
    }
  }
  const Question& asked = shortened ? *shortened : question;
  Decision decision{.route = Route::large, .why = "one tier"};
  if (parts_.small != nullptr) {
    decision = parts_.router.route(question, [&]() -> std::span<const float> { return vector(question); });
  }
  parts_.figures.count_route(to_string(decision.route), decision.why);
  std::optional<unsigned> status;
  if (decision.route == Route::adaptive) status = ask_adaptively(asked);
  if (decision.route == Route::small) status = question.streams ? ask_streaming(asked, *parts_.small, false) : ask_whole(asked, *parts_.small, false);
  if (!status) status = question.streams ? ask_streaming(asked, parts_.large, true) : ask_whole(asked, parts_.large, true);
  return *status;
}

std::optional<unsigned> Answering::ask_streaming(const Question& question, const Tier& tier, bool last) {
  EventReader events(question.api);
  bool begun = false;
  const auto pass = [&](std::string_view piece) {
    events.add(piece, question.wants_usage, [&](std::string event) {
      if (!std::exchange(begun, true)) {
        tier_note_ += (tier_note_.empty() ? "" : ",") + tier.name();
        reply_->begin_stream(HttpResponse{.status = 200, .body = {}, .type = kEventStream, .headers = headers()}, kIdle);
      }
      reply_->write(std::move(event));
    });
  };
  try {
    const UpstreamAnswer answer = tier.ask("POST", path_of(question.api), stream_body(question, tier.model()).dump(), authorization_, stop_, pass);
    if (answer.status != 200 || !begun) {
      parts_.figures.count_failure(tier.name(), fmt::format("status {}", answer.status));
      if (!last) return parts_.figures.count_escalation("failed"), std::nullopt;
      return send_failure(answer);
    }
  } catch (const UpstreamError& error) {
    parts_.figures.count_failure(tier.name(), name_of(error.kind));
    const bool is_gone = error.kind == UpstreamError::Kind::cancelled;
    if (!begun && !last && !is_gone) return parts_.figures.count_escalation("failed"), std::nullopt;
    if (!begun) fail(tier, error);
    reply_->write("data: " + server::to_json(ApiError(502, error.what()), server::ApiKind::openai).dump() + "\n\n");
    reply_->end_stream();
    return is_gone ? 499 : 502;
  }
  took(question, tier, events.answer());
  reply_->end_stream();
  return 200;
}

std::optional<unsigned> Answering::ask_whole(const Question& question, const Tier& tier, bool last) {
  try {
    UpstreamAnswer answer = tier.ask("POST", path_of(question.api), whole_body(question, tier.model()).dump(), authorization_, stop_);
    const auto object = Json::parse(answer.body, {.numbers_as_written = true});
    const auto read = object ? read_answer(question.api, *object) : std::nullopt;
    if (answer.status != 200 || !read) {
      parts_.figures.count_failure(tier.name(), answer.status == 200 ? std::string("no answer in JSON") : fmt::format("status {}", answer.status));
      if (!last) return parts_.figures.count_escalation("failed"), std::nullopt;
      if (answer.status == 200) throw ApiError(502, "The server behind the gateway sent an answer that is not JSON with choices.");
      return send_failure(answer);
    }
    tier_note_ += (tier_note_.empty() ? "" : ",") + tier.name();
    took(question, tier, *read);
    reply_->send(HttpResponse{.status = 200, .body = std::move(answer.body), .headers = headers()});
    return 200;
  } catch (const UpstreamError& error) {
    parts_.figures.count_failure(tier.name(), name_of(error.kind));
    if (!last && error.kind != UpstreamError::Kind::cancelled) return parts_.figures.count_escalation("failed"), std::nullopt;
    fail(tier, error);
  }
}

std::optional<unsigned> Answering::ask_adaptively(const Question& question) {
  const Tier& small = *parts_.small;
  Json body = whole_body(question, small.model());
  ask_for_logprobs(question.api, body);
  std::optional<Json> object;
  std::optional<Answer> answer;
  try {
    const UpstreamAnswer whole = small.ask("POST", path_of(question.api), body.dump(), authorization_, stop_);
    if (whole.status == 200) {
      auto parsed = Json::parse(whole.body, {.numbers_as_written = true});
      if (parsed) object = *std::move(parsed);
    }
    if (object) answer = read_answer(question.api, *object);
    if (!answer) parts_.figures.count_failure(small.name(), whole.status == 200 ? std::string("no answer in JSON") : fmt::format("status {}", whole.status));
  } catch (const UpstreamError& error) {
    parts_.figures.count_failure(small.name(), name_of(error.kind));
    if (error.kind == UpstreamError::Kind::cancelled) fail(small, error);
  }
  if (!answer) return parts_.figures.count_escalation("failed"), std::nullopt;
  tier_note_ = small.name();
  const auto certainty = certainty_of(question.api, *object);
  if (certainty) parts_.figures.count_logprob(certainty->mean_logprob);
  if (!certainty || !parts_.certainty.is_met(*certainty)) {
    parts_.figures.count_answer(small.name(), *answer);
    parts_.figures.count_escalation(certainty ? "uncertain" : "no log-probabilities");
    return std::nullopt;
  }
  // The client wants a stream, but the small model's answer cannot become one: to_events() writes neither tool calls nor log-probabilities.
  // So the large model is asked to stream an answer of its own.
  if (question.streams && (!answer->is_plain || question.wants_logprobs)) {
    parts_.figures.count_answer(small.name(), *answer);
    parts_.figures.count_escalation("not a text");
    return std::nullopt;
  }
  took(question, small, *answer);
  if (question.streams) {
    (void)send_answer(question, *answer);
  } else {
    if (!question.wants_logprobs) remove_logprobs(*object);
    reply_->send(HttpResponse{.status = 200, .body = object->dump(), .headers = headers()});
  }
  return 200;
}

void Answering::took(const Question& question, const Tier& tier, const Answer& answer) {
  parts_.figures.count_answer(tier.name(), answer);
  if (store_) store_(answer);
  if (&tier == parts_.small && parts_.quality != nullptr && answer.is_plain) {
    parts_.quality->consider(question, {.source = "small", .text = answer.text, .authorization = authorization_});
  }
}

unsigned Answering::send_answer(const Question& question, const Answer& answer) {
  if (question.streams) {
    reply_->begin_stream(HttpResponse{.status = 200, .body = to_events(question.api, answer, question.wants_usage), .type = kEventStream, .headers = headers()}, {});
    reply_->end_stream();
  } else {
    reply_->send(HttpResponse{.status = 200, .body = to_object(question.api, answer), .headers = headers()});
  }
  return 200;
}

// Sends a server's refusal to the client unchanged, with the time after which the client may try again.
unsigned Answering::send_failure(const UpstreamAnswer& answer) {
  if (answer.status == 200) throw ApiError(502, "The server behind the gateway sent an empty stream.");
  HttpResponse response{.status = answer.status, .body = answer.body, .headers = headers()};
  if (!Json::parse(answer.body)) {
    const unsigned status = answer.status >= 400 ? answer.status : 502;
    response = server::to_response(ApiError(status, fmt::format("The server behind the gateway answered {}.", answer.status)), server::ApiKind::openai);
  }
  if (!answer.retry_after.empty()) response.headers.emplace_back("Retry-After", answer.retry_after);
  const unsigned sent = response.status;
  reply_->send(std::move(response));
  return sent;
}

void Answering::fail(const Tier& tier, const UpstreamError& error) {
  if (error.kind == UpstreamError::Kind::cancelled) throw ApiError(503, "The gateway is ending, or the client has gone.");
  const unsigned status = error.kind == UpstreamError::Kind::late ? 504 : 502;
  throw ApiError(status, fmt::format("The {} model's server failed: {}. Try again, or look at the server.", tier.name(), error.what()));
}

const std::vector<float>& Answering::vector(const Question& question) {
  if (!vector_) vector_ = parts_.embed ? parts_.embed(question.text) : std::vector<float>{};
  return *vector_;
}

server::Headers Answering::headers() const {
  server::Headers all = {{"x-cache", cache_note_}};
  if (!tier_note_.empty()) all.emplace_back("x-tier", tier_note_);
  if (!compressed_note_.empty()) all.emplace_back("x-compressed", compressed_note_);
  return all;
}

}  // namespace gateway
