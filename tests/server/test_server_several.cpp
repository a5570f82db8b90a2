// A server with several models: names, loading on first use, one budget of memory, keep_alive, what it says of their state.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "server/http_client.hpp"

namespace test_server_several {

using namespace tessera;
using namespace tessera::tests;
using namespace tessera::tests::server;
namespace fs = std::filesystem;

namespace {

const std::string kEncoder = kGolden + "encoders/bert-rank", kRanker = kGolden + "encoders/xlm-roberta-rank";

// A folder that goes with the object.
struct Folder {
  fs::path path = fs::temp_directory_path() / fmt::format("tessera-several-{}-{}", ::getpid(), counter()++);
  Folder() { fs::create_directories(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path); }
  [[nodiscard]] std::string of(const std::string& name) const { return (path / name).string(); }
  static std::atomic<int>& counter() {
    static std::atomic<int> count{0};
    return count;
  }
};

std::string completion(const std::string& model, const std::string& prompt, int tokens = 12) {
  return fmt::format(R"({{"model": "{}", "prompt": "{}", "max_tokens": {}, "temperature": 0, "ignore_eos": true}})", model, prompt, tokens);
}
std::string embedding(const std::string& model, const std::string& text) { return fmt::format(R"({{"model": "{}", "input": "{}"}})", model, text); }

// The part of an answer that the model decides.
std::string essence(const Response& response) {
  INFO(response.body);
  REQUIRE(response.status == 200);
  const Json json = response.json();
  const Json text = at(json, {"choices", "0", "text"});
  return (text.is_null() ? at(json, {"data", "0", "embedding"}) : text).dump();
}

std::map<std::string, std::string> states(const RunningServer& server) {
  std::map<std::string, std::string> found;
  const Json list = server.request("GET", "/v1/models").json();
  for (const Json& model : *list.find("data")->elements()) found[text_at(model, {"id"})] = text_at(model, {"status", "value"});
  return found;
}
// Waits until a model is in a state.
bool comes_to(const RunningServer& server, const std::string& model, const std::string& state) {
  for (int i = 0; i < 1000; ++i) {
    if (states(server)[model] == state) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}
Json figures_of(const RunningServer& server, const std::string& model) {
  const Json status = server.request("GET", "/status.json").json();
  for (const Json& each : *status.find("models")->elements()) {
    if (text_at(each, {"id"}) == model) return each;
  }
  return {};
}

std::int64_t bytes_of(const RunningServer& server, const std::string& model) { return number_at(server.request("GET", "/v1/models/" + model).json(), {"meta", "memory_bytes"}); }

// Options of a server whose two models do not fit into its memory together.
std::vector<std::string> tight(std::vector<std::string> more = {}) {
  static const std::string memory = [] {
    const RunningServer roomy({"--no-log", "-m", "chat=" + kStories, "-m", "vec=" + kEncoder, "--kv-budget", "8MB", "--max-running", "8"});
    const std::int64_t chat = bytes_of(roomy, "chat"), vec = bytes_of(roomy, "vec");
    REQUIRE(chat > 8'000'000);
    REQUIRE(vec > 8'000'000);
    return fmt::format("{}", std::max(chat, vec) + std::min(chat, vec) / 2);
  }();
  std::vector<std::string> all{"-m", "chat=" + kStories, "-m", "vec=" + kEncoder, "--kv-budget", "8MB", "--max-running", "8", "--memory", memory};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// Long answers whose client hardly reads, so that the request runs on: they are more than the buffers of a socket hold.
struct HeldRequest {
  Connection connection;
  explicit HeldRequest(const RunningServer& server) : connection(server.port()) {
    const int small = 2048;
    setsockopt(connection.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    REQUIRE(connection.send_request("POST", "/v1/completions", {},
                                    R"({"model": "chat", "prompt": ["a", "b", "c", "d", "e", "f", "g", "h"], "max_tokens": 400, "ignore_eos": true, "stream": true, "logprobs": 20, "n": 8})"));
    REQUIRE(connection.receive_head().status == 200);
    REQUIRE(connection.next_event());
  }
};

// The exit status and the output of a server that does not come to serve.
std::pair<int, std::string> refused(const std::string& options) {
  std::FILE* pipe = ::popen((kServer + " --port 0 " + options + " 2>&1 < /dev/null").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string output;
  char bytes[512];
  while (const std::size_t n = std::fread(bytes, 1, sizeof bytes, pipe)) output.append(bytes, n);
  const int status = ::pclose(pipe);
  return {WEXITSTATUS(status), output};
}

}  // namespace

TEST_CASE("a request's name chooses the model, and each answers as a server of its own does", "[server]") {
  if (lacks_server()) return;
  const RunningServer chat({"--no-log", "-m", kStories}), vec({"--no-log", "-m", kEncoder}), both({"--no-log", "-m", "chat=" + kStories, "-m", kEncoder, "--model-id", "story", "--model-id", "vec"});
  CHECK(both.first_line().starts_with("2 models are served at http://"));
  CHECK(states(both) == std::map<std::string, std::string>{{"story", "unloaded"}, {"vec", "unloaded"}});
  const std::string told = essence(chat.post("/v1/completions", completion("x", "Once upon a time")));
  CHECK(essence(both.post("/v1/completions", completion("story", "Once upon a time"))) == told);
  CHECK(states(both) == std::map<std::string, std::string>{{"story", "loaded"}, {"vec", "unloaded"}});
  CHECK(essence(both.post("/v1/embeddings", embedding("vec", "the cat"))) == essence(vec.post("/v1/embeddings", embedding("x", "the cat"))));
  CHECK(states(both) == std::map<std::string, std::string>{{"story", "loaded"}, {"vec", "loaded"}});  // there is room for both

  CHECK(essence(both.post("/v1/completions", completion("", "Once upon a time"))) == told);  // no name: the first
  CHECK(essence(both.post("/v1/completions", completion("story:latest", "Once upon a time"))) == told);
  const Response none = both.post("/v1/completions", completion("other", "Once"));
  CHECK(none.status == 404);
  CHECK(text_at(none.json(), {"error", "code"}) == "model_not_found");
  CHECK_THAT(text_at(none.json(), {"error", "message"}), Catch::Contains("\"story\", \"vec\""));
  CHECK(both.post("/v1/messages", R"({"model": "other", "max_tokens": 1, "messages": [{"role": "user", "content": "a"}]})").status == 404);
  CHECK(both.post("/api/chat", R"({"model": "other"})").status == 404);
  CHECK(both.request("GET", "/v1/models/other").status == 404);
  CHECK(both.request("GET", "/tokenizer_info?model=other").status == 404);
  CHECK(number_at(both.request("GET", "/tokenizer_info?model=vec").json(), {"model_max_length"}) != number_at(both.request("GET", "/tokenizer_info").json(), {"model_max_length"}));
  CHECK(both.post("/v1/completions", R"({"model": 5, "prompt": "a"})").status == 400);

  const Json tags = both.request("GET", "/api/tags").json();
  CHECK(text_at(tags, {"models", "0", "name"}) == "story:latest");
  CHECK(text_at(tags, {"models", "1", "name"}) == "vec:latest");
  CHECK(text_at(both.post("/api/show", R"({"model": "vec"})").json(), {"details", "family"}) == "bert");
  const std::string metrics = both.request("GET", "/metrics").body;
  for (const char* line : {"tessera:model_loaded{model_name=\"vec\"} 1", "tessera:model_loads_total{model_name=\"story\"} 1", "vllm:generation_tokens_total{model_name=\"story\"} 36"}) {
    CHECK_THAT(metrics, Catch::Contains(line));
  }
}

TEST_CASE("models that do not fit together take turns, and every answer is right", "[server]") {
  if (lacks_server()) return;
  const RunningServer chat({"--no-log", "-m", kStories}), vec({"--no-log", "-m", kEncoder});
  const std::vector<std::string> words = {"Once", "The cat", "A red bird", "In the house"};
  std::map<std::string, std::string> expected;
  for (const std::string& word : words) {
    expected["chat " + word] = essence(chat.post("/v1/completions", completion("", word)));
    expected["vec " + word] = essence(vec.post("/v1/embeddings", embedding("", word)));
  }
  const RunningServer server(tight({"--no-log"}));
  std::atomic<int> wrong{0}, right{0};
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < 8; ++i) {
    clients.emplace_back([&, i] {
      for (std::size_t n = 0; n < 6; ++n) {
        const std::string& word = words[(i + n) % words.size()];
        Connection connection(server.port());
        const bool writes = i % 2 == 0;
        const Response response = writes ? connection.request("POST", "/v1/completions", {}, completion("chat", word)) : connection.request("POST", "/v1/embeddings", {}, embedding("vec", word));
        auto json = Json::parse(response.body);
        const bool is_right = response.status == 200 && json &&
                              (writes ? at(*json, {"choices", "0", "text"}) : at(*json, {"data", "0", "embedding"})).dump() == expected[(writes ? "chat " : "vec ") + word];
        ++(is_right ? right : wrong);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  CHECK(wrong == 0);
  CHECK(right == 48);
  const auto now = states(server);
  CHECK((now.at("chat") == "loaded") != (now.at("vec") == "loaded"));
  CHECK(number_at(figures_of(server, "chat"), {"tokens_generated_total"}) == 24 * 12);  // over all loads
  CHECK(essence(server.post("/v1/completions", completion("chat", words[0]))) == expected["chat " + words[0]]);
  CHECK(essence(server.post("/v1/embeddings", embedding("vec", words[0]))) == expected["vec " + words[0]]);
  CHECK(essence(server.post("/v1/completions", completion("chat", words[0]))) == expected["chat " + words[0]]);
  CHECK(number_at(figures_of(server, "chat"), {"loads"}) >= 2);
  CHECK(number_at(figures_of(server, "vec"), {"loads"}) >= 1);
}

TEST_CASE("a model is not unloaded under a request, and what waits for its memory is told so", "[server]") {
  if (lacks_server()) return;
  RunningServer server(tight({"--load-time", "1"}));
  {
    HeldRequest held(server);
    const Response late = server.post("/v1/embeddings", embedding("vec", "the cat"));
    CHECK(late.status == 503);
    CHECK(!late.header("retry-after").empty());
    CHECK_THAT(text_at(late.json(), {"error", "message"}), Catch::Contains("\"vec\" was not ready within 1 s") && Catch::Contains("\"chat\" takes") && Catch::Contains("answers 1 request"));
    CHECK(states(server).at("chat") == "loaded");
    for (int i = 0; i < 100; ++i) REQUIRE(held.connection.next_event());
    CHECK(number_at(figures_of(server, "chat"), {"requests"}) == 1);
  }
  CHECK(server.post("/v1/embeddings", embedding("vec", "the cat")).status == 200);
  CHECK(states(server).at("chat") == "unloaded");
}

TEST_CASE("a client that leaves while it waits for a model is dropped, and the model is not loaded for it", "[server]") {
  if (lacks_server()) return;
  const RunningServer server(tight());
  HeldRequest held(server);
  {
    Connection waiting(server.port());
    REQUIRE(waiting.send_request("POST", "/v1/embeddings", {}, embedding("vec", "the cat")));
    for (int i = 0; i < 1000 && number_at(figures_of(server, "vec"), {"waiting_for_load"}) != 1; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK(number_at(figures_of(server, "vec"), {"waiting_for_load"}) == 1);
  }
  for (int i = 0; i < 1000 && number_at(figures_of(server, "vec"), {"waiting_for_load"}) != 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(number_at(figures_of(server, "vec"), {"waiting_for_load"}) == 0);
  CHECK(server.post("/v1/completions", completion("chat", "Once")).status == 200);  // the model need not leave any more
  held.connection.drop();
  CHECK(number_at(figures_of(server, "vec"), {"loads"}) == 0);
  for (int i = 0; i < 1000 && server.log().find(" 499 ") == std::string::npos; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK_THAT(server.log(), Catch::Contains("/v1/embeddings 499"));
}

TEST_CASE("a server that ends refuses requests that wait for a model, and ends", "[server]") {
  if (lacks_server()) return;
  RunningServer server(tight({"--drain-time", "1"}));
  HeldRequest held(server);
  Connection waiting(server.port());
  REQUIRE(waiting.send_request("POST", "/v1/embeddings", {}, embedding("vec", "the cat")));
  for (int i = 0; i < 1000 && number_at(figures_of(server, "vec"), {"waiting_for_load"}) != 1; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  server.signal(SIGTERM);
  const Response response = waiting.receive_response();
  CHECK(response.status == 503);
  CHECK(text_at(response.json(), {"error", "code"}) == "shutting_down");
  CHECK(server.wait() == 0);
}

TEST_CASE("a model that cannot be loaded is an error to its clients, and is tried again", "[server]") {
  if (lacks_server()) return;
  const Folder folder;
  fs::copy_file(kTiny, folder.of("good.gguf"));
  fs::copy_file(kTiny, folder.of("bad.gguf"));
  std::ofstream(folder.of("broken.gguf")) << "GGUF and no more";
  std::ofstream(folder.of("a-broken.gguf")) << "the first file of the folder";
  std::ofstream(folder.of("notes.txt")) << "no model";
  fs::create_directory(folder.of("empty"));
  fs::copy(kEncoder, folder.of("encoder"));
  const RunningServer server({"--models", folder.path.string(), "--pin", "good"});
  CHECK(states(server) == std::map<std::string, std::string>{{"a-broken", "failed"}, {"bad", "unloaded"}, {"broken", "failed"}, {"encoder", "unloaded"}, {"good", "loaded"}});
  CHECK(text_at(server.request("GET", "/v1/models/broken").json(), {"status", "failed"}) == "true");
  fs::resize_file(folder.of("bad.gguf"), fs::file_size(kTiny) / 2);
  for (int i = 0; i < 2; ++i) {
    const Response response = server.post("/v1/completions", completion("bad", "a", 1));
    CHECK(response.status == 500);
    CHECK(text_at(response.json(), {"error", "code"}) == "model_load_failed");
    CHECK_THAT(text_at(response.json(), {"error", "message"}), Catch::Contains("\"bad\" could not be loaded: "));
    CHECK(!response.header("retry-after").empty());
    CHECK(states(server).at("bad") == "failed");
  }
  const std::string log = server.log();  // the file was read once
  CHECK(log.find("bad could not be loaded") != std::string::npos);
  CHECK(log.find("bad could not be loaded") == log.rfind("bad could not be loaded"));
  CHECK(server.post("/v1/completions", completion("broken", "a", 1)).status == 500);
  fs::copy_file(kTiny, folder.of("broken.gguf"), fs::copy_options::overwrite_existing);
  CHECK(server.post("/v1/completions", completion("broken", "a", 1)).status == 200);
  CHECK(text_at(server.request("GET", "/v1/models/broken").json(), {"meta", "architecture"}) == "llama");
  fs::copy_file(kTiny, folder.of("bad.gguf"), fs::copy_options::overwrite_existing);
  CHECK(server.post("/v1/completions", completion("bad", "a", 1)).status == 200);
  CHECK(states(server).at("bad") == "loaded");
  CHECK(server.post("/v1/embeddings", embedding("encoder", "the cat")).status == 200);
  const Response nameless = server.post("/v1/completions", R"({"prompt": "a"})");  // there is no first -m
  CHECK(nameless.status == 400);
  CHECK_THAT(text_at(nameless.json(), {"error", "message"}), Catch::Contains("Name a model"));
}

TEST_CASE("keep_alive unloads a model that nobody uses, and a pinned one stays", "[server]") {
  if (lacks_server()) return;
  const RunningServer server({"--no-log", "-m", "chat=" + kStories, "-m", "vec=" + kEncoder, "-m", "tiny=" + kTiny, "--pin", "tiny"});
  CHECK(states(server).at("tiny") == "loaded");
  CHECK(text_at(server.post("/api/generate", R"({"model": "chat", "keep_alive": 0})").json(), {"done_reason"}) == "unload");
  CHECK(number_at(figures_of(server, "chat"), {"loads"}) == 0);  // it was not loaded to be unloaded
  CHECK(text_at(server.post("/api/generate", R"({"model": "chat"})").json(), {"done_reason"}) == "load");
  CHECK(states(server).at("chat") == "loaded");
  CHECK(server.post("/api/embed", R"({"model": "vec", "input": "the cat", "keep_alive": "1h"})").status == 200);
  const Json ps = server.request("GET", "/api/ps").json();
  CHECK(ps.find("models")->elements()->size() == 3);
  CHECK(text_at(ps, {"models", "0", "expires_at"}) > "2100");
  CHECK(text_at(ps, {"models", "1", "expires_at"}) < "2100");
  CHECK(text_at(server.post("/api/chat", R"({"model": "chat", "keep_alive": 0})").json(), {"done_reason"}) == "unload");
  CHECK(comes_to(server, "chat", "unloaded"));
  CHECK(server.post("/api/embed", R"({"model": "vec", "input": "the cat", "keep_alive": "30ms"})").status == 200);
  CHECK(comes_to(server, "vec", "unloaded"));
  const Response pinned = server.post("/api/generate", R"({"model": "tiny", "keep_alive": 0})");
  CHECK(pinned.header("x-tessera-ignored") == "keep_alive");
  CHECK(states(server).at("tiny") == "loaded");

  const RunningServer shy({"--no-log", "-m", kTiny, "--keep-alive", "20ms"});
  CHECK(states(shy).begin()->second == "unloaded");
  CHECK(shy.post("/v1/completions", completion("any", "a", 1)).status == 200);
  CHECK(comes_to(shy, "llama-gqa", "unloaded"));
  CHECK(shy.post("/v1/completions", completion("any", "a", 1)).status == 200);
}

TEST_CASE("a model that can never fit is refused with the numbers", "[server]") {
  if (lacks_server()) return;
  const RunningServer server({"--no-log", "-m", "chat=" + kStories, "-m", "vec=" + kEncoder, "--kv-budget", "8MB", "--memory", "8MB"});
  const Response response = server.post("/v1/embeddings", embedding("vec", "the cat"));
  CHECK(response.status == 400);
  CHECK(text_at(response.json(), {"error", "code"}) == "model_does_not_fit");
  CHECK_THAT(text_at(response.json(), {"error", "message"}), Catch::Contains("8.0 MB") && Catch::Contains("--memory"));
  for (int i = 0; i < 1000 && server.log().find("vec: ") == std::string::npos; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK_THAT(server.log(), Catch::Contains("more than --memory"));
}

TEST_CASE("score gives a ranker's scores, and the cosine of an embedder's vectors", "[server]") {
  if (lacks_server()) return;
  const RunningServer server({"--no-log", "-m", "rank=" + kRanker, "-m", "vec=" + kEncoder, "-m", "chat=" + kStories});
  const Json ranked = server.post("/v1/rerank", R"({"model": "rank", "query": "red bird", "documents": ["water", "the red bird eats"]})").json();
  std::map<std::int64_t, double> by_index;
  for (const Json& each : *ranked.find("results")->elements()) by_index[number_at(each, {"index"})] = *each.find("relevance_score")->number();
  const Json scored = server.post("/v1/score", R"({"model": "rank", "text_1": "red bird", "text_2": ["water", "the red bird eats"]})").json();
  CHECK(text_at(scored, {"object"}) == "list");
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string index = fmt::format("{}", i);
    CHECK(number_at(scored, {"data", index, "index"}) == static_cast<std::int64_t>(i));
    const Json score = at(scored, {"data", index, "score"});
    CHECK(*score.number() == by_index.at(static_cast<std::int64_t>(i)));
  }
  const Json pairs = server.post("/score", R"({"model": "rank", "text_1": ["red bird", "red bird"], "text_2": ["water", "the red bird eats"]})").json();
  CHECK(at(pairs, {"data"}) == at(scored, {"data"}));

  const Json vectors = server.post("/v1/embeddings", R"({"model": "chat", "input": ["the cat", "a dog"]})").json();
  double cosine = 0.0;
  const Json a = at(vectors, {"data", "0", "embedding"}), b = at(vectors, {"data", "1", "embedding"});
  for (std::size_t i = 0; i < a.elements()->size(); ++i) cosine += *(*a.elements())[i].number() * *(*b.elements())[i].number();
  const Json alike = server.post("/v1/score", R"({"model": "chat", "text_1": "the cat", "text_2": "a dog"})").json();
  const Json score = at(alike, {"data", "0", "score"});
  CHECK(*score.number() == Approx(cosine).margin(1e-5));
  const auto refusal = [&](const std::string& body) {
    const Response response = server.post("/v1/score", body);
    CHECK(response.status == 400);
    return text_at(response.json(), {"error", "param"});
  };
  CHECK(refusal(R"({"model": "vec", "text_2": "a"})") == "text_1");
  CHECK(refusal(R"({"model": "vec", "text_1": ["a", "b"], "text_2": ["a", "b", "c"]})") == "text_1");
  CHECK(refusal(R"({"model": "vec", "text_1": "a", "text_2": []})") == "text_2");
}

TEST_CASE("options that make no sense together are refused in a line", "[server]") {
  if (lacks_server()) return;
  const Folder folder;
  const auto check = [](const std::string& options, int status, const std::string& words) {
    const auto [found, output] = refused(options);
    INFO(options << "\n" << output);
    CHECK(found == status);
    CHECK_THAT(output, Catch::Contains(words));
    CHECK(std::count(output.begin(), output.end(), '\n') == 1);
  };
  check(fmt::format("-m {} -m {}", kTiny, kTiny), 2, "two models are called \"llama-gqa\"");
  check(fmt::format("-m a={} -m b={} --template x", kTiny, kTiny), 2, "--template is for a server with one model");
  check(fmt::format("-m a={} -m b={} --draft-heads x", kTiny, kTiny), 2, "--draft-heads is for a server with one model");
  check(fmt::format("-m a={} --pin b", kTiny), 2, "--pin b: there is no model of this name; there are: a");
  check(fmt::format("-m {} --model-id a --model-id b", kTiny), 2, "--model-id b");
  check(fmt::format("--models {}", folder.path.string()), 2, "there is no model in");
  check(fmt::format("--models {}", folder.of("absent")), 1, "cannot read the folder");
  check(fmt::format("--models {} --model-id a", folder.path.string()), 2, "--model-id a");
  check("--keep-alive soon", 2, "--keep-alive: \"soon\" is not a time");
  check("--pin a", 2, "--pin is for models that are loaded and unloaded");
  check(fmt::format("-m a= -m {}", kTiny), 2, "is missing behind the name");
  check(fmt::format("-m {} --memory 1MB", kTiny), 1, "--memory is 1.0 MB");
  check(fmt::format("-m a={} -m b=/nowhere/b.gguf", kTiny), 1, "/nowhere/b.gguf");
}

}  // namespace test_server_several
