// The KV cache against a map from positions to stamps, in random walks over all operations (machine/). RapidCheck makes
// the walks and shrinks one that fails.
//   TESSERA_TEST_OPERATIONS  how many operations; 1,000,000, fewer under a sanitizer
//   RC_PARAMS                RapidCheck's, for another seed: "seed=7"
//   TESSERA_TEST_ISOLATED    if set, every walk runs in a process of its own, so that one that crashes is shrunk too
#include <rapidcheck.h>
#include <rapidcheck/detail/TestListenerAdapter.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>

#include "catch.hpp"
#include "machine/program.hpp"

namespace test_kv_machine {

using namespace tessera;
using namespace tessera::tests;

namespace {

constexpr std::size_t kWalk = 250;  // operations

std::uint64_t operations_wanted() {
  if (const char* given = std::getenv("TESSERA_TEST_OPERATIONS"); given != nullptr) {
    return std::strtoull(given, nullptr, 10);
  }
#if defined(__SANITIZE_ADDRESS__)
  return 100'000;
#elif defined(__SANITIZE_THREAD__)
  return 5'000;  // two threads, and only one in most operations
#else
  return 1'000'000;
#endif
}

// 231044 as 231,044.
std::string readable(std::uint64_t n) {
  return n < 1000 ? std::to_string(n) : fmt::format("{},{:03}", readable(n / 1000), n % 1000);
}

std::string report(const Counts& counts) {
  std::string text = readable(counts.total) + " operations:";
  for (std::size_t i = 0; i < Machine::operations().size(); ++i) {
    text += fmt::format("{} {} {}", i == 0 ? "" : ",", Machine::operations()[i].name, readable(counts.operations[i]));
  }
  const std::pair<const char*, std::uint64_t> events[] = {
      {"refused for want of pages", counts.refused_pages},
      {"refused by the capacity", counts.refused_capacity},
      {"refused for what the cache is", counts.refused_state},
      {"allocation failures", counts.allocation_failures},
      {"prefixes found", counts.prefix_hits},
      {"tokens in them", counts.prefix_tokens},
      {"pages copied before a write", counts.copies},
      {"pages evicted", counts.evictions},
      {"pages passed by a window", counts.pages_passed},
      {"truncated behind a window", counts.window_resets},
      {"ends moved over what a window had passed", counts.tails_moved},
      {"pages written to the file", counts.pages_written},
      {"pages read from it", counts.pages_read},
      {"groups of layers at most", counts.most_groups},
      {"layers that shared a place", counts.shared_places},
      {"caches at most", counts.most_caches},
      {"holders of a page at most", counts.most_sharers}};
  for (const auto& [name, n] : events) text += fmt::format("\n  {} {}", name, readable(n));
  return text;
}

void walk(const Program& program, Counts& counts) {
  Machine machine(setup_of(program.setup), counts);
  for (const Command& command : program.commands) machine.run(command);
  machine.finish();
}

// In a child: what it finds wrong or dies of is an exception here. Its counts are lost.
void walk_isolated(const Program& program) {
  int ends[2];
  expect(::pipe(ends) == 0, "no pipe");
  const ::pid_t child = ::fork();
  expect(child >= 0, "no process");
  if (child == 0) {
    for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL}) std::signal(signal, SIG_DFL);  // not Catch's
    try {
      Counts counts;
      walk(program, counts);
    } catch (const std::exception& e) {
      const std::string_view what = e.what();
      ::_exit(::write(ends[1], what.data(), what.size()) >= 0 ? 1 : 2);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string what(1000, '\0');
  const auto length = ::read(ends[0], what.data(), what.size());
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  what.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  expect(!WIFSIGNALED(status), "signal {}", WTERMSIG(status));
  expect(status == 0, "{}", what);
}

}  // namespace

TEST_CASE("random walks over the KV cache keep every promise", "[kv][walk]") {
  Counts counts;
  rc::detail::TestParams params;
  params.seed = 1;
  if (std::getenv("RC_PARAMS") != nullptr) params = rc::detail::configuration().testParams;
  const std::uint64_t wanted = operations_wanted();
  params.maxSuccess = static_cast<int>((wanted + kWalk - 1) / kWalk);
  const bool isolated = std::getenv("TESSERA_TEST_ISOLATED") != nullptr;
  const auto property = [&] {
    const Program program = *programs(kWalk);
    if (isolated) walk_isolated(program);
    else walk(program, counts);
  };
  rc::detail::TestListenerAdapter listener;  // silent
  const auto result = rc::detail::checkTestable(property, rc::detail::TestMetadata{}, params, listener,
                                                std::unordered_map<std::string, rc::detail::Reproduce>{});
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  INFO(message.str());
  REQUIRE(result.is<rc::detail::SuccessResult>());

  if (isolated) return;
  std::cout << report(counts) << std::endl;
  CHECK(counts.total >= wanted);
  if (wanted < 50'000) return;
  // That a walk comes where it should: each of these is one operation of a thousand or more.
  for (std::size_t i = 0; i < Machine::operations().size(); ++i) CHECK(counts.operations[i] > wanted / 1000);
  for (const std::uint64_t n :
       {counts.refused_pages, counts.refused_capacity, counts.refused_state, counts.copies, counts.allocation_failures,
        counts.prefix_hits, counts.evictions, counts.pages_passed, counts.pages_written, counts.pages_read,
        counts.shared_places}) {
    CHECK(n > wanted / 1000);
  }
  CHECK(counts.most_groups == 3);
}

TEST_CASE("a walk that goes wrong is noticed", "[kv][walk]") {
  const auto command = [](std::string_view name, std::uint8_t a) {
    const auto all = Machine::operations();
    const auto at = std::ranges::find(all, name, &Machine::Operation::name) - all.begin();
    return Command{.operation = static_cast<std::uint8_t>(at), .which = 0, .a = a, .b = 15};
  };
  Counts counts;
  const auto with = [&](auto&& mischief) {
    Machine machine({}, counts);
    for (const Command& c : {command("create", 0), command("append", 20), command("fork", 0)}) machine.run(c);
    mischief(machine.caches());
    machine.run(command("evict", 0));
    machine.finish();
  };
  CHECK_NOTHROW(with([](std::vector<Twin>&) {}));
  CHECK_THROWS_AS(with([](std::vector<Twin>& caches) {  // a write to a page that another one holds
                    caches[0].stamps[3] = 1;
                    Records().write(caches[0].cache, 3, std::span(caches[0].stamps).subspan(3, 1));
                  }),
                  Broken);
  CHECK_THROWS_AS(with([](std::vector<Twin>& caches) { caches[1].cache.truncate(20); }), Broken);
  CHECK_THROWS_AS(with([](std::vector<Twin>& caches) { caches[0].layout.page_tokens = 64; }), Broken);
  CHECK_THROWS_AS(with([](std::vector<Twin>& caches) { (void)caches[0].cache.reserve(39); }), Broken);
}

}  // namespace test_kv_machine
