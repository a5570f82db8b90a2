// A job answers one request of a client. It submits the request's plans (one for each prompt) to the scheduler, and passes the results to a
// writer. A worker runs the job whenever the scheduler has pieces to read, or the client has taken everything that was written. So a slow
// client delays only its own request. If a client has gone, its request is cancelled.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/scheduler/scheduler.hpp>

#include "answers/answer_writer.hpp"
#include "answers/slices.hpp"
#include "http.hpp"
#include "models/model_lease.hpp"
#include "models/served_model.hpp"
#include "workers.hpp"

namespace server {

// The request for one prompt.
struct AnswerPlan {
  tessera::Request request;
  // The settings for reading a chat answer's reasoning and calls. nullopt: the answer is plain text.
  struct Chat {
    bool in_reasoning = false;
    std::vector<tessera::Json> tools{};
  };
  std::optional<Chat> chat{};
  bool shows_logprobs = false;
  // Receives the session of the first sample, if the request keeps this session (SessionAtEnd::keep). The returned JSON goes to
  // AnswerWriter::kv_transfer(), unless it is null.
  std::function<tessera::Json(tessera::Session)> on_session{};
};

// The figures of a request, which the job reports once, at the request's end (OnAnswered).
struct AnswerReport {
  Usage usage;
  unsigned status = 200;       // 499: the client went away
  std::string error{};
  std::uint64_t stopped = 0, cut = 0;  // choices that reached their end, and choices that reached max_tokens
  double queue = 0.0, time_to_first_token = 0.0, seconds = 0.0;
};
using OnAnswered = std::function<void(const AnswerReport&)>;

struct JobContext {
  ServedModel& model;
  tessera::Scheduler& scheduler;
  Slices& slices;
  Workers& workers;
};

// Starts a job: submits the plans to the scheduler. `writer` then writes the pieces of the answer as they come. `lease`, which keeps the
// model loaded, is kept until the client has taken the whole answer. Throws ApiError if the plans cannot be submitted. Later errors go to the writer.
void start_job(const JobContext& context, std::vector<AnswerPlan> plans, std::unique_ptr<AnswerWriter> writer, HttpReplyPtr reply,
               OnAnswered on_answered, ModelLease lease);

}  // namespace server
