// Prefill and decode apart: one server computes a prompt, and another one goes on from it. The field `kv_transfer_params` says so, in the form
// of llm-d's sidecar, which passes the field of one answer on in the next request:
//   {"do_remote_decode": true}   the prompt is computed with one token, and kept for another server (kv_exports.hpp). The answer says where.
//   {"do_remote_prefill": true, "tessera": {"host", "port", "id", "bytes"}}   such an answer's field: the prompt is fetched from there, so that
//                                the request finds its pages in the prefix index. If anything fails, the prompt is computed here.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fields/fields.hpp"
#include "kv/kv_exports.hpp"
#include "kv/kv_peers.hpp"

namespace server {

struct AnswerPlan;
struct Api;
struct Call;
class Models;

// The field kv_transfer_params of a request.
struct KvWish {
  bool exports = false;               // do_remote_decode
  bool imports = false;               // do_remote_prefill
  std::optional<KvOrigin> origin{};   // where to import from
};
// Reads the field. `streams`: the answer is a stream, which has no place to say where its prompt is kept.
[[nodiscard]] KvWish read_kv_wish(Fields& fields, bool streams);

struct KvTransferOptions {
  KvExports::Options exports{};
  KvPeers::Options peers{};
  Url address{};  // where other servers reach this one
};

// Any thread may call.
class KvTransfers {
 public:
  explicit KvTransfers(KvTransferOptions options)
      : address_(std::move(options.address)), exports_(options.exports), has_peers_(!options.peers.urls.empty()), peers_(std::move(options.peers)) {}

  [[nodiscard]] KvExports& exports() noexcept { return exports_; }
  // Has the plan's answer say where its prompt can be fetched, if it has a whole page. `page_tokens`: tokens of a page, at least 1.
  void export_prompt(AnswerPlan& plan, std::size_t page_tokens, const Call& call);
  // Fetches the prompt that the wish names, if it names one, and then calls `start`, on any thread. Errors that `start` throws are answered.
  void import_prompt(const Api& api, const Call& call, const KvWish& wish, std::vector<tessera::Token> prompt, std::function<void()> start);
  // Returns the figures in Prometheus' text format.
  [[nodiscard]] std::string metrics() const;

 private:
  // Restores the fetched session, so that the prefix index has its pages. Returns a sentence that says why it cannot; empty: it did.
  [[nodiscard]] std::string restore(const Api& api, const Call& call, const KvPeers::Fetched& fetched, const std::vector<tessera::Token>& prompt);
  void count(const char* result, std::uint64_t bytes, double seconds);

  Url address_;
  KvExports exports_;
  bool has_peers_;
  mutable std::mutex mutex_;
  std::map<std::string, std::uint64_t> imports_;  // by result
  std::uint64_t fetched_bytes_ = 0;
  double fetch_seconds_ = 0.0;
  KvPeers peers_;  // destroyed first, as its threads call this object
};

// GET /v1/kv/ID: sends an export.
void give_kv(const Models& models, const Call& call);

}  // namespace server
