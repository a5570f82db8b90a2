// Messages between ranks: damage is found, nonsense is refused, and a rank that gets either stays usable for the next engine.
#include <array>
#include <random>
#include <thread>

#include <sys/socket.h>
#include <unistd.h>

#include "engine/recorded_steps.hpp"
#include "ranks/processes/layer_pages.hpp"
#include "ranks/processes/rank_messages.hpp"
#include "ranks/rank_threads.hpp"
#include "ranks/processes/process_ranks.hpp"
#include "engine/ranks/adapter_message.hpp"
#include "engine/ranks/connect_ranks.hpp"
#include "model/spec/spec_text.hpp"

namespace test_rank_frames {

using namespace tessera;
using namespace tessera::test;

namespace {

struct Ends {
  int a = -1, b = -1;
};
Ends make_ends() {
  int ends[2] = {-1, -1};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
  return {ends[0], ends[1]};
}

// A rank of two that is connected to the other one by `handle`.
std::unique_ptr<detail::ProcessRanks> rank_of_two(std::uint32_t rank, int handle, std::chrono::milliseconds timeout = std::chrono::milliseconds(500)) {
  auto sockets = std::make_unique<detail::SocketLines>(2);
  sockets->set(1 - rank, os::Socket(handle));
  return std::make_unique<detail::ProcessRanks>(rank, std::move(sockets), std::vector<std::string>(2, "the test"), timeout);
}

std::vector<std::byte> read_all(int handle) {
  std::vector<std::byte> bytes(1 << 16);
  const ::ssize_t n = ::recv(handle, bytes.data(), bytes.size(), 0);
  bytes.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return bytes;
}

std::vector<std::byte> random_bytes(std::mt19937& random, std::size_t n) {
  std::vector<std::byte> bytes(n);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

}  // namespace

TEST_CASE("of 10,000 damaged messages each is an error") {
  std::mt19937 random(5);
  for (int i = 0; i < 10'000; ++i) {
    const Ends wire = make_ends();
    const auto message = random_bytes(random, random() % 200);
    std::vector<std::byte> frame;
    {
      const auto sender = rank_of_two(0, wire.a);
      sender->begin_step(3);
      must(sender->send(1, message));
      frame = read_all(wire.b);
    }
    ::close(wire.b);
    REQUIRE(frame.size() == sizeof(detail::FrameHeader) + message.size());
    const Ends second = make_ends();
    const auto receiver = rank_of_two(1, second.a, std::chrono::milliseconds(50));
    const std::size_t at = random() % frame.size();
    frame[at] ^= static_cast<std::byte>(1u << random() % 8);
    if (i % 3 == 0) frame.resize(random() % frame.size());
    REQUIRE(::send(second.b, frame.data(), frame.size(), MSG_NOSIGNAL) == static_cast<::ssize_t>(frame.size()));
    ::close(second.b);
    std::vector<std::byte> got;
    std::uint64_t step = 0;
    const Status status = receiver->receive(0, got, step, std::chrono::milliseconds(50));
    if (status || status.error().code() != ErrorCode::device_error) FAIL("damage at byte " << at << " of " << frame.size() << " was not found");
  }
}

TEST_CASE("ranks gather any sizes, and a stop leaves them in step") {
  std::mt19937 random(9);
  const Ends wire = make_ends();
  const auto a = rank_of_two(0, wire.a, std::chrono::seconds(20)), b = rank_of_two(1, wire.b, std::chrono::seconds(20));
  for (std::uint64_t step = 1; step <= 60; ++step) {
    struct Round {
      std::vector<std::byte> a, b;
    };
    std::vector<Round> rounds(1 + random() % 6);
    for (Round& round : rounds) round = {random_bytes(random, random() % (step % 10 == 0 ? 3'000'000 : 5000)), random_bytes(random, random() % 5000)};
    const std::size_t a_stops = step % 3 == 1 ? random() % rounds.size() : rounds.size(), b_stops = step % 3 == 2 ? random() % rounds.size() : rounds.size();
    const auto run = [&](detail::ProcessRanks& rank, bool is_a, std::size_t stops) {
      rank.begin_step(step);
      for (std::size_t i = 0; i < rounds.size(); ++i) {
        if (i == stops) return rank.stop(Error(ErrorCode::out_of_memory, "no memory for this")), std::string("own");
        std::vector<std::byte> first(rounds[i].a.size()), second(rounds[i].b.size());
        const std::vector<std::span<std::byte>> parts{first, second};
        const Status status = rank.gather(is_a ? rounds[i].a : rounds[i].b, parts);
        if (!status) return status.error().text();
        if ((is_a ? second : first) != (is_a ? rounds[i].b : rounds[i].a)) return std::string("other bytes");
      }
      return std::string();
    };
    std::string of_b;
    std::thread other([&] { of_b = run(*b, false, b_stops); });
    const std::string of_a = run(*a, true, a_stops);
    other.join();
    INFO("step " << step);
    const bool a_stopped = a_stops < rounds.size(), b_stopped = b_stops < rounds.size();
    CHECK((of_a == "own") == a_stopped);
    CHECK((of_b == "own") == b_stopped);
    if (b_stopped) CHECK(of_a.find("no memory for this") != std::string::npos);
    if (a_stopped) CHECK(of_b.find("no memory for this") != std::string::npos);
    if (!a_stopped && !b_stopped) CHECK((of_a.empty() && of_b.empty()));
  }
}

TEST_CASE("a rank that nobody reads is stopped all the same, and the next step goes on") {
  // Three ranks. Rank 0 stops a step while the others have parts on their way that no socket's buffer holds, and is idle for longer than their
  // patience; then all make a step.
  const Ends ab = make_ends(), ac = make_ends(), bc = make_ends();
  std::vector<std::unique_ptr<detail::ProcessRanks>> ranks;
  const std::array<std::array<int, 3>, 3> handles{{{-1, ab.a, ac.a}, {ab.b, -1, bc.a}, {ac.b, bc.b, -1}}};
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    auto sockets = std::make_unique<detail::SocketLines>(3);
    for (std::uint32_t other = 0; other < 3; ++other) {
      if (other != rank) sockets->set(other, os::Socket(handles[rank][other]));
    }
    ranks.push_back(std::make_unique<detail::ProcessRanks>(rank, std::move(sockets), std::vector<std::string>(3, "the test"), std::chrono::milliseconds(700)));
  }
  constexpr std::size_t kPart = 4 << 20;
  const auto gather = [&](std::uint32_t rank, std::array<std::size_t, 3> sizes) {
    std::vector<std::vector<std::byte>> memory;
    std::vector<std::span<std::byte>> parts;
    for (const std::size_t size : sizes) memory.emplace_back(size);
    for (auto& part : memory) parts.emplace_back(part);
    return ranks[rank]->gather(std::vector<std::byte>(sizes[rank], static_cast<std::byte>(rank)), parts);
  };
  // Serves two steps, of which the first is stopped. Returns the first error that should not be.
  const auto serve = [&](std::uint32_t rank, std::array<std::size_t, 3> first) -> Status {
    std::vector<std::byte> message;
    std::uint64_t step = 0;
    if (Status status = ranks[rank]->receive(0, message, step, std::chrono::seconds(20)); !status) return status;
    ranks[rank]->begin_step(step);
    if (gather(rank, first)) return Error(ErrorCode::internal, "the first step was not stopped");
    if (Status status = ranks[rank]->receive(0, message, step, std::chrono::seconds(20)); !status) return status;
    ranks[rank]->begin_step(step);
    return gather(rank, {kPart, kPart, kPart});
  };
  for (const auto& sizes : {std::array<std::size_t, 3>{kPart, kPart, kPart}, std::array<std::size_t, 3>{0, 0, kPart}}) {
    Status served_by_one, served_by_two;
    std::thread one([&] { served_by_one = serve(1, sizes); }), two([&] { served_by_two = serve(2, sizes); });
    const auto begin = [&] {
      ranks[0]->begin_step(ranks[0]->step() + 1);
      for (const std::uint32_t rank : {1u, 2u}) must(ranks[0]->send(rank, std::vector<std::byte>(8)));
    };
    begin();
    ranks[0]->stop(Error(ErrorCode::cancelled, "stopped"));
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    begin();
    must(gather(0, {kPart, kPart, kPart}));
    one.join();
    two.join();
    must(served_by_one);
    must(served_by_two);
  }
}

TEST_CASE("a silent rank is an error after the timeout") {
  const Ends wire = make_ends();
  const auto a = rank_of_two(0, wire.a, std::chrono::milliseconds(200));
  a->begin_step(1);
  std::vector<std::byte> first(8), second(8);
  const std::vector<std::span<std::byte>> parts{first, second};
  const Status status = a->gather(std::vector<std::byte>(8), parts);
  REQUIRE_FALSE(status);
  CHECK(status.error().code() == ErrorCode::device_error);
  CHECK(status.error().text().find("does not answer") != std::string::npos);
  CHECK(a->gather(std::vector<std::byte>(8), parts).error().text() == status.error().text());
  ::close(wire.b);
}

TEST_CASE("steps that make no sense are refused, and the rank computes the next sound one") {
  const auto file = golden_dir() / "llama-gqa.gguf";
  const auto tokens = golden_tokens("llama-gqa");
  std::vector<RecordedStep> record;
  const Engine engine = load_golden("llama-gqa");
  record_steps(engine, record);
  Session session = must(engine.session());
  must(session.append(std::span(tokens).first(6)));
  must(session.append(std::span(tokens).subspan(6, 2)));
  REQUIRE(record.size() >= 2);
  RankThreads ranks(file, 1);
  auto options = ranks.options();
  options.context = engine.plan().context;
  options.rank_timeout_ms = 300;
  auto rank = must(detail::connect_ranks(options, engine.spec(), engine.plan().context));
  std::vector<std::byte> message;
  std::uint64_t step = 0;
  must(rank->receive(1, message, step, std::chrono::seconds(60)));
  REQUIRE(detail::kind_of(message) == detail::MessageKind::ready);
  const KvLayout layout = layouts_of(engine).front();
  detail::write_message(detail::message_of(layout), message);
  must(rank->send(1, message));
  std::vector<std::byte> sound;
  detail::ByteWriter writer(sound);
  writer.number(detail::MessageKind::step);
  writer.number(false);  // rank 0 never goes on with a step
  detail::each_number(writer, record.front().step);
  writer.number(std::uint64_t{0});
  std::mt19937 random(21);
  // The test is rank 0 without a model: it stops each step that the rank begins.
  const auto outcome = [&](std::span<const std::byte> bytes) -> std::string {
    rank->begin_step(rank->step() + 1);
    // The rank closes the connection at some messages, which send() may notice already.
    if (const Status sent = rank->send(1, bytes); !sent) return sent.error().text();
    std::vector<std::byte> own, other(1);
    const std::vector<std::span<std::byte>> parts{own, other};
    const Status status = rank->gather(own, parts);  // the rank sends its first part, which is larger, or stops the step
    return status ? "" : status.error().text();
  };
  const auto connect_again = [&] {
    rank.reset();
    rank = must(detail::connect_ranks(options, engine.spec(), engine.plan().context));
    must(rank->receive(1, message, step, std::chrono::seconds(60)));
    detail::write_message(detail::message_of(layout), message);
    must(rank->send(1, message));
  };
  std::size_t refused = 0;
  for (int i = 0; i < 400; ++i) {
    auto bytes = sound;
    for (std::size_t n = 1 + random() % 3; n-- > 0;) bytes[4 + random() % (bytes.size() - 4)] = static_cast<std::byte>(random());
    if (i % 5 == 0) bytes.resize(4 + random() % (bytes.size() - 4));
    const std::string said = outcome(bytes);
    if (said.find("makes no sense") != std::string::npos) {
      ++refused;
      continue;
    }
    connect_again();  // the rank has begun to compute, so the connection is broken here
  }
  connect_again();
  CHECK(refused > 100);
  // Questions about pages, and adapters.
  std::size_t answered = 0, not_answered = 0;
  for (int i = 0; i < 300; ++i) {
    std::vector<std::byte> bytes;
    detail::ByteWriter question(bytes);
    question.number(std::array{detail::MessageKind::read_pages, detail::MessageKind::write_pages, detail::MessageKind::adapter}[static_cast<std::size_t>(i % 3)]);
    question.number(false);
    if (i % 3 == 2) {
      const detail::AdapterTensor change{.tensor = 0, .rank = 2, .a = std::vector<std::byte>(512), .b = std::vector<std::byte>(512)};
      const Hash128 content{.low = 1, .high = 2};
      const bool is_first = true;
      detail::each_number(question, content, is_first, change);
    } else {
      const detail::LayerPages part{.copies = {}, .pages = record.front().step.pages, .layer = 0, .first_page = 0, .end_page = 1};
      detail::each_number(question, part);
      if (i % 3 == 1) question.add(random_bytes(random, random() % 5000));
    }
    if (i > 3) {
      for (std::size_t n = random() % 3; n-- > 0;) bytes[5 + random() % (bytes.size() - 5)] = static_cast<std::byte>(random());
    }
    if (i % 7 == 0) bytes.resize(5 + random() % (bytes.size() - 5));
    rank->begin_step(rank->step() + 1);
    must(rank->send(1, bytes));
    must(rank->receive(1, message, step, std::chrono::seconds(60)));
    const bool is_reply = detail::kind_of(message) == detail::MessageKind::reply;
    CHECK((is_reply || detail::kind_of(message) == detail::MessageKind::refusal));
    ++(is_reply ? answered : not_answered);
    if (!is_reply && i % 3 != 2) connect_again();  // copies of pages were lost with the question
  }
  CHECK(answered > 30);
  CHECK(not_answered > 30);
  rank.reset();
  const Engine after = must(Engine::load(file, ranks.options()));
  Session again = must(after.session());
  const Engine plain = load_golden("llama-gqa");
  Session expected = must(plain.session());
  CHECK(same_bits(all_logits(again, tokens, 6), all_logits(expected, tokens, 6)));
}

}  // namespace test_rank_frames
