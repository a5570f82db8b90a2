// Errors for exceptions that a callback of the host (the program that uses the library) throws. Code that cannot return an error runs a
// callback by call_host(), which turns the callback's exception into CallbackFailed, with the callback's name. The next guard() up the
// stack returns CallbackFailed as an error. So the error names the callback and does not look like a defect of the library.
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

// Runs a callback of the host. `name`: the callback's name in the public API, for example "SchedulerOptions::clock". Throws CallbackFailed
// if the callback throws. Exception: bad_alloc is passed on.
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
