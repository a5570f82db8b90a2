// Standard streams in odd states, and Ctrl-C.
#include <sys/ioctl.h>

#include <chrono>
#include <thread>

#include "program.hpp"

namespace test_cli_streams {

using namespace tessera::tests::cli;

namespace {

const Args kRun = {"-m", kTiny, "--prompt-ids", "1", "-n", "60", "--ignore-eos", "--greedy", "--print-tokens"};

// A run that stands still in the middle of its text: standard output is a pipe that has room for a few tokens only.
class BlockedRun {
 public:
  BlockedRun() {
    REQUIRE(pipe(pipe_) == 0);
    for (const int end : pipe_) fcntl(end, F_SETFD, FD_CLOEXEC);
    const int size = fcntl(pipe_[1], F_SETPIPE_SZ, 4096);
    REQUIRE(size >= 4096);
    filler_ = size - 8;
    const std::string filler(static_cast<std::size_t>(filler_), '.');
    REQUIRE(write(pipe_[1], filler.data(), filler.size()) == static_cast<ssize_t>(filler_));
    pid_ = start(kProgram, kRun, fileno(in_.get()), pipe_[1], fileno(err_.get()));
    close(pipe_[1]);
    // The first tokens are there: it generates.
    int available = 0;
    for (int i = 0; i < 6000 && available <= filler_; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      ioctl(pipe_[0], FIONREAD, &available);
    }
    REQUIRE(available > filler_);
  }
  BlockedRun(const BlockedRun&) = delete;
  BlockedRun& operator=(const BlockedRun&) = delete;
  ~BlockedRun() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    if (pipe_[0] >= 0) close(pipe_[0]);
  }

  void interrupt() const { kill(pid_, SIGINT); }
  // Nobody reads any more.
  void leave() { close(std::exchange(pipe_[0], -1)); }

  // Reads the rest and waits.
  Outcome finish() {
    std::string out;
    char chunk[4096];
    for (ssize_t n = 0; pipe_[0] >= 0 && (n = read(pipe_[0], chunk, sizeof chunk)) > 0;) {
      out.append(chunk, static_cast<std::size_t>(n));
    }
    const int status = wait_for(std::exchange(pid_, -1));
    return {status, out.substr(std::min(out.size(), static_cast<std::size_t>(filler_))), content_of(err_.get())};
  }

  // True when it has ended by itself within ten seconds; `nudge` is done until then.
  template <class F>
  bool ends(const F& nudge) const {
    for (int i = 0; i < 1000; ++i) {
      nudge();
      siginfo_t info = {};
      if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_) {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

 private:
  int pipe_[2] = {-1, -1};
  int filler_ = 0;
  pid_t pid_ = -1;
  File in_ = scratch();
  File err_ = scratch();
};

}  // namespace

TEST_CASE("Ctrl-C ends the text, shows the figures, and has status 130") {
  if (lacks_program()) return;
  BlockedRun blocked;
  blocked.interrupt();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // for the program to take note before it goes on
  const Outcome got = blocked.finish();
  INFO(got.err);
  CHECK(got.status == 130);
  CHECK(got.out.ends_with("\n"));
  CHECK(ids_in(got.out).size() < 60);
  CHECK_THAT(got.err, Catch::Contains("; interrupted]\n"));
}

TEST_CASE("a second Ctrl-C ends a program that hangs") {
  if (lacks_program()) return;
  BlockedRun blocked;
  REQUIRE(blocked.ends([&] { blocked.interrupt(); }));
  CHECK(blocked.finish().status == 128 + SIGINT);
}

TEST_CASE("a reader that leaves ends the program quietly") {
  if (lacks_program()) return;
  BlockedRun blocked;
  blocked.leave();
  const Outcome got = blocked.finish();
  CHECK(got.status == 128 + SIGPIPE);
  CHECK(got.err.empty());
}

TEST_CASE("a pipe to head is quiet") {
  if (lacks_program()) return;
  const Outcome got = run_shell("\"$0\" \"$@\" 2>/dev/null | head -c 4", kRun);
  CHECK(got.status == 0);
  CHECK(got.out.size() == 4);
  CHECK(got.err.empty());
}

TEST_CASE("standard output that cannot be written is a failure") {
  if (lacks_program()) return;
  for (const std::string to : {">&-", ">/dev/full"}) {
    const Outcome got = run_shell("exec \"$0\" \"$@\" " + to, kRun);
    INFO(to);
    CHECK(got.status == 1);
    CHECK(is_one_complaint(got.err));
  }
}

TEST_CASE("closed standard input and standard error do no harm") {
  if (lacks_program()) return;
  const std::string want = run(kRun).out;
  CHECK(run_shell("exec \"$0\" \"$@\" <&- 2>&-", kRun).out == want);
  Args from_input = {"-m", kTiny, "--tokenize", "-f", "-"};
  const Outcome got = run_shell("exec \"$0\" \"$@\" <&-", from_input);
  CHECK(got.status == 1);
  CHECK(is_one_complaint(got.err));
}

TEST_CASE("empty standard input is an empty prompt") {
  if (lacks_stories()) return;
  const Outcome got = run({"-m", kStories, "-f", "-", "-n", "10", "--greedy"});
  CHECK(got.status == 0);
  CHECK(got.out == run({"-m", kStories, "-p", "", "-n", "10", "--greedy"}).out);
  CHECK_THAT(got.out, Catch::Contains("Once upon a time"));
}

TEST_CASE("the log goes to standard error, line by line") {
  if (lacks_program()) return;
  Args args = kRun;
  args.insert(args.end(), {"--log-level", "info"});
  const Outcome got = run(args);
  CHECK(got.out == run(kRun).out);
  CHECK_THAT(got.err, Catch::Contains("generate: [info] "));
}

}  // namespace test_cli_streams
