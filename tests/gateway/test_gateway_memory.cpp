// The memory of questions that wait for another client's answer.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "counted_new.hpp"
#include "flights.hpp"
#include "requests/question.hpp"

namespace test_gateway_memory {

using namespace gateway;

namespace {

// A conversation of about `size` bytes that ends with a short question.
std::string long_conversation(std::size_t size) {
  std::string body = R"({"model":"auto","temperature":0.1,"messages":[)";
  while (body.size() < size) body += R"({"role":"assistant","content":"a sentence of an earlier answer"},)";
  return body + R"({"role":"user","content":"and now?"}]})";
}

}  // namespace

TEST_CASE("a question that is put away takes no memory but its text, and is the same when it is taken up", "[gateway]") {
  const std::string body = long_conversation(1'000'000);
  const Question reference = read_question(Api::chat, body, {});
  const std::string whole = reference.body.dump();
  counted::Scope scope;
  Question question = read_question(Api::chat, body, {});
  CHECK(counted::live > body.size());  // several times as much
  put_away(question);
  CHECK(counted::live < 4096);
  take_up(question);
  const std::size_t taken = counted::live;
  take_up(question);
  CHECK(counted::live == taken);
  scope.stop();
  CHECK(question.body.dump() == whole);
  CHECK(question.text == "and now?");
}

TEST_CASE("only questions that wait for a flight are put away, each before it waits", "[gateway]") {
  const std::string body = long_conversation(500'000);
  constexpr int kWaiters = 8;
  Flights flights;
  int leaders_put_away = 0;
  auto leader = flights.join("q", [] { return false; }, [&] { ++leaders_put_away; });
  REQUIRE(leader.lead);
  CHECK(leaders_put_away == 0);
  counted::Scope scope;
  std::atomic<int> waiting{0}, answered{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kWaiters; ++i) {
    threads.emplace_back([&] {
      Question question = read_question(Api::chat, body, {});
      const auto joined = flights.join("q", [] { return false; }, [&] {
        put_away(question);
        ++waiting;
      });
      if (joined.answer) ++answered;
    });
  }
  while (waiting < kWaiters) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(counted::live < body.size());  // of all together
  leader.lead->land(Answer{.text = "a", .is_plain = true});
  for (std::thread& thread : threads) thread.join();
  scope.stop();
  CHECK(answered == kWaiters);
}

}  // namespace test_gateway_memory
