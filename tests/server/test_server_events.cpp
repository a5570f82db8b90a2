// What routers get: the changes of the prefix index in vLLM's layout, and the figures that a gateway asks for.
#include <cstdio>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#ifdef SERVER_HAS_ZEROMQ
#include <zmq.h>
#endif

#include "kv/kv_events.hpp"
#include "server/http_client.hpp"

namespace test_server_events {

using namespace tessera;
using namespace tessera::tests;
using namespace tessera::tests::server;

namespace {

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  return text;
}

std::string prompt() {
  std::string text;
  for (int i = 0; i < 12; ++i) text += "Once upon a time there was a little girl. ";
  return text;
}
std::string completion() { return fmt::format(R"({{"prompt": "{}", "max_tokens": 2, "temperature": 0}})", prompt()); }

// A port that was free a moment ago.
std::uint16_t free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  socklen_t size = sizeof address;
  REQUIRE(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(fd);
  return ntohs(address.sin_port);
}

}  // namespace

TEST_CASE("events are written as vLLM writes them", "[server]") {
  using Kind = KvEvent::Kind;
  ::server::KvEventWriter writer;
  CHECK(hex(writer.write({})) == "98ab426c6f636b53746f72656491" "00" "c0" "90" "00" "c0c0c0");  // BlockStored, [0], nil, [], 0, nil, nil, nil
  CHECK(hex(writer.write({.kind = Kind::cleared})) == "91b0416c6c426c6f636b73436c6561726564");  // AllBlocksCleared
  // The first page has nothing before it; the second one has the first, until that one is removed.
  CHECK(hex(writer.write({.kind = Kind::stored, .page = {.low = 0x80}, .before = {.low = 5}, .tokens = {1, 200, 70000}})) ==
        "98ab426c6f636b53746f726564" "91cc80" "c0" "9301ccc8ce00011170" "03" "c0c0c0");
  CHECK(hex(writer.write({.kind = Kind::stored, .page = {.low = ~std::uint64_t{0}}, .before = {.low = 0x80}, .tokens = {300}})) ==
        "98ab426c6f636b53746f726564" "91cfffffffffffffffff" "cc80" "91cd012c" "01" "c0c0c0");
  CHECK(hex(writer.write({.kind = Kind::removed, .page = {.low = 0x80}})) == "93ac426c6f636b52656d6f766564" "91cc80" "c0");
  CHECK(hex(writer.write({.kind = Kind::stored, .page = {.low = 1}, .before = {.low = 0x80}, .tokens = {}})) == "98ab426c6f636b53746f726564" "9101" "c0" "90" "00" "c0c0c0");
  std::vector<Token> page(32, 7);
  const std::string long_page = hex(writer.write({.kind = Kind::stored, .page = {.low = 2}, .before = {.low = 9}, .tokens = page}));
  CHECK(long_page.find("dc0020070707") != std::string::npos);
  CHECK(hex(::server::kv_event_batch(1.5, {"\x01", "\x02"})) == "93" "cb3ff8000000000000" "920102" "c0");
}

TEST_CASE("a gateway finds the figures of pages", "[server]") {
  if (lacks_server()) return;
  const RunningServer server({"--no-log", "-m", "story=" + kStories, "--kv-budget", "8MB"});
  const std::string text = server.request("GET", "/metrics").body;
  const std::size_t at = text.find("vllm:cache_config_info{model_name=\"story\",block_size=\"32\",num_gpu_blocks=\"");
  REQUIRE(at != text.npos);
  const long pages = std::strtol(text.c_str() + text.find("blocks=\"", at) + 8, nullptr, 10);
  const std::int64_t total = number_at(server.request("GET", "/status.json").json(), {"kv_total_bytes"});
  CHECK(total > 0);
  CHECK(pages > 10);
  CHECK(total / pages > 32 * 1000);  // about 1.5 kB a token
  CHECK(total / pages < 32 * 2000);
}

#ifdef SERVER_HAS_ZEROMQ

TEST_CASE("a subscriber gets the pages of a prompt", "[server]") {
  if (lacks_server()) return;
  const std::uint16_t port = free_port();
  const RunningServer server({"--no-log", "-m", "story=" + kStories, "--kv-events", fmt::format("tcp://127.0.0.1:{}", port), "--kv-address", "10.1.2.3:80"});
  void* context = zmq_ctx_new();
  void* socket = zmq_socket(context, ZMQ_SUB);
  const int patience = 10'000, none = 0;
  zmq_setsockopt(socket, ZMQ_RCVTIMEO, &patience, sizeof patience);
  zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none);
  zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "kv@", 3);
  REQUIRE(zmq_connect(socket, fmt::format("tcp://127.0.0.1:{}", port).c_str()) == 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // until it is subscribed, messages go to nobody
  REQUIRE(server.post("/v1/completions", completion()).status == 200);
  const auto receive = [&] {
    std::string frame(1 << 16, '\0');
    const int n = zmq_recv(socket, frame.data(), frame.size(), 0);
    REQUIRE(n >= 0);
    frame.resize(static_cast<std::size_t>(n));
    return frame;
  };
  std::string all;
  for (std::uint64_t last = 0; all.find("BlockStored") == std::string::npos;) {
    CHECK(receive() == "kv@10.1.2.3:80@story");
    const std::string number = receive();
    REQUIRE(number.size() == 8);
    std::uint64_t count = 0;
    for (const char c : number) count = count << 8 | static_cast<unsigned char>(c);
    CHECK(count < 100);
    CHECK(count >= last);
    last = count + 1;
    all += receive();
  }
  zmq_close(socket);
  zmq_ctx_term(context);
}

TEST_CASE("pyzmq and msgpack read the events of a conversation", "[server]") {
  if (lacks_server()) return;
  const char* python = std::getenv("TESSERA_PYTHON");
  const std::string program = python != nullptr ? python : "python3";
  if (std::system((program + " -c 'import zmq, msgpack' > /dev/null 2>&1").c_str()) != 0) return skip("a subscriber in Python: pyzmq and msgpack (not installed)");
  const std::uint16_t port = free_port();
  const RunningServer server({"--no-log", "-m", "story=" + kStories, "--kv-events", fmt::format("tcp://127.0.0.1:{}", port)});
  const std::string command = fmt::format("{} {}/tests/server/kv_subscriber.py {} {}", program, TESSERA_SOURCE_DIR, port, server.port());
  CHECK(std::system(command.c_str()) == 0);
}

TEST_CASE("an endpoint that cannot be used ends the server", "[server]") {
  if (lacks_server()) return;
  for (const char* endpoint : {"nowhere", "tcp://256.0.0.1:x"}) {
    INFO(endpoint);
    const int status = std::system(fmt::format("timeout 20 {} --port 0 --kv-events {} > /dev/null 2>&1 < /dev/null", kServer, endpoint).c_str());
    CHECK(WEXITSTATUS(status) == 2);
  }
}

#endif

}  // namespace test_server_events
