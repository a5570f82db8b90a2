// Turns exceptions of the host's callbacks (of the program that uses the library) into errors that name the callback. Such an exception
// must not look like a defect of the library. Code that cannot return an error runs a callback by call_host(). If the callback throws,
// call_host() throws CallbackFailed, which has the callback's name. The next guard() up the stack catches CallbackFailed and returns it as
// an error.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <tessera/core/result.hpp>

namespace tessera::detail {

class CallbackFailed : public std::exception {
 public:
  CallbackFailed(std::string_view name, std::string_view what)
      : text_(std::string(name) + " threw: " + std::string(what)) {}
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

// Runs a callback of the host and returns its result. `name`: the callback's name in the public API, for example "SchedulerOptions::clock".
// If the callback throws, throws CallbackFailed instead. Exception: bad_alloc is passed on, because it becomes out_of_memory.
template <class Fn>
decltype(auto) call_host(std::string_view name, Fn&& fn) {
  try {
    return std::forward<Fn>(fn)();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw CallbackFailed(name, error.what());
  } catch (...) {
    throw CallbackFailed(name, "an exception of an unknown type");
  }
}

}  // namespace tessera::detail
