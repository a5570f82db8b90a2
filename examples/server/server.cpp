#include "server.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "adapters/adapter_requests.hpp"
#include "apis/told_reply.hpp"
#include "fields/fields.hpp"
#include "models/loaded_model.hpp"
#include "ollama/answer_wish.hpp"
#include "ollama/names.hpp"
#include "ollama/ollama.hpp"
#include "page.hpp"
#include "system/program.hpp"

namespace server {

using tessera::Json;

// A request and its answer on their way through the server.
struct Server::Exchange {
  HttpRequest request;
  HttpReplyPtr reply;
  const Route* route = nullptr;
  std::string tenant{};
  std::shared_ptr<Notes> notes{};
  Json body{};             // the request's body, if the route needs a model
  std::size_t model = 0;   // index of the model that answers
  std::vector<NamedAdapter> adapters{};         // the adapters that the request asks for
  std::vector<tessera::AdapterUse> loaded{};    // the same adapters, loaded
  std::string adapter{};                        // the adapter that the request names in place of a model
  std::atomic<bool> logged{false};
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
};

struct Server::Route {
  std::string_view method, path;
  // answer: the model computes the answer; quick: needs a worker, but no step of the model; control: probes and figures; page: files.
  enum class Kind { answer, quick, control, page } kind;
  // Exactly one of the functions `answer`, `tell` and `list` is set, and makes the answer: `answer` with a loaded model, `list` with all models,
  // loaded or not, `tell` without models. Exception: none of them is set if the answer is a file (/openapi.json).
  void (*answer)(const Api&, const Call&);
  HttpResponse (Server::*tell)() const = nullptr;
  bool needs_key = true;
  void (*list)(const Models&, const Call&) = nullptr;

  // Returns whether the route serves this path. A route whose path ends with '/' serves all longer paths that begin with it. Exception: "/"
  // serves only itself.
  [[nodiscard]] bool is_at(std::string_view where) const {
    return path.size() > 1 && path.ends_with('/') ? where.size() > path.size() && where.starts_with(path) : where == path;
  }
};

const std::vector<Server::Route>& Server::routes() {
  using RouteKind = Route::Kind;
  static const std::vector<Route> all = {
      {"POST", "/v1/chat/completions", RouteKind::answer, chat_completions},
      {"POST", "/v1/completions", RouteKind::answer, completions},
      {"POST", "/v1/responses", RouteKind::answer, responses},
      {"POST", "/v1/embeddings", RouteKind::answer, embeddings},
      {"POST", "/v1/rerank", RouteKind::answer, rerank},
      {"POST", "/v1/score", RouteKind::answer, score},
      {"POST", "/score", RouteKind::answer, score},
      {"POST", "/v1/messages", RouteKind::answer, messages},
      {"POST", "/v1/messages/count_tokens", RouteKind::quick, count_tokens},
      {"POST", "/tokenize", RouteKind::quick, tokenize},
      {"POST", "/detokenize", RouteKind::quick, detokenize},
      {"POST", "/apply-template", RouteKind::quick, apply_template},
      {"GET", "/tokenizer_info", RouteKind::quick, [](const Api& api, const Call& call) { call.reply->send(tokenizer_info(api)); }},
      {"GET", "/v1/models", RouteKind::quick, nullptr, nullptr, true, list_models},
      {"GET", "/v1/models/", RouteKind::quick, nullptr, nullptr, true, one_model},
      {"GET", "/v1/kv/", RouteKind::quick, nullptr, nullptr, true, give_kv},
      {"GET", "/lora-adapters", RouteKind::quick, nullptr, nullptr, true, list_adapters},
      {"POST", "/v1/load_lora_adapter", RouteKind::quick, nullptr, nullptr, true, load_adapter},
      {"POST", "/v1/unload_lora_adapter", RouteKind::quick, nullptr, nullptr, true, unload_adapter},
      {"POST", "/api/chat", RouteKind::answer, ollama::chat},
      {"POST", "/api/generate", RouteKind::answer, ollama::generate},
      {"POST", "/api/embed", RouteKind::answer, ollama::embed},
      {"POST", "/api/embeddings", RouteKind::answer, ollama::embeddings},
      {"GET", "/api/tags", RouteKind::quick, nullptr, nullptr, true, ollama::tags},
      {"POST", "/api/show", RouteKind::quick, nullptr, nullptr, true, ollama::show},
      {"GET", "/api/ps", RouteKind::quick, nullptr, nullptr, true, ollama::ps},
      {"GET", "/api/version", RouteKind::quick, nullptr, nullptr, true, ollama::version},
      {"POST", "/api/pull", RouteKind::quick, nullptr, &Server::no_store},
      {"POST", "/api/push", RouteKind::quick, nullptr, &Server::no_store},
      {"POST", "/api/create", RouteKind::quick, nullptr, &Server::no_store},
      {"POST", "/api/copy", RouteKind::quick, nullptr, &Server::no_store},
      {"DELETE", "/api/delete", RouteKind::quick, nullptr, &Server::no_store},
      {"POST", "/api/blobs/", RouteKind::quick, nullptr, &Server::no_store},
      {"GET", "/api/blobs/", RouteKind::quick, nullptr, &Server::no_store},
      {"GET", "/", RouteKind::page, nullptr, &Server::greeting, false},
      {"GET", "/health", RouteKind::control, nullptr, &Server::health, false},
      {"GET", "/live", RouteKind::control, nullptr, &Server::live, false},
      {"GET", "/metrics", RouteKind::control, nullptr, &Server::metrics},
      {"GET", "/status.json", RouteKind::control, nullptr, &Server::status},
      {"GET", "/openapi.json", RouteKind::page, nullptr},
  };
  return all;
}

namespace {

// Returns whether a Host header names this machine. If a private server gets a GET or HEAD request with another host and without an Origin
// header, it refuses the request (for exceptions see dispatch() and is_named_here()). The reason: a foreign web page can make its own host
// name resolve to this machine (DNS rebinding), and its browser would then let the page read the answers. But the Host header of such
// requests still has the page's host name.
bool is_this_machine(std::string_view host) {
  const std::size_t bracket = host.find(']'), colon = host.find(':', bracket == host.npos ? 0 : bracket);
  const std::string_view name = host.substr(0, colon);
  const bool is_v4 = name.starts_with("127.") && name.find_first_not_of("0123456789.") == name.npos;
  return is_v4 || name == "localhost" || name == "[::1]";
}

// Returns whether the media type is JSON, in any case and with any parameters.
bool is_json(std::string_view content_type) {
  constexpr std::string_view kJson = "application/json";
  const std::string_view type = content_type.substr(0, content_type.find_first_of("; \t"));
  return std::ranges::equal(type, kJson, [](char a, char b) { return (a >= 'A' && a <= 'Z' ? static_cast<char>(a + 32) : a) == b; });
}

// Returns whether a client asks for a page, as browsers do: its Accept names text/html.
bool asks_for_page(const HttpRequest& request) { return request.header("accept").find("text/html") != std::string_view::npos; }

// Returns whether the media type is absent, or is the type that curl -d sends by default. Ollama's examples send JSON by curl -d.
// Accepting this type is safe: a form on a foreign page cannot send JSON in a body of this type, and a script of another origin sends the
// header Origin, by which it is refused.
bool is_curls(std::string_view content_type) { return content_type.empty() || content_type.starts_with("application/x-www-form-urlencoded"); }

// Returns headers that let the page load scripts and everything else only from this server, and let no other page show it in a frame.
Headers page_headers() {
  return {{"Content-Security-Policy",
           "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action "
           "'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"},
          {"X-Content-Type-Options", "nosniff"},
          {"Referrer-Policy", "no-referrer"},
          {"Cache-Control", "no-cache"}};
}

std::string clock_text() {
  const std::tm t = tessera::tool::local_time();
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec);
}

// Returns a client's text for the terminal: at most 100 characters, all printable ASCII.
std::string shown(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, 100)) result += c > ' ' && c < 0x7f ? c : '?';
  return result;
}

}  // namespace

Server::Server(ServerOptions options, Models& models, Workers& workers)
    : options_(std::move(options)), models_(models), workers_(workers), rates_(options_.rate), kv_(options_.kv) {}

void Server::drain() {
  draining_ = true;
  models_.drain();
}

HttpResponse Server::live() const { return {.body = R"({"status": "ok"})"}; }
HttpResponse Server::health() const {
  if (draining_) throw ApiError(503, "The server is shutting down.", {}, "shutting_down");
  return live();
}
// Returns the text by which Ollama's clients recognise a server.
HttpResponse Server::greeting() const { return {.body = "Ollama is running", .type = "text/plain; charset=utf-8"}; }
HttpResponse Server::no_store() const {
  throw ApiError(501, fmt::format("This server serves {} that it was started with: it pulls, pushes, creates, copies and deletes none.",
                                  models_.size() == 1 ? fmt::format("\"{}\", the model", models_.configured(0).id) : fmt::format("the {} models", models_.size())));
}
HttpResponse Server::metrics() const {
  return {.body = figures_.metrics(models_, connections()) + kv_.metrics(), .type = "text/plain; version=0.0.4; charset=utf-8"};
}
HttpResponse Server::status() const {
  return {.body = figures_.status(models_, connections(), options_.max_running, draining_).dump()};
}

bool Server::is_probe(const Route* route) { return route != nullptr && route->kind == Route::Kind::control && !route->needs_key; }

bool Server::is_named_here(std::string_view host) const {
  return host.empty() || is_this_machine(host) ||
         std::ranges::any_of(options_.cors, [&](const std::string& each) { return each == "*" || each.substr(each.find("://") + 3) == host; });
}

bool Server::allows_origin(std::string_view origin) const {
  return std::ranges::any_of(options_.cors, [&](const std::string& each) { return each == "*" || each == origin; });
}

Headers Server::cors_headers(const HttpRequest& request) const {
  const std::string_view origin = request.header("origin");
  if (origin.empty() || !allows_origin(origin)) return {};
  Headers headers{{"Access-Control-Allow-Origin", std::string(origin)}, {"Vary", "Origin"}};
  headers.emplace_back("Access-Control-Expose-Headers", kIgnoredHeader);
  if (request.method != "OPTIONS") return headers;
  headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
  // Allows all headers that the page is about to send, because clients have a dozen of their own (x-stainless-...).
  const std::string_view wanted = request.header("access-control-request-headers");
  headers.emplace_back("Access-Control-Allow-Headers", wanted.empty() ? "authorization, content-type, x-api-key" : std::string(wanted));
  return headers;
}

void Server::log(Exchange& exchange, unsigned status, const AnswerReport* report) const {
  if (!options_.logs_requests || exchange.logged.exchange(true)) return;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - exchange.began).count();
  std::string line = fmt::format("{} {} {} {} {}", clock_text(), exchange.request.peer, shown(exchange.request.method), shown(exchange.request.path), status);
  if (!exchange.tenant.empty()) line += fmt::format(" {}", shown(exchange.tenant));
  if (report != nullptr) {
    const Usage& u = report->usage;
    line += fmt::format(" {} read ({} kept) {} written,", u.prompt_tokens, u.cached_tokens, u.completion_tokens);
    if (u.completion_tokens > 0) line += fmt::format(" first {:.3f} s,", std::max(report->time_to_first_token, 0.0));
  }
  line += fmt::format(" {:.3f} s", seconds);
  if (!exchange.notes->empty()) line += fmt::format(", ignored: {}", exchange.notes->text());
  if (const std::string warnings = exchange.notes->warnings(); !warnings.empty()) line += fmt::format(", warning: {}", warnings);
  if (const std::string more = exchange.notes->for_log(); !more.empty()) line += fmt::format(" ({})", more);
  fmt::print(stderr, "{}\n", line);
}

void Server::handle(HttpRequest request, HttpReplyPtr reply) {
  auto exchange = std::make_shared<Exchange>();
  exchange->request = std::move(request);
  exchange->notes = std::make_shared<Notes>(options_.strict_fields);
  const auto& r = exchange->request;
  const auto found = std::ranges::find_if(routes(), [&](const Route& route) { return route.is_at(r.path) && route.method == (r.method == "HEAD" ? "GET" : r.method); });
  if (found != routes().end()) exchange->route = &*found;
  const std::string endpoint = exchange->route != nullptr ? std::string(exchange->route->path) : "other";
  const auto kind = exchange->route != nullptr ? std::optional(exchange->route->kind) : std::nullopt;
  const bool is_quick = kind == Route::Kind::quick, is_worked_on = is_quick || kind == Route::Kind::answer;
  const bool logs_failure = !kind || is_worked_on;  // a successful answer is logged at its end
  // The reply has only a weak pointer to the exchange, because the exchange holds the reply.
  exchange->reply = std::make_shared<ToldReply>(std::move(reply), cors_headers(r), exchange->notes, [this, weak = std::weak_ptr(exchange), endpoint, is_quick, logs_failure](unsigned status) {
    figures_.count_request(endpoint, status);
    const auto told = weak.lock();
    if (told != nullptr && (is_quick || (logs_failure && status >= 400))) log(*told, status, nullptr);
  });
  // Answers probes, figures and pages on this thread, so that the server answers them also while all workers are busy.
  if (kind && !is_worked_on) return answer(exchange);
  workers_.post([this, exchange] { answer(exchange); });
}

void Server::answer(const std::shared_ptr<Exchange>& exchange) {
  answer_errors(exchange, [&] { dispatch(exchange); });
}

template <class Work>
void Server::answer_errors(const std::shared_ptr<Exchange>& exchange, Work work) {
  const auto refuse = [&](const ApiError& error) {
    exchange->reply->send(to_response(error, api_at(exchange->request.path)));
    exchange->reply.reset();
  };
  try {
    work();
  } catch (const ApiError& error) {
    refuse(error);
  } catch (const std::bad_alloc&) {
    refuse(ApiError(503, "The server is out of memory for this request."));
  } catch (const std::exception& error) {
    refuse(ApiError(500, error.what()));
  }
}

void Server::dispatch(const std::shared_ptr<Exchange>& exchange) {
  const HttpRequest& request = exchange->request;
  const std::string_view origin = request.header("origin");
  if (request.method == "OPTIONS") {
    exchange->reply->send({.status = allows_origin(origin) ? 204u : 403u, .body = {}, .type = "text/plain"});
    return;
  }
  // A web page of another origin uses its visitor's access to this server, so its origin must be allowed.
  if (!origin.empty() && !allows_origin(origin)) {
    const std::string_view host = request.header("host");
    const bool is_own = origin.ends_with(fmt::format("://{}", host)) && (!options_.is_private || is_this_machine(host));
    if (!is_own) throw ApiError(403, "Pages of this origin may not ask: see --cors.", "Origin");
  }
  const bool reads = request.method == "GET" || request.method == "HEAD";
  // In GET requests to its own host a page sends no Origin header. So only the Host header shows DNS rebinding.
  if (origin.empty() && reads && options_.is_private && !is_probe(exchange->route) && !is_named_here(request.header("host"))) {
    throw ApiError(403, "This server is for this machine alone: ask it as localhost or 127.0.0.1, or allow the page's origin by --cors.", "Host");
  }
  // is_ours: a file that the table of routes names (/openapi.json), which is served also if the pages are turned off.
  const bool is_ours = exchange->route != nullptr && exchange->route->kind == Route::Kind::page && exchange->route->tell == nullptr;
  const bool is_greeted = request.path == "/" && !asks_for_page(request);
  if (const PageFile* file = reads && (options_.serves_page || is_ours) && !is_greeted ? find_page(request.path) : nullptr) {
    exchange->reply->send({.body = std::string(file->content), .type = std::string(file->type), .headers = page_headers()});
    return;
  }
  const Route* route = exchange->route;
  if (route == nullptr) {
    const auto same = std::ranges::find_if(routes(), [&](const Route& each) { return each.is_at(request.path); });
    const bool is_page = options_.serves_page && find_page(request.path) != nullptr;
    if (same == routes().end() && !is_page) throw ApiError(404, fmt::format("There is nothing at {}.", shown(request.path)));
    const std::string_view method = is_page ? "GET" : same->method;
    HttpResponse refusal = to_response(ApiError(405, fmt::format("{} takes {}.", shown(request.path), method)), api_at(request.path));
    refusal.headers.emplace_back("Allow", method == "GET" ? "GET, HEAD, OPTIONS" : fmt::format("{}, OPTIONS", method));
    exchange->reply->send(std::move(refusal));
    return;
  }
  std::optional<std::string> tenant;
  if (route->needs_key && !options_.keys.empty()) {
    tenant = options_.keys.tenant_of(request);
    if (!tenant) throw ApiError(401, "An API key is needed: send \"Authorization: Bearer KEY\".", {}, "invalid_api_key");
    exchange->tenant = *tenant;
  }
  if (route->tell != nullptr) {
    exchange->reply->send((this->*route->tell)());
    return;
  }
  const std::string_view type = request.header("content-type");
  if (route->method == "POST" && !is_json(type) && !(api_at(request.path) == ApiKind::ollama && is_curls(type))) {
    throw ApiError(415, "The body must be JSON: send \"Content-Type: application/json\".");
  }
  if (const std::string_view coding = request.header("content-encoding"); !coding.empty() && coding != "identity") {
    throw ApiError(415, "The body must come as it is: without Content-Encoding.");
  }
  if (route->method == "POST") {
    if (draining_) {
      ApiError error(503, "The server is shutting down.", {}, "shutting_down");
      error.retry_after = 1.0;
      throw error;
    }
    if (const double wait = rates_.wait_of(tenant.value_or("")); wait > 0.0) {
      ApiError error(429, "This key has asked too often in the last minute.", {}, "rate_limit_exceeded");
      error.retry_after = wait;
      throw error;
    }
  }
  if (route->list != nullptr) {
    if (route->method == "POST") exchange->body = read_body(request);
    return route->list(models_, call_of(exchange, nullptr));
  }
  choose_model(exchange);
}

void Server::choose_model(const std::shared_ptr<Exchange>& exchange) {
  const HttpRequest& request = exchange->request;
  std::optional<double> keep_alive;
  std::string name;
  if (request.method == "POST") {
    exchange->body = read_body(request);
    Fields fields(exchange->body);
    const bool is_ollamas = api_at(request.path) == ApiKind::ollama;
    name = is_ollamas ? ollama::asked_name(fields) : fields.text("model").value_or("");
    if (is_ollamas) keep_alive = ollama::keep_alive_of(fields);
  } else {
    name = query_field(request.query, "model");
  }
  if (auto named = models_.names().has(name) ? std::nullopt : models_.adapters().find(name)) {
    exchange->model = named->adapter.model;
    exchange->adapter = named->adapter.name;
    exchange->adapters.push_back(*std::move(named));
  } else {
    exchange->model = models_.names().find(name);
  }
  for (NamedAdapter& one : take_lora_field(exchange->body, models_.adapters(), exchange->model)) exchange->adapters.push_back(std::move(one));
  if (keep_alive && !models_.is_pinned(exchange->model) && models_.view(exchange->model).state == ModelState::unloaded &&
      ollama::asks_to_unload(request.path, exchange->body, keep_alive)) {
    return ollama::answer_unloaded(call_of(exchange, nullptr), models_.configured(exchange->model).id);
  }
  exchange->reply->on_change([this] { models_.look(); });  // drops the request if its client leaves while the request waits
  ModelLease lease = models_.acquire(exchange->model, keep_alive, {
      .gone = [exchange] { return exchange->reply->gone(); },
      .ready = [this, exchange](ModelLease ready) {
        workers_.post([this, exchange, ready = std::move(ready)] { answer_errors(exchange, [&] { compute(exchange, ready); }); });
      },
      .failed = [this, exchange](const ApiError& error) {
        workers_.post([this, exchange, error] {
          if (error.status == 499) return call_of(exchange, nullptr).on_answered({.usage = {}, .status = 499, .error = error.what()});
          answer_errors(exchange, [&] { throw error; });
        });
      }});
  if (lease != nullptr) compute(exchange, std::move(lease));  // a null lease: ready() or failed() goes on with the exchange later
}

// Returns whether requests to an endpoint may use adapters. Endpoints that compute embeddings or scores of texts refuse adapters.
bool Server::uses_adapters(const Route& route) noexcept {
  return route.answer != embeddings && route.answer != rerank && route.answer != score && route.answer != ollama::embed &&
         route.answer != ollama::embeddings;
}

void Server::compute(const std::shared_ptr<Exchange>& exchange, ModelLease lease) {
  const Api& api = lease->api();
  if (!exchange->adapters.empty() && !uses_adapters(*exchange->route)) {
    throw ApiError(400, fmt::format("{} computes without adapters: name a model, and leave \"lora\" out.", exchange->route->path), "model");
  }
  exchange->loaded = load_adapters(exchange->adapters, lease->shelf());
  exchange->route->answer(api, call_of(exchange, std::move(lease)));
  exchange->reply.reset();  // a job that goes on holds the reply itself
}

Call Server::call_of(const std::shared_ptr<Exchange>& exchange, ModelLease lease) {
  return {.request = exchange->request, .reply = exchange->reply, .caller = {.tenant = exchange->tenant, .adapters = exchange->loaded, .adapter = exchange->adapter},
          .on_answered = [this, exchange](AnswerReport report) {
            if (report.status == 499 && cutting_) report.status = 503;
            figures_.count_answer(report);
            models_.count_answer(exchange->model, report.stopped, report.cut);
            log(*exchange, report.status, &report);
          },
          .notes = *exchange->notes, .kv = kv_, .lease = std::move(lease), .body = &exchange->body};
}

}  // namespace server
