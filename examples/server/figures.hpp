// Counts requests of the server, and writes these counts and the scheduler's figures, for Prometheus and for the page.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include <tessera/scheduler/scheduler.hpp>

#include "answers/answer_job.hpp"
#include "models/models.hpp"

namespace server {

class Figures {
 public:
  void count_request(const std::string& endpoint, unsigned status);
  void count_answer(const AnswerReport& report);

  // Returns the answer to GET /metrics, in Prometheus' text format. Names are vLLM's where the meaning is the same.
  [[nodiscard]] std::string metrics(const Models& models, std::size_t connections) const;
  // Returns the answer to GET /status.json, which the page at /status shows: figures of all models together, and of each.
  [[nodiscard]] tessera::Json status(const Models& models, std::size_t connections, std::uint32_t max_running, bool draining) const;

 private:
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, unsigned>, std::uint64_t> requests_;  // by endpoint and status
  std::uint64_t answers_ = 0, disconnected_ = 0, prompt_tokens_ = 0, completion_tokens_ = 0, cached_tokens_ = 0;
};

}  // namespace server
