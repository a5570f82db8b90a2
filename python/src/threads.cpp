#include "threads.hpp"

#include <string>
#include <system_error>

namespace tessera::python {

namespace {

thread_local int callbacks = 0;  // callbacks of the library that run on this thread
unsigned long main_thread = 0;
std::atomic<bool> ending = false;

}  // namespace

Unlocked::~Unlocked() {
  while (ending && !on_main_thread()) std::this_thread::sleep_for(std::chrono::hours(1));
  PyEval_RestoreThread(state_);
}

void begin_ending() noexcept { ending = true; }

InCallback::InCallback() noexcept { ++callbacks; }
InCallback::~InCallback() { --callbacks; }
bool InCallback::here() noexcept { return callbacks != 0; }

void refuse_in_callback(const char* what) {
  if (!InCallback::here()) return;
  raise(ErrorCode::invalid_state,
        std::string(what) +
            " was called within a callback of the library (a stage or on_ready), whose call it "
            "would wait for: call it from another thread, or after the callback");
}

bool on_main_thread() noexcept { return PyThread_get_thread_ident() == main_thread; }
void remember_main_thread() {
  main_thread = nb::cast<unsigned long>(nb::module_::import_("threading").attr("main_thread")().attr("ident"));
}

void check_signals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

Use::Claim Use::change(const char* what) {
  int none = 0;
  if (!users_.compare_exchange_strong(none, kChanges, std::memory_order_acquire)) {
    raise(ErrorCode::invalid_state, std::string("the ") + what +
                                        " is in use by another thread or by a callback of this one: let one call at a "
                                        "time use it, or give each thread its own");
  }
  return {*this, kChanges};
}

Use::Claim Use::read(const char* what) {
  if (users_.fetch_add(1, std::memory_order_acquire) >= kChanges) {
    users_.fetch_sub(1, std::memory_order_release);
    raise(ErrorCode::invalid_state, std::string("the ") + what +
                                        " is being changed by another thread or by the call that this callback belongs "
                                        "to: read it afterwards");
  }
  return {*this, 1};
}

void let_go(std::shared_ptr<void> object) noexcept {
  if (InCallback::here()) {
    try {
      std::thread([last = std::move(object)]() mutable { last.reset(); }).detach();
    } catch (...) {  // no thread is available: the object is destroyed below
    }
  }
  if (object == nullptr) return;
  const Unlocked released;
  object.reset();
}

}  // namespace tessera::python
