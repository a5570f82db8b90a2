// A request on its way: from its plans to the scheduler, and what comes of them to its writer. It moves when the scheduler has
// something to read or the client has taken what was written; a client that takes nothing holds its own request back, one that
// has gone ends it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/scheduler/scheduler.hpp>

#include "answer_writer.hpp"
#include "http.hpp"
#include "served_model.hpp"
#include "slices.hpp"
#include "workers.hpp"

namespace server {

// What is asked of the model, of one prompt.
struct AnswerPlan {
  tessera::Request request;
  // How the text is read: a chat answer's reasoning and calls. none: it is text.
  struct Chat {
    bool in_reasoning = false;
    std::vector<tessera::Json> tools{};
  };
  std::optional<Chat> chat{};
  bool shows_logprobs = false;
};

// Told once, when a request is over.
struct AnswerReport {
  Usage usage;
  unsigned status = 200;       // 499: the client went away
  std::string error{};
  std::uint64_t stopped = 0, cut = 0;  // its choices that came to their end, and those that came to max_tokens
  double queue = 0.0, time_to_first_token = 0.0, seconds = 0.0;
};
using OnAnswered = std::function<void(const AnswerReport&)>;

struct JobContext {
  ServedModel& model;
  tessera::Scheduler& scheduler;
  Slices& slices;
  Workers& workers;
};

// Submits the plans and answers by the writer. Errors that come at once are thrown (ApiError); later ones are the writer's.
void start_job(const JobContext& context, std::vector<AnswerPlan> plans, std::unique_ptr<AnswerWriter> writer, HttpReplyPtr reply,
               OnAnswered on_answered);

}  // namespace server
