// Answers one question: from the cache, from another client's answer to the same question, or from a model.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "figures.hpp"
#include "flights.hpp"
#include "http.hpp"
#include "requests/compressor.hpp"
#include "requests/pattern.hpp"
#include "requests/question.hpp"
#include "semantic_cache.hpp"
#include "tiers/certainty.hpp"
#include "tiers/quality.hpp"
#include "tiers/router.hpp"
#include "tiers/tier.hpp"

namespace gateway {

// The parts that all questions share. Absent parts are nullptr.
struct Parts {
  const Tier& large;
  const Tier* small = nullptr;
  std::function<std::vector<float>(std::string_view)> embed{};  // empty: there is no embedder, so neither cache nor classifier
  SemanticCache* cache = nullptr;
  const std::vector<Pattern>& never_cached;  // texts that are neither looked up nor stored
  CacheLimits limits;
  const Router& router;
  CertaintyLimits certainty;
  const Compressor* compressor = nullptr;
  Quality* quality = nullptr;
  Flights& flights;
  Figures& figures;
};

class Answering {
 public:
  // `stop` is requested when the client has gone, or when the gateway ends.
  Answering(Parts& parts, std::string tenant, std::string authorization, server::HttpReplyPtr reply, std::stop_token stop)
      : parts_(parts), tenant_(std::move(tenant)), authorization_(std::move(authorization)), reply_(std::move(reply)), stop_(std::move(stop)) {}

  // Answers the question: sends the answer and returns its status. Throws server::ApiError, but only before anything was sent. `cacheable`:
  // false if the client wants a new answer (Cache-Control: no-cache), which is stored nevertheless. `storable`: false for Cache-Control:
  // no-store. While the question waits for another client's answer, its large values are dropped (put_away()).
  unsigned run(Question question, bool cacheable, bool storable);

 private:
  unsigned answer_by_models(const Question& question);
  // Ask one tier, and send its answer. Return the status that was sent. If the tier failed before anything was sent, return nullopt, and
  // the caller asks the next tier. Exception: with `last` there is no next tier, so the failure is sent to the client.
  std::optional<unsigned> ask_streaming(const Question& question, const Tier& tier, bool last);
  std::optional<unsigned> ask_whole(const Question& question, const Tier& tier, bool last);
  // Asks the small model, and sends its answer if the model was certain enough. Otherwise returns nullopt.
  std::optional<unsigned> ask_adaptively(const Question& question);

  unsigned send_answer(const Question& question, const Answer& answer);
  unsigned send_failure(const UpstreamAnswer& answer);
  [[noreturn]] void fail(const Tier& tier, const UpstreamError& error);
  // Counts and stores an answer of a tier. Call this before the end of the answer is sent.
  void took(const Question& question, const Tier& tier, const Answer& answer);
  [[nodiscard]] const std::vector<float>& vector(const Question& question);
  [[nodiscard]] server::Headers headers() const;

  Parts& parts_;
  std::string tenant_, authorization_;
  server::HttpReplyPtr reply_;
  std::stop_token stop_;
  std::optional<std::vector<float>> vector_;
  std::string cache_note_ = "none";  // for the header x-cache
  std::string tier_note_, compressed_note_;
  // Puts a model's answer into the cache, and hands the answer to the requests that wait for it. If the function is empty, the answer is
  // not stored. The function is called before the client has the whole answer, so that the client's next question finds the answer in the
  // cache.
  std::function<void(const Answer&)> store_;
};

}  // namespace gateway
