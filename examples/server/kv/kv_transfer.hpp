// Prefill and decode on different servers: one server computes a prompt, and another server continues from the prompt. Requests ask for
// this by the field `kv_transfer_params`, in the form of llm-d's sidecar, which copies the field from one answer to the next request:
//   {"do_remote_decode": true}
//       This server computes the prompt and one token, and keeps the prompt for another server (kv_exports.hpp). The answer's field has the
//       next form, which says where the prompt is.
//   {"do_remote_prefill": true, "tessera": {"host", "port", "id", "bytes"}}
//       This server fetches the prompt, so that the request finds the prompt's pages in the prefix index. If anything fails, this server
//       computes the prompt.
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
// Reads the field. `streams`: the answer is a stream. A stream cannot say where its prompt is kept, so exports are then refused.
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
  // Makes the plan's answer say where its prompt can be fetched. Exception: nothing is kept if the prompt without its last token has no
  // whole page. `page_tokens`: tokens of a page, at least 1.
  void export_prompt(AnswerPlan& plan, std::size_t page_tokens, const Call& call);
  // Fetches the prompt that the wish names, if there is one, and then calls `start`, on any thread. Answers errors that `start` throws.
  void import_prompt(const Api& api, const Call& call, const KvWish& wish, std::vector<tessera::Token> prompt, std::function<void()> start);
  // Returns the figures in Prometheus' text format.
  [[nodiscard]] std::string metrics() const;

 private:
  // Restores the fetched session, so that the prefix index has its pages. Returns an empty text, or a sentence that says why this failed.
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
