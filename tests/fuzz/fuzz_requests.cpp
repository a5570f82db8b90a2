// libFuzzer's entry to the server's requests: any body, sent to any endpoint, ends in an answer that is JSON or a stream of
// it, with a status that fits; none of 500. The first byte ('0' and so on) says which endpoint, the rest is the body. See
// CMakeLists.txt.
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>

#include <tessera/engine.hpp>
#include <tessera/scheduler/scheduler.hpp>

#include "apis/api.hpp"

namespace {

using namespace server;

void require(bool promise, const std::string& why) {
  if (promise) return;
  std::fprintf(stderr, "%s\n", why.c_str());
  std::abort();
}

// An answer that is kept.
class Kept final : public HttpReply {
 public:
  void send(HttpResponse response) override {
    const std::lock_guard lock(mutex_);
    response_ = std::move(response);
    end();
  }
  void begin_stream(HttpResponse response, std::string) override {
    const std::lock_guard lock(mutex_);
    response_ = std::move(response);
    streams_ = true;
  }
  void write(std::string chunk) override {
    const std::lock_guard lock(mutex_);
    response_.body += chunk;
  }
  void end_stream() override {
    const std::lock_guard lock(mutex_);
    end();
  }
  [[nodiscard]] std::size_t unsent() const noexcept override { return 0; }
  [[nodiscard]] bool gone() const noexcept override { return false; }
  void on_change(std::function<void()> change) override {
    const std::lock_guard lock(mutex_);
    change_ = std::move(change);
  }

  void check() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return over_; });  // one that never comes is libFuzzer's to tell (-timeout)
    require(response_.status < 500 || response_.status == 503, "status " + std::to_string(response_.status) + ": " + response_.body);
    if (!streams_) require(tessera::Json::parse(response_.body).has_value(), "no JSON: " + response_.body);
    else require(response_.body.find("data: ") != std::string::npos, "a stream of nothing");
  }

 private:
  void end() {
    require(!over_, "a second answer");
    over_ = true;
    ended_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable ended_;
  HttpResponse response_;
  std::function<void()> change_;  // keeps who answers
  bool streams_ = false, over_ = false;
};

struct Rig {
  tessera::Engine engine = *tessera::Engine::load(FUZZ_MODEL, {.threads = 1});
  ServedModel model{engine, "fuzzed", tessera::ChatTemplate::parse(
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% if m.tool_calls %}{{ m.tool_calls|tojson }}{% endif %}{% endfor %}"
      "{% if tools %}{{ tools|tojson }}<tool_call>{% endif %}{% if enable_thinking %}<think>{% endif %}").value()};
  tessera::Scheduler scheduler = *tessera::Scheduler::create(engine);
  Slices slices{scheduler, 0.05};
  Workers workers{1};
  tessera::Driver driver = *tessera::Driver::start(scheduler);
  Api api{.job = {model, scheduler, slices, workers}, .limits = {.max_tokens = 24, .samples = 2, .prompts = 4}};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Rig& rig = *new Rig;
  if (size == 0) return 0;
  using Endpoint = void (*)(const Api&, const Call&);
  constexpr Endpoint kEndpoints[] = {chat_completions, completions, responses, messages, count_tokens, embeddings, tokenize, detokenize, apply_template};
  const HttpRequest request{.method = "POST", .path = "/", .body = std::string(reinterpret_cast<const char*>(data) + 1, size - 1)};
  const auto reply = std::make_shared<Kept>();
  Notes notes;
  try {
    kEndpoints[(data[0] + std::size(kEndpoints) * 6 - '0') % std::size(kEndpoints)](rig.api, {.request = request, .reply = reply, .caller = {}, .on_answered = [](const AnswerReport&) {}, .notes = notes});
  } catch (const ApiError& error) {
    reply->send(to_response(error, ApiKind::openai));
  }
  reply->check();
  return 0;
}
