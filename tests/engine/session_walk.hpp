// Random walks of sessions of one model: they are appended to, cut, edited, forked, converted, saved and restored, suspended, stopped in
// the middle of a step and left without room; after each of these the last logits are those of the session's tokens computed from nothing,
// or of an edited session those of one that does the same edits alone. Where a model's tokens cannot be taken out, that is refused.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include <unistd.h>

#include "engine/kv_twins.hpp"

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
  SessionWalk(const std::string& model, std::vector<DType> types, std::uint32_t seed, EngineOptions options = {})
      : types_(std::move(types)), random_(seed), twins_(load_golden(model, options)), engine_(load(model, std::move(options))),
        text_(read_tokens(golden_dir() / (model + ".tokens.txt"))) {
    all_.reserve(8);  // they are referred to
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      INFO("step " << i);
      if (all_.empty() || (all_.size() < 4 && below(6) == 0)) all_.push_back({made()});
      Walker& walker = all_[below(all_.size())];
      step(walker);
      if (walker.session.suspended()) continue;
      check_twin(walker);
    }
  }

  std::size_t stopped = 0, full = 0, suspended = 0, edited = 0, refused = 0;  // that happened
  std::function<void(Session& session, Session& twin)> compare;                // what else is to be the same

 private:
  struct Walker {
    Session session;
    std::vector<Edit> edits = {};    // what a twin does again; empty: it only appends
    std::vector<Token> since = {};   // tokens computed after the last edit
  };

  // Room for two and a half sessions of the whole context.
  Engine load(const std::string& model, EngineOptions options) {
    const auto need = [&] {
      Session session = must(twins_.session({.kv = {.dtype = types_.front(), .page_tokens = 16}}));
      const auto tokens = read_tokens(golden_dir() / (model + ".tokens.txt"));
      must(session.append(std::span(tokens).first(std::min<std::size_t>(tokens.size(), session.kv().capacity()))));
      return twins_.kv_figures().used_bytes;
    };
    options.executor = executor_;
    options.step_rows = 8;
    options.kv_budget = need() * 5 / 2;
    options.kv_file = std::filesystem::temp_directory_path() /
                      ("tessera-walk-" + std::to_string(::getpid()) + "-" + std::filesystem::path(model).filename().string());
    options.kv_file_bytes = std::uint64_t{1} << 24;
    return load_golden(model, std::move(options));
  }

  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }

  Session made() {
    return must(engine_.session({.kv = {.dtype = types_[below(types_.size())],
                                        .kind = below(3) == 0 ? KvKind::contiguous : KvKind::paged,
                                        .page_tokens = 16}}));
  }

  bool can_edit() const {
    const ModelSpec& spec = engine_.spec();
    return !spec.has_draft_heads() && std::ranges::none_of(spec.layers, &LayerSpec::is_recurrent);
  }

  template <class R>
  bool has_room(const R& result) {
    if (result) return true;
    REQUIRE(result.error().code() == ErrorCode::cache_full);
    ++full;
    return false;
  }

  void clear(Walker& walker) {
    must(walker.session.clear());
    walker.edits.clear();
    walker.since.clear();
  }

  void step(Walker& walker) {
    Session& session = walker.session;
    const std::size_t length = session.tokens().size();
    const bool is_paged = session.kv().kind() == KvKind::paged;
    switch (below(10)) {
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
        if (logits) walker.since.insert(walker.since.end(), some.begin(), some.end());
        else if (logits.error().code() == ErrorCode::cancelled) ++stopped;
        else if (!has_room(logits)) clear(all_.front());  // so that the others have more
        break;
      }
      case 3: truncate(walker, below(length + 1)); break;
      case 4:
        if (is_paged && all_.size() < 6 && !session.suspended()) all_.push_back({must(session.fork()), walker.edits, walker.since});
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
      case 9:
        if (!session.suspended() && length > 2) edit(walker);
        break;
    }
  }

  void truncate(Walker& walker, std::size_t to) {
    const std::size_t length = walker.session.tokens().size();
    must(walker.session.truncate(to));
    if (to < length) note_edit(walker, to, length);
  }

  // Takes out some tokens in the middle, or all but the first and the last ones.
  void edit(Walker& walker) {
    Session& session = walker.session;
    if (session.has_pending() && !has_room(session.append({}))) return clear(walker);
    const std::vector<Token> before(session.tokens().begin(), session.tokens().end());
    const std::size_t first = below(before.size() - 2), last = first + 1 + below(before.size() - 2 - first);
    const Status done = below(2) == 0 ? session.remove(first, last) : session.keep_window(first, before.size() - last);
    if (!can_edit()) {
      REQUIRE(!done);
      CHECK(done.error().code() == ErrorCode::unsupported);
      CHECK(done.error().text().find(engine_.spec().has_draft_heads() ? " heads, whose" : "recurrent layers") != std::string::npos);
      CHECK(std::ranges::equal(session.tokens(), before));
      ++refused;
    } else if (has_room(done)) {
      CHECK(session.edited());
      CHECK(session.tokens().size() == before.size() - (last - first));
      walker.edits.push_back({.appended = std::exchange(walker.since, {}), .first = first, .last = last});
      ++edited;
    }
  }

  // A truncation, which is an edit only of what was edited before.
  static void note_edit(Walker& walker, std::size_t first, std::size_t last) {
    if (first == 0) walker.edits.clear();
    if (walker.edits.empty()) walker.since.resize(first);
    else walker.edits.push_back({.appended = std::exchange(walker.since, {}), .first = first, .last = last});
  }

  Session twin_of(const Walker& walker) {
    const DType type = walker.session.kv().dtype();
    if (!walker.edits.empty()) return replay(twins_, type, walker.edits, walker.since);
    Session fresh = lone_session(twins_, type);
    const std::size_t piece = 1 + below(9);
    for (std::size_t at = 0; at < walker.since.size(); at += piece) {
      must(fresh.append(std::span(walker.since).subspan(at, std::min(piece, walker.since.size() - at))));
    }
    return fresh;
  }

  // What is pending is computed, or the last token again if its logits are not known; then the two agree.
  void check_twin(Walker& walker) {
    Session& session = walker.session;
    if (session.tokens().empty()) return;
    const bool again = session.logits().empty() && !session.has_pending();
    if (!has_room(session.append({}))) return clear(walker);
    if (again && !walker.edits.empty()) {
      note_edit(walker, session.tokens().size() - 1, session.tokens().size());
      walker.since.push_back(session.tokens().back());
    }
    CHECK(session.edited() == !walker.edits.empty());
    Session twin = twin_of(walker);
    REQUIRE(std::ranges::equal(session.tokens(), twin.tokens()));
    CHECK(session.position() == twin.position());
    REQUIRE(same_bits(session.logits(), twin.logits()));
    if (compare) compare(session, twin);
  }

  std::vector<DType> types_;
  std::mt19937 random_;
  std::shared_ptr<StoppingExecutor> executor_ = std::make_shared<StoppingExecutor>();
  Engine twins_, engine_;
  std::vector<Token> text_;
  std::vector<Walker> all_;
};

}  // namespace tessera::test
