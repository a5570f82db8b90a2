// Error objects, and their making from exceptions.
#include <array>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include <tessera/core/result.hpp>

#include "call.hpp"
#include "values/words.hpp"

// An error: one allocation that holds the struct, then the three texts. Trivial, so that the errors for lack of memory
// need no constructor.
struct tessera_error {
  static constexpr tessera::c::Kind kKind = tessera::c::Kind::error;
  tessera::c::Kind kind;
  std::int32_t code;
  const char* text;
  const char* message;
  const char* place;
};

namespace tessera::c {

namespace {

#define TESSERA_SAME_CODE(upper, lower) static_assert(TESSERA_##upper == static_cast<std::int32_t>(ErrorCode::lower))
TESSERA_SAME_CODE(OK, none);
TESSERA_SAME_CODE(INVALID_ARGUMENT, invalid_argument);
TESSERA_SAME_CODE(INVALID_STATE, invalid_state);
TESSERA_SAME_CODE(NOT_FOUND, not_found);
TESSERA_SAME_CODE(UNSUPPORTED, unsupported);
TESSERA_SAME_CODE(CORRUPT_FILE, corrupt_file);
TESSERA_SAME_CODE(IO, io);
TESSERA_SAME_CODE(OUT_OF_MEMORY, out_of_memory);
TESSERA_SAME_CODE(OVER_BUDGET, over_budget);
TESSERA_SAME_CODE(CACHE_FULL, cache_full);
TESSERA_SAME_CODE(CANCELLED, cancelled);
TESSERA_SAME_CODE(CALLBACK_FAILED, callback_failed);
TESSERA_SAME_CODE(NUMERIC, numeric);
TESSERA_SAME_CODE(INTERNAL, internal);
TESSERA_SAME_CODE(DEVICE_ERROR, device_error);
TESSERA_SAME_CODE(BUSY, busy);
TESSERA_SAME_CODE(TOO_LATE, too_late);
#undef TESSERA_SAME_CODE

// The errors of all codes for the case that memory is lacking. These are constants, which tessera_error_free() does not
// free.
constexpr const char* kNoTexts = "out of memory, also for the message of this error";
constexpr std::size_t kCodes = TESSERA_TOO_LATE + 1;
constexpr auto make_errors_without_texts() {
  std::array<tessera_error, kCodes> errors{};
  for (std::size_t i = 0; i < kCodes; ++i)
    errors[i] = {Kind::error, static_cast<std::int32_t>(i), kNoTexts, kNoTexts, ""};
  return errors;
}
constinit std::array<tessera_error, kCodes> errors_without_texts = make_errors_without_texts();

bool is_constant(const tessera_error* error) noexcept {
  return error >= errors_without_texts.data() && error < errors_without_texts.data() + kCodes;
}

// Shortens a long path, key or text of a caller: an error shows its beginning and its end, because the middle says
// least.
constexpr std::size_t kLongestPlace = 512, kLongestMessage = 4096;
void cut_middle(std::string& text, std::size_t most) {
  if (text.size() <= most) return;
  const auto is_inside = [&](std::size_t at) { return at < text.size() && (text[at] & 0xC0) == 0x80; };  // in a character
  std::size_t head = most / 2, tail = text.size() - most / 2;
  while (head > 0 && is_inside(head)) --head;
  while (is_inside(tail)) ++tail;
  text.replace(head, tail - head, "...");
}

tessera_error* without_texts(ErrorCode code) noexcept {
  const auto i = static_cast<std::size_t>(code);
  return &errors_without_texts[i < kCodes ? i : static_cast<std::size_t>(TESSERA_INTERNAL)];
}

tessera_error* new_error(const Error& error) noexcept try {
  std::string message = in_words_of_c(error.message());
  std::string place = in_words_of_c(error.place());
  cut_middle(message, kLongestMessage);
  cut_middle(place, kLongestPlace);
  const std::size_t text = place.empty() ? 0 : place.size() + 2 + message.size() + 1;
  void* block = ::operator new(sizeof(tessera_error) + text + message.size() + 1 + place.size() + 1, std::nothrow);
  if (block == nullptr) return without_texts(error.code());
  char* at = static_cast<char*>(block) + sizeof(tessera_error);
  const auto put = [&at](const std::string& piece) {
    std::memcpy(at, piece.c_str(), piece.size() + 1);
    return std::exchange(at, at + piece.size() + 1);
  };
  const char* message_at = put(message);
  const char* place_at = put(place);
  const char* text_at = message_at;
  if (text != 0) {
    text_at = at;
    put(place);
    at[-1] = ':';
    *at++ = ' ';
    put(message);
  }
  return ::new (block)
      tessera_error{Kind::error, static_cast<std::int32_t>(error.code()), text_at, message_at, place_at};
} catch (...) {  // no memory
  return without_texts(error.code());
}

Error error_of_current_exception() noexcept {
  try {
    throw;
  } catch (const Failure& failure) {
    return failure.error;
  } catch (const std::bad_alloc&) {
    return {ErrorCode::out_of_memory, "out of memory"};
  } catch (const std::length_error&) {
    return {ErrorCode::out_of_memory, "out of memory: a size is beyond what a container can hold"};
  } catch (const std::exception& unexpected) {
    return {ErrorCode::internal, unexpected.what()};
  } catch (...) {
    return {ErrorCode::internal, "an unknown exception"};
  }
}

}  // namespace

void fail(ErrorCode code, std::string_view message, std::string_view place) {
  throw Failure{Error(code, message, place)};
}

void fail_handle(Kind wanted, const void* handle, Kind found, std::string_view parameter) {
  std::string message = "a " + std::string(to_string(wanted)) + " is needed";
  if (handle == nullptr) {
    message += ", and NULL was passed; look at the error of the call that should have made it";
  } else if (found == Kind::freed) {
    message += ", and this handle was freed";
  } else {
    message += ", and this is " + (to_string(found).starts_with("tessera") ? "a " + std::string(to_string(found))
                                                                           : std::string(to_string(found)));
  }
  fail(ErrorCode::invalid_argument, message, parameter);
}

std::int32_t report_current_exception(tessera_error** error) noexcept {
  const Error found = error_of_current_exception();
  if (error != nullptr) *error = new_error(found);
  return static_cast<std::int32_t>(found.code());
}

std::string_view to_string(Kind kind) noexcept {
  switch (kind) {
    case Kind::freed:
      return "handle that was freed";
    case Kind::error:
      return "tessera_error";
    case Kind::text:
      return "tessera_text";
    case Kind::tokens:
      return "tessera_tokens";
    case Kind::stop:
      return "tessera_stop";
    case Kind::engine:
      return "tessera_engine";
    case Kind::detokenizer:
      return "tessera_detokenizer";
    case Kind::session:
      return "tessera_session";
    case Kind::outputs:
      return "tessera_outputs";
    case Kind::sampler:
      return "tessera_sampler";
    case Kind::grammar:
      return "tessera_grammar";
    case Kind::generation:
      return "tessera_generation";
    case Kind::piece:
      return "tessera_piece";
    case Kind::conversation:
      return "tessera_conversation";
    case Kind::answer:
      return "tessera_answer";
    case Kind::scheduler:
      return "tessera_scheduler";
    case Kind::request:
      return "tessera_request";
    case Kind::adapter:
      return "tessera_adapter";
  }
  return "no handle of this library";
}

}  // namespace tessera::c

using tessera::c::is_a;

int32_t tessera_error_code(const tessera_error* error) { return is_a(error) != nullptr ? error->code : TESSERA_OK; }
const char* tessera_error_text(const tessera_error* error) { return is_a(error) != nullptr ? error->text : ""; }
const char* tessera_error_message(const tessera_error* error) { return is_a(error) != nullptr ? error->message : ""; }
const char* tessera_error_place(const tessera_error* error) { return is_a(error) != nullptr ? error->place : ""; }

void tessera_error_free(tessera_error* error) {
  if (is_a(error) == nullptr || tessera::c::is_constant(error)) return;
  error->kind = tessera::c::Kind::freed;
  ::operator delete(error);
}

const char* tessera_code_name(int32_t code) {
  const std::string_view name = tessera::to_string(static_cast<tessera::ErrorCode>(code));
  return code >= 0 && code <= TESSERA_TOO_LATE ? name.data() : "?";
}
