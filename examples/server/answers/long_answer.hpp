// An answer that is computed in slices on the workers, so that other requests can run in between (Workers::post_long()). Ends early if the
// client has gone. Errors are answered in the form of the path's API.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "apis/api.hpp"

namespace server {

class LongAnswer {
 public:
  explicit LongAnswer(const Call& call) : lease_(call.lease), kind_(api_at(call.request.path)), reply_(call.reply), on_answered_(call.on_answered) {}
  virtual ~LongAnswer() = default;

  // Computes a slice. Returns true when the work is over.
  bool advance() {
    try {
      if (reply_->gone()) {
        count_begun();
        return report(499);
      }
      if (!work()) return false;
      reply_->send({.body = body()});
      return report(200);
    } catch (const ApiError& error) {
      return refuse(error);
    } catch (const std::bad_alloc&) {
      return refuse(ApiError(503, "The server is out of memory for this request."));
    } catch (const std::exception& error) {
      return refuse(ApiError(500, error.what()));
    }
  }

 protected:
  // Computes a slice. Returns true when all is computed. Throws ApiError.
  virtual bool work() = 0;
  // Returns the body of the answer.
  virtual std::string body() = 0;
  // Adds to report_ the tokens of work that was begun, but not finished.
  virtual void count_begun() {}

  AnswerReport report_;

 private:
  bool refuse(const ApiError& error) {
    reply_->send(to_response(error, kind_));
    report_.error = error.what();
    return report(error.status);
  }
  bool report(unsigned status) {
    report_.status = status;
    on_answered_(report_);
    return true;
  }

  ModelLease lease_;
  ApiKind kind_;
  HttpReplyPtr reply_;
  OnAnswered on_answered_;
};

}  // namespace server
