// Random walks of sessions of one model: they are appended to, cut, forked, converted, saved and restored, suspended, stopped in the
// middle of a step and left without room; after each of these the last logits are those of the session's tokens computed from nothing.
#pragma once

#include <filesystem>
#include <memory>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include <unistd.h>

#include "engine/models.hpp"

namespace tessera::test {

// Asks for a stop at the n-th of a step's calls.
class StoppingExecutor final : public Executor {
 public:
  std::size_t concurrency() const noexcept override { return 2; }
  void parallel_for(std::size_t n, void (*task)(void*, std::size_t), void* context) noexcept override {
    if (left_ > 0 && --left_ == 0) stop_.request_stop();
    for (std::size_t i = n; i-- > 0;) task(context, i);
  }
  std::stop_token stop_after(std::size_t calls) {
    left_ = calls;
    stop_ = {};
    return stop_.get_token();
  }

 private:
  std::size_t left_ = 0;
  std::stop_source stop_;
};

class SessionWalk {
 public:
  SessionWalk(const std::string& model, std::vector<DType> types, std::uint32_t seed)
      : types_(std::move(types)), random_(seed), twins_(load_golden(model)), engine_(load(model)),
        text_(read_tokens(golden_dir() / (model + ".tokens.txt"))) {
    all_.reserve(8);  // they are referred to
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      INFO("step " << i);
      if (all_.empty() || (all_.size() < 4 && below(6) == 0)) all_.push_back(made());
      Session& session = all_[below(all_.size())];
      step(session);
      if (session.suspended()) continue;
      check_twin(session);
    }
  }

  std::size_t stopped = 0, full = 0, suspended = 0;  // that happened

 private:
  // Room for two and a half sessions of the whole context.
  Engine load(const std::string& model) {
    const auto need = [&] {
      Session session = must(twins_.session({.kv = {.dtype = types_.front(), .page_tokens = 16}}));
      const auto tokens = read_tokens(golden_dir() / (model + ".tokens.txt"));
      must(session.append(std::span(tokens).first(std::min<std::size_t>(tokens.size(), session.kv().capacity()))));
      return twins_.kv_figures().used_bytes;
    };
    EngineOptions options;
    options.executor = executor_;
    options.step_rows = 8;
    options.kv_budget = need() * 5 / 2;
    options.kv_file = std::filesystem::temp_directory_path() / ("tessera-walk-" + std::to_string(::getpid()) + "-" + model);
    options.kv_file_bytes = std::uint64_t{1} << 24;
    return load_golden(model, std::move(options));
  }

  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }

  Session made() {
    return must(engine_.session({.kv = {.dtype = types_[below(types_.size())],
                                        .kind = below(3) == 0 ? KvKind::contiguous : KvKind::paged,
                                        .page_tokens = 16}}));
  }

  template <class T>
  bool has_room(const Result<T>& result) {
    if (result) return true;
    REQUIRE(result.error().code() == ErrorCode::cache_full);
    ++full;
    return false;
  }

  void step(Session& session) {
    const std::size_t length = session.tokens().size();
    const bool is_paged = session.kv().kind() == KvKind::paged;
    switch (below(9)) {
      case 0:
      case 1:
      case 2: {
        const std::size_t room = session.kv().capacity() - length, n = 1 + below(24);
        if (n > room) break;
        std::vector<Token> some(n);
        for (Token& token : some) token = text_[below(4)];
        const std::stop_token stop = below(3) == 0 ? executor_->stop_after(1 + below(12)) : std::stop_token();
        const auto logits = session.append(some, {.stop = stop});
        CHECK(session.tokens().size() == (logits ? length + n : length));
        if (!logits && logits.error().code() == ErrorCode::cancelled) ++stopped;
        else if (!has_room(logits)) must(all_.front().clear());  // so that the others have more
        break;
      }
      case 3: must(session.truncate(below(length + 1))); break;
      case 4:
        if (is_paged && all_.size() < 6 && !session.suspended()) all_.push_back(must(session.fork()));
        break;
      case 5: {
        if (session.suspended()) break;
        std::vector<std::byte> saved;
        must(session.save([&](std::span<const std::byte> bytes) {
          saved.insert(saved.end(), bytes.begin(), bytes.end());
          return Status();
        }));
        auto restored = engine_.restore(saved, {.kv = {.dtype = session.kv().dtype(), .page_tokens = 32}});
        if (has_room(restored)) session = *std::move(restored);
        break;
      }
      case 6: {
        if (session.suspended()) break;
        auto converted = session.convert({.dtype = session.kv().dtype(), .page_tokens = 64});
        if (has_room(converted)) session = *std::move(converted);
        break;
      }
      case 7:
        if (!session.suspended()) CHECK(must(session.verify()).verdict == Verdict::same);
        break;
      case 8:
        if (session.suspended()) {
          if (!session.resume()) ++full;
        } else if (is_paged && length > 0) {
          must(session.suspend());
          ++suspended;
        }
        break;
    }
  }

  // What is pending is computed; then the two agree.
  void check_twin(Session& session) {
    if (session.tokens().empty()) return;
    const std::vector<Token> tokens(session.tokens().begin(), session.tokens().end());
    const auto logits = session.append({});
    if (!has_room(logits)) return must(session.clear());
    CHECK(session.position() == tokens.size());
    const std::vector<float> mine(logits->values.begin(), logits->values.end());
    Session fresh = must(twins_.session({.kv = {.dtype = session.kv().dtype(), .kind = KvKind::contiguous, .prefix = PrefixReuse::off}}));
    const std::size_t piece = 1 + below(9);
    std::vector<float> other;
    for (std::size_t at = 0; at < tokens.size(); at += piece) {
      const Logits last = must(fresh.append(std::span(tokens).subspan(at, std::min(piece, tokens.size() - at))));
      other.assign(last.values.begin(), last.values.end());
    }
    REQUIRE(same_bits(mine, other));
  }

  std::vector<DType> types_;
  std::mt19937 random_;
  std::shared_ptr<StoppingExecutor> executor_ = std::make_shared<StoppingExecutor>();
  Engine twins_, engine_;
  std::vector<Token> text_;
  std::vector<Session> all_;
};

}  // namespace tessera::test
