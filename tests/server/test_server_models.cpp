// The list of a server's models by itself: loads that last longer than requests wait, and loads that failed.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include <unistd.h>

#include <fmt/format.h>

#include "catch.hpp"
#include "models/model_loader.hpp"
#include "models/models.hpp"

namespace test_server_models {

using namespace ::server;
namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

const std::string kTinyModel = TESSERA_SOURCE_DIR "/tests/golden/data/llama-gqa.gguf";

// A folder that is removed with the object.
struct Place {
  fs::path path = fs::temp_directory_path() / fmt::format("tessera-models-{}", ::getpid());
  Place() {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() { fs::remove_all(path); }
};

// A request that waits, and the outcome.
struct Request {
  std::atomic<bool> has_left{false};
  std::optional<ModelLease> lease;
  std::optional<ApiError> error;
  ModelWait wait() {
    return {.gone = [this] { return has_left.load(); }, .ready = [this](ModelLease given) { lease = std::move(given); }, .failed = [this](const ApiError& why) { error.emplace(why); }};
  }
};

ConfiguredModel model_at(const fs::path& path) { return {.id = "tiny", .path = path}; }

void write(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

// Asks for the model, and expects to be refused at once.
ApiError refusal_of(Models& models) {
  Request request;
  try {
    const ModelLease lease = models.acquire(0, {}, request.wait());
  } catch (const ApiError& error) {
    return error;
  }
  FAIL("the request was not refused");
  return {0, ""};
}

}  // namespace

TEST_CASE("a load that lasts longer than requests wait goes on, and serves the next request", "[server]") {
  Workers workers;
  Models models({model_at(kTinyModel)}, {.load_time = 0s});
  ModelLoader loader(models, workers, {.logs = false});
  Request first;
  REQUIRE(models.acquire(0, {}, first.wait()) == nullptr);
  models.begin(0);  // as next() does
  std::this_thread::sleep_for(1ms);
  CHECK(models.goes_on(0, 0.25));
  REQUIRE(first.error);
  CHECK(first.error->status == 503);
  CHECK(first.error->code == "model_not_ready");
  CHECK(first.error->retry_after >= 1.0);
  CHECK_THAT(first.error->what(), Catch::Contains("25 % of it is loaded, and the loading goes on"));
  CHECK(models.goes_on(0, 0.5));  // nobody waits, but somebody was told to come again
  CHECK(models.view(0).state == ModelState::loading);
  loader.load_now(0, [](double) {});
  Request second;
  CHECK(models.acquire(0, {}, second.wait()) != nullptr);
}

TEST_CASE("a load is given up if all clients have left before they were told to come again", "[server]") {
  Models models({model_at(kTinyModel)}, {.load_time = 300s});
  Request request;
  REQUIRE(models.acquire(0, {}, request.wait()) == nullptr);
  models.begin(0);
  CHECK(models.goes_on(0, 0.1));
  request.has_left = true;
  CHECK_FALSE(models.goes_on(0, 0.2));
  CHECK(request.error->status == 499);
  models.given_up(0);
  CHECK(models.view(0).state == ModelState::unloaded);
}

TEST_CASE("the time to come again follows from the speed of the load", "[server]") {
  const auto begin = std::chrono::steady_clock::now();
  const RunningLoad load{.began = begin, .share = 0.25};
  CHECK(load.seconds_left(begin + 10s) == 30.0);
  CHECK(RunningLoad{.began = begin, .share = 0.01}.seconds_left(begin + 10s) == 10.0);
  CHECK(RunningLoad{.began = begin, .share = 1.0}.seconds_left(begin + 10s) == 1.0);
}

TEST_CASE("a model that could not be loaded is not read again until its file is changed, or some time has passed", "[server]") {
  const Place place;
  const fs::path file = place.path / "tiny.gguf";
  write(file, "GGUF and no more");
  Models models({model_at(file)}, {});
  Request request;
  REQUIRE(models.acquire(0, {}, request.wait()) == nullptr);
  models.begin(0);
  const auto fail = [&](std::chrono::milliseconds pause) {
    models.failed(0, {.error = ApiError(500, "broken", "model", "model_load_failed"), .files = file_state(file), .again = std::chrono::steady_clock::now() + pause});
  };
  fail(30s);
  REQUIRE(request.error);
  CHECK(request.error->retry_after > 29.0);
  const ApiError refusal = refusal_of(models);
  CHECK(std::string(refusal.what()) == "broken");
  CHECK(refusal.status == 500);
  CHECK(refusal.retry_after > 25.0);
  CHECK(refusal.retry_after <= 30.0);

  write(file, "GGUF and a little more");
  Request after_change;
  REQUIRE(models.acquire(0, {}, after_change.wait()) == nullptr);  // it waits for a load
  models.begin(0);
  fail(0s);
  Request after_pause;
  CHECK(models.acquire(0, {}, after_pause.wait()) == nullptr);
}

TEST_CASE("the state of a model's files is that of all its parts", "[server]") {
  const Place place;
  write(place.path / "big-00001-of-00002.gguf", "a");
  const FileState one = file_state(place.path / "big-00001-of-00002.gguf");
  CHECK(one.files.size() == 1);
  write(place.path / "big-00002-of-00002.gguf", "b");
  write(place.path / "other-00002-of-00002.gguf", "c");
  const FileState both = file_state(place.path / "big-00001-of-00002.gguf");
  CHECK(both.files.size() == 2);
  CHECK(both == file_state(place.path / "big-00001-of-00002.gguf"));
  write(place.path / "big-00002-of-00002.gguf", "bb");
  CHECK(both != file_state(place.path / "big-00001-of-00002.gguf"));

  fs::create_directories(place.path / "folder" / "inner");
  write(place.path / "folder" / "config.json", "{}");
  const FileState folder = file_state(place.path / "folder");
  write(place.path / "folder" / "inner" / "config.json", "{}");
  CHECK(file_state(place.path / "folder") != folder);
  fs::last_write_time(place.path / "folder" / "config.json", fs::file_time_type::clock::now() - 1h);
  CHECK(file_state(place.path / "folder").files.front() != folder.files.front());
  CHECK(file_state(place.path / "none").files.empty());
  CHECK(file_state({}).files.empty());
}

}  // namespace test_server_models
