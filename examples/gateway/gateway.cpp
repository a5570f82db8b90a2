#include "gateway.hpp"

#include <chrono>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <openssl/sha.h>

#include "api_error.hpp"

namespace gateway {

using server::ApiError;
using server::ApiKind;
using server::HttpReplyPtr;
using server::HttpRequest;
using server::HttpResponse;

namespace {

// Returns the client's key, as a value of the header Authorization.
std::string authorization_of(const HttpRequest& request) {
  const std::string_view given = request.header("authorization");
  if (!given.empty()) return std::string(given);
  const std::string_view key = request.header("x-api-key");
  return key.empty() ? std::string() : "Bearer " + std::string(key);
}

std::string digest(std::string_view text) {
  std::array<unsigned char, 32> bytes{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), bytes.data());
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

bool has_directive(const HttpRequest& request, std::string_view directive) {
  return request.header("cache-control").find(directive) != std::string_view::npos;
}

// Adds an amount to a count. The destructor subtracts the amount again, however the question ends.
template <class T>
class Counted {
 public:
  Counted(std::atomic<T>& count, T amount) : count_(count), amount_(amount) { count_ += amount_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { count_ -= amount_; }

 private:
  std::atomic<T>& count_;
  T amount_;
};

// A question that waits or is being answered.
struct Open {
  Counted<std::size_t> question;
  Counted<std::uint64_t> bytes;
};

}  // namespace

void Gateway::handle(HttpRequest request, HttpReplyPtr reply) {
  const bool is_get = request.method == "GET" || request.method == "HEAD";
  try {
    if (request.path == "/health" || request.path == "/live") {
      const bool ok = request.path == "/live" || !draining_;
      return reply->send({.status = ok ? 200u : 503u, .body = ok ? R"({"status":"ok"})" : R"({"status":"draining"})"});
    }
    if (request.path == "/metrics" && is_get) {
      (void)tenant_of(request);
      return reply->send({.body = parts_.figures.metrics(parts_.cache), .type = "text/plain; version=0.0.4; charset=utf-8"});
    }
    if (request.path == "/v1/models" && is_get) return post(reply, 0, [this, request, reply] { list_models(request, reply); });
    for (const Api api : {Api::chat, Api::completions}) {
      if (request.path != path_of(api)) continue;
      if (request.method != "POST") throw ApiError(405, "Send a POST.");
      const std::uint64_t bytes = request.body.size();
      return post(reply, bytes, [this, api, request = std::move(request), reply] { ask(api, request, reply); });
    }
    throw ApiError(404, fmt::format("There is no {} here; there are /v1/chat/completions, /v1/completions, /v1/models, /health and /metrics.", request.path));
  } catch (const ApiError& error) {
    reply->send(server::to_response(error, ApiKind::openai));
  }
}

void Gateway::post(HttpReplyPtr reply, std::uint64_t bytes, std::function<void()> task) {
  if (draining_) throw ApiError(503, "The gateway is ending.", {}, "shutting_down");
  const auto refuse = [](const char* why) {
    ApiError busy(429, why, {}, "queue_full");
    busy.retry_after = 1;
    throw busy;
  };
  if (open_ >= options_.at_once + options_.most_waiting) refuse("Too many requests are waiting; try again soon.");
  if (open_ > 0 && open_bytes_ + bytes > options_.body_bytes) refuse("The waiting requests take all memory that the gateway has for them; try again soon.");
  auto open = std::shared_ptr<const Open>(new Open{.question{open_, 1}, .bytes{open_bytes_, bytes}});
  workers_.post([open = std::move(open), reply = std::move(reply), task = std::move(task)] {
    try {
      if (!reply->gone()) task();
    } catch (const ApiError& error) {
      reply->send(server::to_response(error, ApiKind::openai));
    } catch (const std::exception& error) {
      reply->send(server::to_response(ApiError(500, error.what()), ApiKind::openai));
    }
  });
}

void Gateway::ask(Api api, const HttpRequest& request, const HttpReplyPtr& reply) {
  const auto begin = std::chrono::steady_clock::now();
  const char* name = api == Api::chat ? "chat" : "completions";
  const auto told = [&](unsigned status) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    parts_.figures.count_request(name, status);
    parts_.figures.count_seconds(seconds);
    if (options_.logs_requests) fmt::print(stderr, "{} {} {} {:.3f} s\n", request.peer, request.path, status, seconds);
  };
  std::stop_source stop;
  const std::stop_callback ends(all_.get_token(), [&stop] { stop.request_stop(); });
  reply->on_change([stop, weak = std::weak_ptr(reply)]() mutable {
    const auto still = weak.lock();
    if (still == nullptr || still->gone()) stop.request_stop();
  });
  if (reply->gone()) stop.request_stop();
  try {
    const std::string tenant = tenant_of(request);
    Question question = read_question(api, request.body, parts_.limits);
    Answering answering(parts_, tenant, authorization_for_servers(request), reply, stop.get_token());
    const bool storable = !has_directive(request, "no-store");
    told(answering.run(std::move(question), !has_directive(request, "no-cache"), storable));
  } catch (const ApiError& error) {
    told(reply->gone() ? 499 : error.status);
    throw;
  }
}

void Gateway::list_models(const HttpRequest& request, const HttpReplyPtr& reply) {
  (void)tenant_of(request);
  try {
    const UpstreamAnswer answer = parts_.large.ask("GET", "/v1/models", "", authorization_for_servers(request), all_.get_token());
    reply->send({.status = answer.status, .body = answer.body});
  } catch (const UpstreamError& error) {
    throw ApiError(502, error.what());
  }
}

std::string Gateway::authorization_for_servers(const HttpRequest& request) const {
  return options_.keys.empty() ? authorization_of(request) : std::string();  // the gateway's own keys are not sent on
}

std::string Gateway::tenant_of(const HttpRequest& request) const {
  std::string tenant;
  if (options_.keys.empty()) {
    // Without keys the gateway answers everyone who reaches it. A web page must not use its visitor's access.
    if (!request.header("origin").empty()) throw ApiError(403, "Requests of web pages need a key: start the gateway with --api-key-file.");
    const std::string given = authorization_of(request);
    tenant = given.empty() ? "" : digest(given);
  } else {
    const auto known = options_.keys.tenant_of(request);
    if (!known) throw ApiError(401, "The API key is missing or not known: send it as \"Authorization: Bearer KEY\".");
    tenant = *known;
  }
  if (options_.tenant_header.empty()) return tenant;
  return tenant + '\n' + std::string(request.header(options_.tenant_header));
}

}  // namespace gateway
