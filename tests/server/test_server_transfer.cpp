// Prefill and decode apart: a prompt that one server computes and another one fetches, and every way in which that can fail.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include <fmt/format.h>

#include "server/http_client.hpp"

namespace test_server_transfer {

using namespace tessera;
using namespace tessera::tests;
using namespace tessera::tests::server;

namespace {

using namespace std::chrono_literals;

constexpr const char* kDecodeElsewhere = R"({"do_remote_decode": true, "do_remote_prefill": false, "remote_engine_id": null, "remote_block_ids": null, "remote_host": null, "remote_port": null})";

// A prompt of about 200 tokens; `which` makes it another one from its beginning on.
std::string prompt_of(int which) {
  std::string text = fmt::format("Story {}. ", which);
  for (int i = 0; i < 12; ++i) text += fmt::format("Once upon a time there was a little girl who had {} red balls. ", which + i);
  return text;
}
std::string body_of(int which, const std::string& params, const std::string& more = "") {
  return fmt::format(R"({{"prompt": "{}", "max_tokens": 16, "temperature": 1, "seed": {}, "ignore_eos": true, "kv_transfer_params": {}{}}})", prompt_of(which), which, params, more);
}
std::string text_of(const Response& response) {
  INFO(response.body);
  REQUIRE(response.status == 200);
  return text_at(response.json(), {"choices", "0", "text"});
}
std::string told(const RunningServer& server, int which, const std::string& params = "null") { return text_of(server.post("/v1/completions", body_of(which, params))); }
// Has the server compute the prompt for another one. Returns the answer's kv_transfer_params.
Json prefill(const RunningServer& server, int which, const HeaderList& headers = {}) {
  const Response response = server.post("/v1/completions", body_of(which, kDecodeElsewhere), headers);
  INFO(response.body);
  REQUIRE(response.status == 200);
  CHECK(number_at(response.json(), {"usage", "completion_tokens"}) == 1);
  return at(response.json(), {"kv_transfer_params"});
}
double metric(const RunningServer& server, const std::string& name) {
  const std::string text = server.request("GET", "/metrics").body;
  const std::size_t at = text.find("\n" + name + " ");
  return at == text.npos ? 0.0 : std::strtod(text.c_str() + at + name.size() + 2, nullptr);
}
double imports(const RunningServer& server, const std::string& result) { return metric(server, fmt::format("tessera:kv_imports_total{{result=\"{}\"}}", result)); }

RunningServer exporter(std::vector<std::string> more = {}) {
  std::vector<std::string> all{"--no-log", "-m", kStories, "--kv-exports", "64MB"};
  all.insert(all.end(), more.begin(), more.end());
  return RunningServer(std::move(all));
}
std::string peer(std::uint16_t port) { return fmt::format("127.0.0.1:{}", port); }

// A server that answers each request with bytes that the test chooses, and then closes the connection.
class FakePeer {
 public:
  explicit FakePeer(std::function<std::string()> answer) : answer_(std::move(answer)) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(listen(fd_, 8) == 0);
    socklen_t size = sizeof address;
    REQUIRE(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  FakePeer(const FakePeer&) = delete;
  FakePeer& operator=(const FakePeer&) = delete;
  ~FakePeer() {
    shutdown(fd_, SHUT_RDWR);
    thread_.join();
    ::close(fd_);
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] int asked() const { return asked_; }

 private:
  void serve() {
    for (;;) {
      const int client = accept(fd_, nullptr, nullptr);
      if (client < 0) return;
      ++asked_;
      char bytes[4096];
      (void)!recv(client, bytes, sizeof bytes, 0);
      const std::string answer = answer_();
      for (std::size_t at = 0; at < answer.size();) {
        const ssize_t n = ::send(client, answer.data() + at, answer.size() - at, MSG_NOSIGNAL);
        if (n <= 0) break;
        at += static_cast<std::size_t>(n);
      }
      ::close(client);
    }
  }
  std::function<std::string()> answer_;
  int fd_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<int> asked_ = 0;
  std::thread thread_;
};

std::string http_of(const std::string& body, std::size_t length) {
  return fmt::format("HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n{}", length, body);
}
// The field for a prompt of this size at another port.
std::string origin(std::uint16_t port, std::size_t bytes, const std::string& id = std::string(32, 'a')) {
  return fmt::format(R"({{"do_remote_prefill": true, "tessera": {{"host": "127.0.0.1", "port": {}, "id": "{}", "bytes": {}}}}})", port, id, bytes);
}

}  // namespace

TEST_CASE("a prompt that another server has computed is fetched, and the answer is one server's", "[server]") {
  if (lacks_server()) return;
  const RunningServer alone({"--no-log", "-m", kStories});
  const RunningServer prefiller = exporter();
  const RunningServer decoder({"--no-log", "-m", kStories, "--kv-peer", peer(prefiller.port())});

  const Json params = prefill(prefiller, 1);
  CHECK(at(params, {"do_remote_prefill"}) == Json(true));
  CHECK(text_at(params, {"tessera", "host"}) == "127.0.0.1");
  CHECK(number_at(params, {"tessera", "port"}) == prefiller.port());
  CHECK(text_at(params, {"tessera", "id"}).size() == 32);
  CHECK(metric(prefiller, "tessera:kv_exports_bytes") == static_cast<double>(number_at(params, {"tessera", "bytes"})));

  const Response answer = decoder.post("/v1/completions", body_of(1, params.dump()));
  CHECK(text_of(answer) == told(alone, 1));
  CHECK(answer.header("x-tessera-warning").empty());
  const std::int64_t tokens = number_at(answer.json(), {"usage", "prompt_tokens"}), cached = number_at(answer.json(), {"usage", "prompt_tokens_details", "cached_tokens"});
  CHECK(tokens > 100);
  CHECK(cached > tokens - 33);  // all whole pages but the one of the last token
  CHECK(imports(decoder, "restored") == 1);
  CHECK(metric(decoder, "tessera:kv_fetched_bytes_total") == static_cast<double>(number_at(params, {"tessera", "bytes"})));
  CHECK(metric(prefiller, "tessera:kv_sent_total") == 1);
  CHECK(metric(prefiller, "tessera:kv_exports_bytes") == 0);

  // It is fetched once. Who comes later computes it, or has it.
  const Response again = decoder.post("/v1/completions", body_of(1, params.dump()));
  CHECK(text_of(again) == told(alone, 1));
  CHECK(again.header("x-tessera-warning").find("answers 404") != std::string::npos);
  CHECK(imports(decoder, "gone") == 1);

  // A chat, and streams of the decoder.
  const std::string chat = R"({"messages": [{"role": "user", "content": "Tell me of a cat and a dog that went to the big park to play with a ball, and of the bird that watched them from its tree all day."}], "max_tokens": 12, "temperature": 0)";
  const Response one = prefiller.post("/v1/chat/completions", chat + fmt::format(R"(, "max_completion_tokens": 1, "stream": false, "kv_transfer_params": {}}})", kDecodeElsewhere));
  REQUIRE(one.status == 200);
  const Json moved = at(one.json(), {"kv_transfer_params"});
  CHECK(number_at(moved, {"tessera", "bytes"}) > 1000);
  const Response two = decoder.post("/v1/chat/completions", chat + fmt::format(R"(, "kv_transfer_params": {}}})", moved.dump()));
  const Response three = alone.post("/v1/chat/completions", chat + "}");
  CHECK(at(two.json(), {"choices"}).dump() == at(three.json(), {"choices"}).dump());
  CHECK(imports(decoder, "restored") == 2);
  const Json streamed = prefill(prefiller, 2);
  Connection connection(decoder.port());
  REQUIRE(connection.send_request("POST", "/v1/completions", {}, body_of(2, streamed.dump(), R"(, "stream": true)")));
  REQUIRE(connection.receive_head().status == 200);
  std::string text;
  for (const ServerEvent& event : connection.all_events()) {
    if (event.data != "[DONE]") text += text_at(event.json(), {"choices", "0", "text"});
  }
  CHECK(text == told(alone, 2));
  CHECK(imports(decoder, "restored") == 3);
}

TEST_CASE("the fields of prompts on other servers are known, and harmless where they ask for nothing", "[server]") {
  if (lacks_server()) return;
  const RunningServer server({"--no-log", "-m", kStories, "--strict-fields"});
  const std::string expected = told(server, 1);
  CHECK(text_of(server.post("/v1/completions", body_of(1, "null", R"(, "cache_hit_threshold": null)"))) == expected);
  CHECK(told(server, 1, "{}") == expected);
  CHECK(told(server, 1, R"({"do_remote_decode": false, "do_remote_prefill": false})") == expected);
  const RunningServer lax({"--no-log", "-m", kStories});
  const Response ignored = lax.post("/v1/completions", body_of(1, "null", R"(, "cache_hit_threshold": 0.8)"));
  CHECK(text_of(ignored) == expected);
  CHECK(ignored.header("x-tessera-ignored") == "cache_hit_threshold");
  // Without --kv-exports nothing is kept, and that is told; the one token is computed all the same.
  const Response kept = lax.post("/v1/completions", body_of(1, kDecodeElsewhere));
  CHECK(kept.status == 200);
  CHECK(at(kept.json(), {"kv_transfer_params"}).is_null());
  CHECK(number_at(kept.json(), {"usage", "completion_tokens"}) == 1);
  CHECK(kept.header("x-tessera-warning").find("--kv-exports") != std::string::npos);
  // Without --kv-peer nobody is asked.
  CHECK(text_of(lax.post("/v1/completions", body_of(1, origin(1, 100)))) == expected);
  CHECK(imports(lax, "unknown_peer") == 1);
  // Fields of a wrong form are the client's mistake.
  for (const char* wrong : {"7", R"({"do_remote_decode": 1})", R"({"do_remote_prefill": true, "tessera": {"host": "h"}})",
                            R"({"do_remote_prefill": true, "tessera": {"host": "h", "port": 1, "id": "../../metrics", "bytes": 1}})"}) {
    INFO(wrong);
    CHECK(lax.post("/v1/completions", body_of(1, wrong)).status == 400);
  }
  CHECK(lax.post("/v1/completions", body_of(1, kDecodeElsewhere, R"(, "stream": true)")).status == 400);
}

TEST_CASE("a prompt is computed here if its server is gone, unknown or slow, or sends what is wrong", "[server]") {
  if (lacks_server()) return;
  const RunningServer alone({"--no-log", "-m", kStories});
  auto prefiller = std::make_unique<RunningServer>(std::vector<std::string>{"--no-log", "-m", kStories, "--kv-exports", "64MB", "--kv-export-time", "1"});

  // The bytes of an export, as a server would get them.
  const Json params = prefill(*prefiller, 1);
  const std::string saved = prefiller->request("GET", "/v1/kv/" + text_at(params, {"tessera", "id"})).body;
  REQUIRE(saved.size() == static_cast<std::size_t>(number_at(params, {"tessera", "bytes"})));

  std::string sends;  // by the fake peer; set while nobody asks
  FakePeer fake([&] { return sends; });
  FakePeer silent([] { return std::this_thread::sleep_for(1500ms), std::string(); });
  const RunningServer decoder({"--no-log", "-m", kStories, "--kv-peer", peer(prefiller->port()), "--kv-peer", peer(fake.port()), "--kv-peer", peer(silent.port()), "--kv-fetch-time", "1"});
  int which = 10;
  const auto falls_back = [&](const std::string& field, const std::string& result) {
    const double before = imports(decoder, result);
    const Response response = decoder.post("/v1/completions", body_of(++which, field));
    INFO(result << " " << response.header("x-tessera-warning"));
    CHECK(text_of(response) == told(alone, which));
    CHECK(response.header("x-tessera-warning").find("The prompt was computed here") != std::string::npos);
    CHECK(number_at(response.json(), {"usage", "prompt_tokens_details", "cached_tokens"}) <= 32);
    CHECK(imports(decoder, result) == before + 1);
  };

  SECTION("damage") {
    for (std::size_t at : {std::size_t{0}, std::size_t{20}, saved.size() / 3, saved.size() / 2, saved.size() - 1}) {
      std::string damaged = saved;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
      sends = http_of(damaged, damaged.size());
      falls_back(origin(fake.port(), saved.size()), "unfit");
    }
    sends = http_of(saved.substr(0, saved.size() / 2), saved.size() / 2);  // whole by its head, and cut
    falls_back(origin(fake.port(), saved.size()), "unfit");
    sends = http_of("", 0);
    falls_back(origin(fake.port(), saved.size()), "unfit");
  }
  SECTION("a connection that ends in the middle, no answer, silence, an error, too many bytes") {
    sends = http_of(saved.substr(0, saved.size() / 2), saved.size());
    falls_back(origin(fake.port(), saved.size()), "unreachable");
    sends = "";
    falls_back(origin(fake.port(), saved.size()), "unreachable");
    sends = "not HTTP\r\n\r\n";
    falls_back(origin(fake.port(), saved.size()), "unreachable");
    sends = http_of(saved + saved, saved.size() * 2 + (std::size_t{1} << 40));
    falls_back(origin(fake.port(), saved.size()), "unreachable");
    sends = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
    falls_back(origin(fake.port(), saved.size()), "gone");
    falls_back(origin(fake.port(), std::size_t{1} << 45), "gone");
    falls_back(origin(silent.port(), saved.size()), "unreachable");
  }
  SECTION("another prompt, another model") {
    sends = http_of(saved, saved.size());
    falls_back(origin(fake.port(), saved.size()), "other_prompt");
    const RunningServer tiny({"--no-log", "-m", kTiny, "--kv-exports", "1MB"});
    const Response other = tiny.post("/v1/completions", fmt::format(R"({{"prompt": [1, 2, 3, 4], "max_tokens": 1, "kv_transfer_params": {}}})", kDecodeElsewhere));
    REQUIRE(other.status == 200);
    const std::string strange = tiny.request("GET", "/v1/kv/" + text_at(other.json(), {"kv_transfer_params", "tessera", "id"})).body;
    REQUIRE(strange.size() > 100);
    sends = http_of(strange, strange.size());
    falls_back(origin(fake.port(), strange.size()), "unfit");
  }
  SECTION("an unknown peer is not asked") {
    FakePeer stranger([] { return std::string(); });
    falls_back(origin(stranger.port(), 100), "unknown_peer");
    falls_back(R"({"do_remote_prefill": true})", "unknown_peer");
    falls_back(R"({"do_remote_prefill": true, "remote_host": "127.0.0.1", "remote_port": 1, "remote_block_ids": [1, 2]})", "unknown_peer");
    CHECK(stranger.asked() == 0);
  }
  SECTION("an expired id, a server that has ended") {
    const Json old = prefill(*prefiller, which + 1);
    for (int i = 0; i < 500 && metric(*prefiller, "tessera:kv_exports_expired_total") < 1; ++i) std::this_thread::sleep_for(10ms);
    CHECK(metric(*prefiller, "tessera:kv_exports_bytes") == 0);
    falls_back(old.dump(), "gone");
    const Json last = prefill(*prefiller, which + 1);
    prefiller->signal(SIGKILL);
    prefiller->wait();
    falls_back(last.dump(), "unreachable");
  }
}

TEST_CASE("exports keep within their memory, and belong to a tenant", "[server]") {
  if (lacks_server()) return;
  const std::string keys = (std::filesystem::temp_directory_path() / fmt::format("tessera-transfer-{}.txt", ::getpid())).string();
  std::ofstream(keys) << "anna a\nbert b\n";
  const RunningServer prefiller({"--no-log", "-m", kStories, "--kv-exports", "3MB", "--api-key-file", keys});
  const HeaderList anna{{"Authorization", "Bearer a"}}, bert{{"x-api-key", "b"}};
  const RunningServer decoder({"--no-log", "-m", kStories, "--kv-peer", peer(prefiller.port()), "--api-key-file", keys});
  std::filesystem::remove(keys);
  const Json params = prefill(prefiller, 1, anna);
  const std::string path = "/v1/kv/" + text_at(params, {"tessera", "id"});
  CHECK(prefiller.request("GET", path).status == 401);
  CHECK(prefiller.request("GET", path, bert).status == 404);
  CHECK(prefiller.request("GET", "/v1/kv/" + std::string(32, '0'), anna).status == 404);
  CHECK(prefiller.request("GET", "/v1/kv/", anna).status == 404);
  // The decoder passes its client's key on.
  CHECK(decoder.post("/v1/completions", body_of(1, params.dump()), bert).header("x-tessera-warning").find("404") != std::string::npos);
  CHECK(decoder.post("/v1/completions", body_of(1, params.dump()), anna).header("x-tessera-warning").empty());
  // Bert has computed the prompt himself, and fetched none of Anna's.
  const std::string text = decoder.request("GET", "/metrics", anna).body;
  CHECK(text.find("tessera:kv_imports_total{result=\"restored\"} 1\n") != text.npos);
  CHECK(text.find("tessera:kv_imports_total{result=\"gone\"} 1\n") != text.npos);

  int kept = 0;
  for (int i = 0; i < 12; ++i) kept += prefill(prefiller, 100 + i, anna).is_null() ? 0 : 1;
  CHECK(kept > 0);
  CHECK(kept < 12);
  const std::string figures = prefiller.request("GET", "/metrics", anna).body;
  CHECK(figures.find(fmt::format("tessera:kv_exports_refused_total {}\n", 12 - kept)) != figures.npos);
}

TEST_CASE("clients of two servers get one server's answers, also when the prefiller is killed in the middle", "[server]") {
  if (lacks_server()) return;
  constexpr int kClients = 8, kRounds = 6;
  const RunningServer alone({"--no-log", "-m", kStories});
  RunningServer prefiller({"--no-log", "-m", kStories, "--kv-exports", "64MB"});
  const RunningServer decoder({"--no-log", "-m", kStories, "--kv-peer", peer(prefiller.port())});
  std::atomic<int> prefilled = 0, wrong = 0, failed = 0;
  std::vector<std::thread> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] {
      for (int round = 0; round < kRounds; ++round) {
        const int which = 1000 + client * kRounds + round;
        std::string params = "null";  // as llm-d's sidecar: without a prefiller, the decoder does all
        Connection first(prefiller.port());
        if (first.is_open()) {
          const Response response = first.request("POST", "/v1/completions", {}, body_of(which, kDecodeElsewhere));
          if (response.status == 200 && response.is_whole) params = at(response.json(), {"kv_transfer_params"}).dump();
        }
        if (++prefilled == kClients * kRounds / 2) prefiller.signal(SIGKILL);
        const Response got = Connection(decoder.port()).request("POST", "/v1/completions", {}, body_of(which, params));
        const Response expected = Connection(alone.port()).request("POST", "/v1/completions", {}, body_of(which, "null"));
        if (got.status != 200 || expected.status != 200) ++failed;
        else if (at(got.json(), {"choices"}) != at(expected.json(), {"choices"})) ++wrong;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  CHECK(failed == 0);
  CHECK(wrong == 0);
  CHECK(imports(decoder, "restored") > 0);
}

TEST_CASE("options of prompts on other servers are checked", "[server]") {
  if (lacks_server()) return;
  for (const char* options : {"--kv-peer nowhere:port", "--kv-peer ftp://x:1", "--kv-address x:1", "--kv-exports 1MB --host 0.0.0.0", "--kv-exports much", "--kv-export-time -1"}) {
    INFO(options);
    const int status = std::system((kServer + " --port 0 " + options + " > /dev/null 2>&1 < /dev/null").c_str());
    CHECK(WEXITSTATUS(status) == 2);
  }
}

}  // namespace test_server_transfer
