// What a host that compiles for debugging is told when it reads an error as a value.
#undef NDEBUG
#include <tessera/core/result.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

#include "catch.hpp"

using namespace tessera;

namespace {

struct Death {
  int signal;        // 0: it lived
  std::string said;  // on stderr
};

template <class Act>
Death in_a_child(Act act) {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);  // not the test program's report
    dup2(ends[1], 2);
    act();
    _exit(0);
  }
  close(ends[1]);
  Death death{};
  std::array<char, 256> buffer;
  for (ssize_t n = 0; (n = read(ends[0], buffer.data(), buffer.size())) > 0;) death.said.append(buffer.data(), static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  death.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return death;
}

template <class Act>
void expect_words(Act act, const std::string& words) {
  const Death death = in_a_child(act);
  CHECK(death.signal == SIGABRT);
  CHECK(death.said == "tessera: " + words + "\n");
}

volatile int sink = 0;

}  // namespace

TEST_CASE("compiled for debugging, an error that is read as a value says which error it is") {
  Result<std::string> wrong = Error(ErrorCode::not_found, "no such file", "model.gguf");
  const std::string words = "the value of a Result that is an error was read: model.gguf: no such file";
  expect_words([&] { sink = static_cast<int>(wrong->size()); }, words);
  expect_words([&] { sink = static_cast<int>((*wrong).size()); }, words);
  expect_words([&] { sink = static_cast<int>(wrong.value().size()); }, words);
  expect_words([&] { sink = static_cast<int>((*std::move(wrong)).size()); }, words);
}

TEST_CASE("and so does an error that is not there") {
  Result<int> right = 3;
  Status fine;
  expect_words([&] { sink = static_cast<int>(right.error().code()); }, "the error of a Result that is a value was read");
  expect_words([&] { sink = static_cast<int>(fine.error().code()); }, "the error of a Status that is a success was read");
}

TEST_CASE("what is there is read three ways") {
  Result<std::string> right = std::string("abc");
  CHECK(*right == "abc");
  CHECK(right->size() == 3);
  CHECK(right.value() == "abc");
  CHECK(std::move(right).value() == "abc");
  CHECK(in_a_child([] {}).signal == 0);
}
