// Errors as values: what a copy costs, and what reading the wrong half of a Result gives.
#include <tessera/core/result.hpp>

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "counted_new.hpp"

namespace test_result {
using namespace tessera;

static_assert(sizeof(Error) == 2 * sizeof(void*));
static_assert(sizeof(Status) == sizeof(Error));
static_assert(sizeof(Result<int>) == 3 * sizeof(void*));
static_assert(std::is_nothrow_copy_constructible_v<Error> && std::is_nothrow_copy_assignable_v<Error>);

TEST_CASE("the value of an error is an empty one, and the error of a value is the empty Error") {
  Result<std::string> wrong = Error(ErrorCode::not_found, "no such file", "model.gguf");
  CHECK_FALSE(wrong);
  CHECK(wrong->empty());
  CHECK((*wrong).empty());
  CHECK(wrong.value().empty());
  CHECK((*std::move(wrong)).empty());
  CHECK(wrong.error().text() == "model.gguf: no such file");

  const Result<int> right = 3;
  const Status fine;
  for (const Error& none : {right.error(), fine.error(), Error()}) {
    CHECK(none.empty());
    CHECK(none.code() == ErrorCode::none);
    CHECK(none.text().empty());
    CHECK(to_string(none.code()) == "no error");
  }
}

TEST_CASE("a Result made of an Error is never a success") {
  const Result<int> right = 3;
  const Result<int> passed_on = right.error();
  const Status status = Error();
  CHECK(passed_on.error().code() == ErrorCode::internal);
  CHECK(status.error().code() == ErrorCode::internal);
}

TEST_CASE("a moved-from error is still one") {
  Result<std::vector<int>> from = Error(ErrorCode::io, "a read failed", "x");
  const Error moved = std::move(from).error();
  const Result<std::vector<int>> to = std::move(from);
  CHECK(from.error().text() == "x: a read failed");
  CHECK(to.error().text() == "x: a read failed");
  CHECK(moved.text() == "x: a read failed");
}

TEST_CASE("what is there is read three ways") {
  Result<std::string> right = std::string("abc");
  CHECK(*right == "abc");
  CHECK(right->size() == 3);
  CHECK(right.value() == "abc");
  CHECK(std::move(right).value() == "abc");
}

TEST_CASE("the copy of an error allocates nothing, and without memory for its texts an error keeps its code") {
  const std::string sentence(300, 's');
  const Error whole(ErrorCode::over_budget, sentence, sentence);
  counted::Scope none(0, counted::Failure::from_then_on);
  const Error copy = whole;
  const Result<std::string> result = copy;
  const Status status = result.error();
  const Error short_of_memory(ErrorCode::over_budget, sentence, sentence);
  const Error again = short_of_memory;
  none.stop();
  CHECK(status.error().message() == sentence);
  CHECK(again.code() == ErrorCode::over_budget);
  CHECK(again.message() == "out of memory");
  CHECK(again.place().empty());
}

}  // namespace test_result
