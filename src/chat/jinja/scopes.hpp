// Guards (RAII) for scopes of variables and for captures of output. The destructor of a guard ends the scope or the capture.
#pragma once

#include "chat/jinja/evaluator.hpp"

namespace tessera::jinja {

class Evaluator::ScopeGuard {
 public:
  ScopeGuard(Evaluator& of, std::uint32_t parent) : of_(of), outer_(of.scope_) {
    of.scopes_.push_back({parent, ++of.serial_, of.bindings_.size()});
    of.scope_ = static_cast<std::uint32_t>(of.scopes_.size() - 1);
  }
  ~ScopeGuard() {
    of_.bindings_.resize(of_.scopes_.back().first);
    of_.scopes_.pop_back();
    of_.scope_ = outer_;
  }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  Evaluator& of_;
  std::uint32_t outer_;
};

class Evaluator::Capture {
 public:
  explicit Capture(Evaluator& of) : of_(of), builder_(of.budget_), outer_(of.capture_) { of.capture_ = &builder_; }
  ~Capture() { of_.capture_ = outer_; }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  [[nodiscard]] Value finish() { return builder_.finish(); }

 private:
  Evaluator& of_;
  Builder builder_;
  Builder* outer_;
};

}  // namespace tessera::jinja
