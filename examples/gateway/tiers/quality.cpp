#include "tiers/quality.hpp"

#include <ctime>
#include <exception>
#include <memory>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "failure.hpp"
#include "json_object.hpp"
#include "requests/request_body.hpp"
#include "system/program.hpp"

namespace gateway {

namespace {

constexpr std::size_t kMostWaiting = 64;

// A check that waits or runs. It is counted as long as this object lives, so a check that throws or cannot be queued does not stay counted.
class Waiting {
 public:
  explicit Waiting(std::atomic<std::size_t>& count) : count_(count) { ++count_; }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() { --count_; }

 private:
  std::atomic<std::size_t>& count_;
};

}  // namespace

Quality::Quality(const QualityOptions& options, const Tier& large, Embed embed, SemanticCache* cache, Figures& figures, std::stop_token stop)
    : options_(options), large_(large), embed_(std::move(embed)), cache_(cache), figures_(figures), stop_(std::move(stop)), random_(options.seed) {
  if (options_.log.empty()) return;
  log_.reset(tessera::tool::open_file(options_.log, "a"));
  if (log_ == nullptr) throw Failure(tessera::ErrorCode::io, fmt::format("cannot write {}", options_.log));
}

void Quality::consider(const Question& question, Given given) {
  {
    const std::lock_guard lock(mutex_);
    if (std::uniform_real_distribution<double>(0, 1)(random_) >= options_.share) return;
  }
  if (waiting_ >= kMostWaiting) return figures_.count_failure("quality", "too many wait");
  auto waiting = std::make_shared<const Waiting>(waiting_);
  Question kept = question;
  kept.written = {};  // the body is destroyed with the request
  worker_.post([this, question = std::move(kept), given = std::move(given), waiting = std::move(waiting)] {
    if (stop_.stop_requested()) return;
    try {
      check(question, given);
    } catch (const std::exception&) {
      figures_.count_failure("quality", "error");
    }
  });
}

void Quality::check(const Question& question, const Given& given) {
  std::optional<Answer> answer;
  try {
    const UpstreamAnswer whole = large_.ask("POST", path_of(question.api), whole_body(question, large_.model()).dump(), given.authorization, stop_);
    const auto object = tessera::Json::parse(whole.body);
    if (whole.status == 200 && object) answer = read_answer(question.api, *object);
  } catch (const UpstreamError&) {  // counted below
  }
  if (!answer) return figures_.count_failure("quality", "no answer");
  figures_.count_answer("quality", *answer);
  const std::vector<float> ours = embed_(given.text), theirs = embed_(answer->text);
  double similarity = given.text == answer->text ? 1 : 0;
  if (similarity < 1) {
    if (ours.empty() || ours.size() != theirs.size()) return figures_.count_failure("quality", "no vector");
    similarity = static_cast<double>(std::inner_product(ours.begin(), ours.end(), theirs.begin(), 0.0f));
  }
  const bool is_wrong = similarity < options_.agreement;
  figures_.count_comparison(given.source, similarity, is_wrong);
  if (is_wrong && given.entry != 0 && cache_ != nullptr) cache_->forget(given.entry);
  if (log_ == nullptr) return;
  server::Object line;
  line.set("time", static_cast<std::int64_t>(std::time(nullptr))).set("source", given.source).set("similarity", similarity).set("wrong", is_wrong);
  if (given.entry != 0) line.set("question_similarity", given.similarity);
  line.set("question", question.text).set("given", given.text).set("large", answer->text);
  const std::lock_guard lock(mutex_);
  fmt::print(log_.get(), "{}\n", line.dump());
  std::fflush(log_.get());
}

}  // namespace gateway
