#include "kv/kv_transfer.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "answers/answer_job.hpp"
#include "apis/api.hpp"
#include "json_object.hpp"

namespace server {

using tessera::Json;
using Outcome = KvPeers::Outcome;

namespace {

constexpr const char* kOurs = "tessera";  // the member of kv_transfer_params that only this server reads

// Calls `start`, and answers with the error that it throws.
void start_or_refuse(const Call& call, const std::function<void()>& start) {
  const auto refuse = [&](const ApiError& error) {
    call.reply->send(to_response(error, ApiKind::openai));
    call.on_answered({.usage = {}, .status = error.status, .error = error.what()});
  };
  try {
    if (call.reply->gone()) return call.on_answered({.usage = {}, .status = 499, .error = "the client went away"});
    start();
  } catch (const ApiError& error) {
    refuse(error);
  } catch (const std::bad_alloc&) {
    refuse(ApiError(503, "The server is out of memory for this request."));
  } catch (const std::exception& error) {
    refuse(ApiError(500, error.what()));
  }
}

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::fetched: return "restored";
    case Outcome::unknown_peer: return "unknown_peer";
    case Outcome::unreachable: return "unreachable";
    case Outcome::gone: return "gone";
    case Outcome::busy: return "busy";
  }
  return "";
}

// Returns an upper bound of the bytes of a saved session of this model: the keys and values of a full context, the same amount again for
// tokens, checkpoints and checksums, and 1 MiB.
std::uint64_t most_bytes_of(const tessera::Plan& plan) { return 2 * plan.kv + (std::uint64_t{1} << 20); }

// Returns the client's key as a value of the header Authorization. The other server accepts the same keys.
std::string authorization_of(const HttpRequest& request) {
  const std::string_view given = request.header("authorization"), key = request.header("x-api-key");
  return !given.empty() ? std::string(given) : key.empty() ? std::string() : fmt::format("Bearer {}", key);
}

}  // namespace

KvWish read_kv_wish(Fields& fields, bool streams) {
  const Json* params = fields.object("kv_transfer_params");
  if (params == nullptr) return {};
  Fields inner(*params, "kv_transfer_params");
  KvWish wish{.exports = inner.boolean("do_remote_decode").value_or(false), .imports = inner.boolean("do_remote_prefill").value_or(false)};
  if (wish.exports && streams) inner.refuse("do_remote_decode", "The end of the answer says where the prompt is kept: leave stream out.");
  const Json* ours = wish.imports ? inner.object(kOurs) : nullptr;
  if (ours == nullptr) return wish;
  Fields origin(*ours, fmt::format("kv_transfer_params.{}", kOurs));
  wish.origin = KvOrigin{.host = origin.need(origin.text("host"), "host"),
                         .port = fmt::format("{}", origin.need(origin.integer("port", 1, 65535), "port")),
                         .id = origin.need(origin.text("id"), "id"),
                         .bytes = static_cast<std::uint64_t>(origin.need(origin.integer("bytes", 1, std::int64_t{1} << 50), "bytes"))};
  const std::string& id = wish.origin->id;
  if (id.size() != 32 || id.find_first_not_of("0123456789abcdef") != id.npos) origin.refuse("id", "This is no id of a server's kv_transfer_params.");
  return wish;
}

void KvTransfers::export_prompt(AnswerPlan& plan, std::size_t page_tokens, const Call& call) {
  if (!exports_.are_on()) return call.notes.warn("The prompt is not kept for another server: this one was started without --kv-exports.");
  // Exports all tokens of the prompt but the last, rounded down to whole pages. The reason: the other server's prefix index has only whole
  // pages, and that server computes at least the last token itself.
  const std::size_t tokens = (std::max<std::size_t>(plan.request.prompt.size(), 1) - 1) / page_tokens * page_tokens;
  if (tokens == 0) return;
  plan.request.session_at_end = tessera::SessionAtEnd::keep;
  plan.on_session = [this, tokens, tenant = call.caller.tenant](tessera::Session session) -> Json {
    tessera::Status ready = session.suspended() ? session.resume() : tessera::Status();
    if (ready) ready = session.truncate(tokens);
    if (!ready) return {};
    const auto kept = exports_.keep(session, tenant);
    if (!kept) return {};
    const Object where = Object()
                             .set("host", address_.host)
                             .set("port", static_cast<std::int64_t>(std::stoi(address_.port)))
                             .set("id", kept->id)
                             .set("bytes", static_cast<std::int64_t>(kept->bytes));
    return Object().set("do_remote_decode", false).set("do_remote_prefill", true).set(kOurs, where);
  };
}

void KvTransfers::import_prompt(const Api& api, const Call& call, const KvWish& wish, std::vector<tessera::Token> prompt, std::function<void()> start) {
  if (!wish.imports) return start();
  const auto compute_here = [&](const char* result, const std::string& why) {
    count(result, 0, 0.0);
    call.notes.warn(fmt::format("The prompt was computed here: {}.", why));
    start();
  };
  if (!wish.origin) return compute_here("unknown_peer", "kv_transfer_params.tessera does not say where another server has it");
  if (!has_peers_) return compute_here("unknown_peer", "this server was started without --kv-peer");
  std::stop_source stop;
  call.reply->on_change([stop, weak = std::weak_ptr(call.reply)]() mutable {
    if (const auto reply = weak.lock(); reply == nullptr || reply->gone()) stop.request_stop();
  });
  const auto work = [this, &api, call, prompt = std::move(prompt), start = std::move(start)](const KvPeers::Fetched& fetched) {
    start_or_refuse(call, [&] {
      const std::string error = fetched.outcome == Outcome::fetched ? restore(api, call, fetched, prompt) : fetched.error;
      if (fetched.outcome != Outcome::fetched) count(name_of(fetched.outcome), 0, fetched.seconds);
      if (!fetched.detail.empty()) call.notes.tell_log(fetched.detail);
      if (!error.empty()) call.notes.warn(fmt::format("The prompt was computed here: {}.", error));
      start();
    });
  };
  // The thread that has fetched the session also restores it. So only the few fetching threads wait, not the threads that write answers.
  peers_.fetch(*wish.origin, most_bytes_of(api.job.model.engine().plan()), authorization_of(call.request), stop.get_token(), work);
}

std::string KvTransfers::restore(const Api& api, const Call& call, const KvPeers::Fetched& fetched, const std::vector<tessera::Token>& prompt) {
  tessera::SessionOptions options;
  options.kv.salt = call.caller.tenant;
  const auto session = api.job.model.engine().restore(std::as_bytes(std::span(fetched.bytes)), options);
  // The session is destroyed at the end of this function. Its pages stay in the prefix index, where they can be evicted.
  const bool is_ours = session && std::ranges::equal(session->tokens().first(std::min(session->tokens().size(), prompt.size())),
                                                     std::span(prompt).first(std::min(session->tokens().size(), prompt.size())));
  const auto has_no_room = [](tessera::ErrorCode code) {
    return code == tessera::ErrorCode::cache_full || code == tessera::ErrorCode::over_budget || code == tessera::ErrorCode::out_of_memory;
  };
  count(!session ? (has_no_room(session.error().code()) ? "no_room" : "unfit") : is_ours ? "restored" : "other_prompt", fetched.bytes.size(), fetched.seconds);
  if (!session) return session.error().text();
  return is_ours ? std::string() : "the fetched prompt is not the one that was asked for";
}

void KvTransfers::count(const char* result, std::uint64_t bytes, double seconds) {
  const std::lock_guard lock(mutex_);
  ++imports_[result];
  fetched_bytes_ += bytes;
  fetch_seconds_ += seconds;
}

std::string KvTransfers::metrics() const {
  std::string text;
  const auto head = [&](std::string_view name, std::string_view type, std::string_view help) {
    text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  };
  const auto number = [&](std::string_view name, std::string_view type, std::string_view help, double value) {
    head(name, type, help);
    text += fmt::format("{} {}\n", name, value);
  };
  const KvExports::Figures out = exports_.figures();
  number("tessera:kv_exports_total", "counter", "Prompts that were kept for another server", static_cast<double>(out.exported));
  number("tessera:kv_exports_refused_total", "counter", "Prompts that were not kept, mostly because --kv-exports was full", static_cast<double>(out.refused));
  number("tessera:kv_exports_expired_total", "counter", "Kept prompts that no server fetched in time", static_cast<double>(out.expired));
  number("tessera:kv_exports_bytes", "gauge", "Bytes of kept prompts", static_cast<double>(out.bytes));
  number("tessera:kv_sent_total", "counter", "Kept prompts that a server has fetched", static_cast<double>(out.sent));
  number("tessera:kv_sent_bytes_total", "counter", "Their bytes", static_cast<double>(out.sent_bytes));
  const std::lock_guard lock(mutex_);
  head("tessera:kv_imports_total", "counter", "Prompts that were to be fetched from another server, by result");
  for (const auto& [result, n] : imports_) text += fmt::format("tessera:kv_imports_total{{result=\"{}\"}} {}\n", result, n);
  number("tessera:kv_fetched_bytes_total", "counter", "Bytes of prompts that were fetched", static_cast<double>(fetched_bytes_));
  number("tessera:kv_fetch_seconds_total", "counter", "Seconds that fetches took", fetch_seconds_);
  return text;
}

}  // namespace server
