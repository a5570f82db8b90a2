// GET /v1/kv/ID
#include <memory>
#include <mutex>
#include <utility>

#include "apis/api.hpp"
#include "kv/kv_transfer.hpp"

namespace server {

namespace {

constexpr std::size_t kAtOnce = std::size_t{4} << 20;  // about how many bytes are written each time the reader has taken all bytes so far

// Sends an export piece by piece, as fast as its reader takes the pieces.
class Handout : public std::enable_shared_from_this<Handout> {
 public:
  Handout(KvExportPtr made, std::string id, KvTransfers& transfers, HttpReplyPtr reply)
      : made_(std::move(made)), id_(std::move(id)), transfers_(transfers), reply_(std::move(reply)) {}

  void start() {
    reply_->begin_stream({.type = "application/octet-stream", .headers = {{"Cache-Control", "no-store"}}}, {});
    reply_->on_change([self = shared_from_this()] { self->go_on(); });  // this keeps the object alive as long as the reader is there
    go_on();
  }

 private:
  // Writes the next pieces when the reader has taken the earlier ones. Any thread may call.
  void go_on() {
    const std::lock_guard lock(mutex_);
    if (reply_ == nullptr) return;
    if (reply_->gone()) return reply_.reset();
    if (reply_->unsent() > 0) return;
    if (next_ < made_->pieces().size()) {
      for (std::size_t bytes = 0; bytes < kAtOnce && next_ < made_->pieces().size(); ++next_) {
        bytes += made_->pieces()[next_].size();
        reply_->write(made_->pieces()[next_]);
      }
      return;
    }
    transfers_.exports().sent(id_);
    reply_->end_stream();
    reply_.reset();
  }

  KvExportPtr made_;
  std::string id_;
  KvTransfers& transfers_;
  std::mutex mutex_;
  HttpReplyPtr reply_;
  std::size_t next_ = 0;
};

}  // namespace

void give_kv(const Models&, const Call& call) {
  const std::string id = call.request.path.substr(std::string_view("/v1/kv/").size());
  KvExportPtr made = call.kv.exports().find(id, call.caller.tenant);
  if (made == nullptr) throw ApiError(404, "There is no prompt of this id: another server has fetched it, or its time has ended (--kv-export-time).");
  if (call.request.method == "HEAD") return call.reply->send({.body = {}, .type = "application/octet-stream"});  // keeps the export
  std::make_shared<Handout>(std::move(made), id, call.kv, call.reply)->start();
}

}  // namespace server
