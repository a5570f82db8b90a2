// tessera-rag as a user runs it: indexing, going on after a kill, changes, search, answers, and what it refuses.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <set>
#include <thread>

#include <tessera/json/json.hpp>

#include "cli/program.hpp"
#include "sanitized.hpp"

namespace test_rag {

using namespace tessera::tests;
using namespace tessera::tests::cli;
namespace fs = std::filesystem;

namespace {

const std::string kRag = TESSERA_BIN_DIR "/tessera-rag";
const std::string kModels = TESSERA_SOURCE_DIR "/models/";
const std::string kEmbedder = kModels + "tessera-stories-draft.gguf";  // compares texts badly, but always in the same way
const std::string kStory = kModels + "tessera-stories.gguf";
const std::string kOther = kGolden + "encoders/bert-rank";

bool lacks_rag() { return lacks(kRag, "tessera-rag (not built: it needs SQLite)"); }

Outcome rag(const Args& args, const std::string& input = {}) { return run_program(kRag, args, input); }

tessera::Json json_in(const std::string& line) {
  auto json = tessera::Json::parse(line);
  CAPTURE(line);
  REQUIRE(json);
  return *std::move(json);
}

std::vector<tessera::Json> lines_in(const std::string& text) {
  std::vector<tessera::Json> all;
  for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) all.push_back(json_in(text.substr(at, end - at)));
  return all;
}

const tessera::Json& member(const tessera::Json& object, const std::string& key) {
  const tessera::Json* value = object.find(key);
  CAPTURE(key);
  REQUIRE(value != nullptr);
  return *value;
}

double number(const tessera::Json& object, const std::string& key) {
  const tessera::Json& value = member(object, key);
  if (value.integer() != nullptr) return static_cast<double>(*value.integer());
  if (value.written_number() != nullptr) return std::stod(value.dump());
  REQUIRE(value.number() != nullptr);
  return *value.number();
}

std::string text(const tessera::Json& object, const std::string& key) {
  const std::string* value = member(object, key).string();
  REQUIRE(value != nullptr);
  return *value;
}

const tessera::Json::Array& list(const tessera::Json& object, const std::string& key) {
  const tessera::Json::Array* value = member(object, key).elements();
  REQUIRE(value != nullptr);
  return *value;
}

// A folder of texts, and an index beside it; both go with the object.
class Rig {
 public:
  Rig() {
    std::string path = (fs::temp_directory_path() / "tessera-rag-XXXXXX").string();
    REQUIRE(mkdtemp(path.data()) != nullptr);
    root_ = path;
    fs::create_directory(root_ / "texts");
  }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;
  ~Rig() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  [[nodiscard]] fs::path texts() const { return root_ / "texts"; }
  [[nodiscard]] std::string index() const { return (root_ / "index.db").string(); }
  void write(const std::string& name, const std::string& content) const {
    fs::create_directories((texts() / name).parent_path());
    std::ofstream(texts() / name, std::ios::binary) << content;
  }
  // Makes files old enough for their times to be trusted.
  void age() const {
    for (const auto& entry : fs::recursive_directory_iterator(texts())) {
      if (entry.is_regular_file()) fs::last_write_time(entry.path(), fs::file_time_type::clock::now() - std::chrono::hours(1));
    }
  }
  [[nodiscard]] Outcome run(Args args, const std::string& input = {}) const {
    args.insert(args.end(), {"--index", index()});
    return rag(args, input);
  }
  [[nodiscard]] tessera::Json json(Args args) const {
    args.push_back("--json");
    const Outcome got = run(args);
    CAPTURE(got.err);
    REQUIRE(got.status == 0);
    return json_in(got.out);
  }
  [[nodiscard]] tessera::Json index_texts(Args more = {}) const {
    more.insert(more.begin(), {"index", texts().string(), "--embedder", kEmbedder});
    return json(more);
  }
  // Returns what search finds, as text.
  [[nodiscard]] std::vector<std::string> found(const std::string& question, Args more = {}) const {
    more.insert(more.begin(), {"search", question, "--least", "-1"});
    std::vector<std::string> passages;
    const tessera::Json result = json(more);
    for (const auto& each : list(result, "found")) passages.push_back(text(each, "file") + ": " + text(each, "text"));
    return passages;
  }

 private:
  fs::path root_;
};

std::string story(int i) {
  static const std::vector<std::string> who = {"dog", "cat", "bird", "fox", "mouse", "bear", "frog"}, what = {"ball", "tree", "river", "house", "cake"};
  return "# Story " + std::to_string(i) + "\nOnce there was a " + who[static_cast<std::size_t>(i) % 7] + " that found a " + what[static_cast<std::size_t>(i / 7) % 5] +
         " number " + std::to_string(i * i) + ".\n\n## End\nThe " + who[static_cast<std::size_t>(i / 3) % 7] + " went home and was glad.\n";
}

void write_stories(const Rig& rig, int count) {
  for (int i = 0; i < count; ++i) rig.write("story-" + std::to_string(100 + i) + ".md", story(i));
  rig.age();
}

}  // namespace

TEST_CASE("an index is brought in step with its folder: unchanged files are not read, changed ones are, those that are gone leave") {
  if (lacks_rag()) return;
  const Rig rig;
  write_stories(rig, 6);
  auto report = rig.index_texts();
  CHECK(number(report, "added") == 6);
  CHECK(number(report, "files") == 6);
  const double passages = number(report, "passages");
  CHECK(passages >= 6);

  report = rig.index_texts();
  CHECK(number(report, "unchanged") == 6);
  CHECK(number(report, "embedded") == 0);

  rig.write("story-101.md", "# Penguins\nA penguin swims in the zyzzyva sea.\n");
  rig.write("sub/new.txt", "A new text.\n");
  fs::remove(rig.texts() / "story-102.md");
  fs::last_write_time(rig.texts() / "story-103.md", fs::file_time_type::clock::now());  // touched, not changed
  report = rig.json({"index"});                                                         // the folder and the embedder are known
  CHECK(number(report, "added") == 1);
  CHECK(number(report, "changed") == 1);
  CHECK(number(report, "removed") == 1);
  CHECK(number(report, "unchanged") == 4);
  CHECK(number(report, "files") == 6);

  const auto words = rig.found("zyzzyva", {"--by", "words"});
  REQUIRE(words.size() == 1);
  CHECK(words[0].starts_with("story-101.md: A penguin"));
  CHECK(rig.found("number 4", {"--by", "words", "-k", "100"}).size() < 10);  // the words of a file that is gone are gone
  for (const std::string& each : rig.found("Story 2", {"-k", "100"})) CHECK(!each.starts_with("story-102.md"));
  const auto status = rig.json({"status"});
  CHECK(number(status, "files") == 6);
  CHECK(text(status, "folder") == fs::canonical(rig.texts()).string());
}

TEST_CASE("files that are no texts, too large, or outside of the folder are left out, and named") {
  if (lacks_rag()) return;
  const Rig rig;
  rig.write("good.md", "# Good\nA text.\n");
  rig.write("latin.txt", "caf\xe9\n");
  rig.write("zero.txt", std::string("a\0b", 3));
  rig.write("large.txt", std::string(5000, 'x'));
  rig.write(".hidden/secret.md", "secret");
  rig.write("picture.png", "png");
  fs::create_symlink(kModels + "README.md", rig.texts() / "outside.md");
  fs::create_symlink(rig.texts() / "good.md", rig.texts() / "twice.md");
  fs::create_directory_symlink(rig.texts(), rig.texts() / "loop");
  const auto report = rig.index_texts({"--largest", "4000"});
  CHECK(number(report, "files") == 1);
  std::set<std::string> skipped;
  for (const auto& each : list(report, "skipped")) skipped.insert(text(each, "file") + ": " + text(each, "reason"));
  CHECK(skipped == std::set<std::string>{"large.txt: larger than 4000 bytes (--largest)", "latin.txt: no UTF-8 text", "outside.md: a link out of the folder",
                                         "zero.txt: no UTF-8 text"});
  const Outcome again = rig.run({"index", "--largest", "4000"});
  CHECK(again.status == 0);
  CHECK(again.err.find("latin.txt is left out: no UTF-8 text\n") != std::string::npos);
  CHECK(again.out.find("the index has 1 files and 1 passages") != std::string::npos);
}

TEST_CASE("killed while it indexes, the program goes on where it was") {
  if (lacks_rag()) return;
  const int files = kSanitized ? 60 : 400;
  const Rig rig;
  write_stories(rig, files);
  const Args index = {"index", rig.texts().string(), "--embedder", kEmbedder, "--index", rig.index(), "--threads", "1"};
  double done = 0;
  int kills = 0;
  for (const int share : {1, 3, 6}) {
    const File in = scratch(), out = scratch(), err = scratch();
    const pid_t pid = start(kRag, index, fileno(in.get()), fileno(out.get()), fileno(err.get()));
    const double goal = files * share / 10.0;
    for (int waits = 0; waits < 5000; ++waits) {  // until so many files are in the index
      const Outcome status = rig.run({"status", "--json"});
      if (status.status == 0 && number(json_in(status.out), "files") >= goal) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    kill(pid, SIGKILL);
    kills += wait_for(pid) == 128 + SIGKILL ? 1 : 0;
    const double now = number(rig.json({"status"}), "files");
    CHECK(now >= goal);
    CHECK(now >= done);
    done = now;
  }
  CHECK(kills > 0);
  const auto report = rig.index_texts();
  CHECK(number(report, "unchanged") == done);
  CHECK(number(report, "added") == files - done);
  CHECK(number(report, "files") == files);

  const Rig whole;
  write_stories(whole, files);
  CHECK(number(whole.index_texts(), "passages") == number(report, "passages"));
  for (const std::string question : {"the fox found a cake", "a frog went home", "number 144"}) CHECK(rig.found(question) == whole.found(question));
}

TEST_CASE("the graph finds nearly all that an exact search finds, and a damaged or stale one is made anew") {
  if (lacks_rag()) return;
  const Rig rig;
  const int files = kSanitized ? 100 : 600;
  write_stories(rig, files);
  (void)rig.index_texts();
  std::string questions;
  for (int i = 0; i < 20; ++i) questions += "Which animal found number " + std::to_string(i * 31) + " at the river?\n";
  const auto search = [&](const std::string& how, const std::string& value) {
    Args args = {"search", "--json", "--least", "-1", "--by", "vectors", "-k", "10", "--per-file", "0", how};
    if (!value.empty()) args.push_back(value);
    const Outcome got = rig.run(args, questions);
    CAPTURE(got.err);
    REQUIRE(got.status == 0);
    return lines_in(got.out);
  };
  const auto exact = search("--exact", "");
  const auto recall = [&](const std::vector<tessera::Json>& other) {
    double same = 0, all = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      std::multiset<double> near;  // likenesses: many of these texts are alike
      for (const auto& each : list(other.at(i), "found")) near.insert(number(each, "likeness"));
      for (const auto& each : list(exact[i], "found")) {
        ++all;
        const auto at = near.lower_bound(number(each, "likeness") - 1e-5);
        if (at != near.end() && *at <= number(each, "likeness") + 1e-5) ++same, near.erase(at);
      }
    }
    return same / all;
  };
  const auto by_graph = search("--graph-from", "1");
  if (*by_graph[0].find("exact")->boolean()) {
    skip("tessera-rag was built without hnswlib");
    return;
  }
  const double share = recall(by_graph);
  CAPTURE(share);
  CHECK(share >= 0.95);

  const std::string graph = rig.index() + ".hnsw";
  std::string bytes = slurp(graph);
  REQUIRE(bytes.size() > 1000);
  for (const std::size_t at : {std::size_t{8}, std::size_t{40}, bytes.size() / 2}) bytes[at] = static_cast<char>(bytes[at] ^ 0x55);
  std::ofstream(graph, std::ios::binary) << bytes;
  CHECK(recall(search("--graph-from", "1")) >= 0.95);
  CHECK(slurp(graph) != bytes);

  rig.write("late.md", "# Late\nA walrus came late to the party.\n");
  (void)rig.json({"index"});
  const auto late = rig.found("A walrus came late to the party", {"--graph-from", "1", "--by", "vectors", "-k", "3"});
  CHECK(std::ranges::count(late, "late.md: A walrus came late to the party.") == 1);
}

TEST_CASE("an answer names its sources, and is the same whether keys and values were saved, used, damaged or not kept") {
  if (lacks_rag()) return;
  const Rig rig;
  write_stories(rig, 12);
  (void)rig.index_texts({"--passage-tokens", "40"});
  const Args ask = {"ask", "What did the dog find?", "-m", kStory, "--least", "-1", "-n", "12", "--instructions", "Tell a story."};
  const auto with = [&](const Args& more, const std::string& sources = "3") {
    Args args = ask;
    args.insert(args.end(), more.begin(), more.end());
    args.insert(args.end(), {"-k", sources});
    return rig.json(args);
  };
  const auto plain = with({"--saved", "0"});
  CHECK(list(plain, "sources").size() == 3);
  CHECK(number(plain, "reused_tokens") == 0);
  CHECK(!fs::exists(rig.index() + ".kv"));
  const auto first = with({}), second = with({});
  CHECK(number(first, "reused_tokens") == 0);
  CHECK(number(second, "reused_tokens") >= 32);
  CHECK(number(second, "reused_tokens") < number(second, "prompt_tokens"));
  CHECK(text(first, "answer") == text(plain, "answer"));
  CHECK(text(second, "answer") == text(plain, "answer"));

  for (const auto& entry : fs::directory_iterator(rig.index() + ".kv")) {
    std::string bytes = slurp(entry.path().string());
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    std::ofstream(entry.path(), std::ios::binary) << bytes;
  }
  const auto damaged = with({}), mended = with({});
  CHECK(number(damaged, "reused_tokens") == 0);
  CHECK(text(damaged, "answer") == text(plain, "answer"));
  CHECK(number(mended, "reused_tokens") >= 32);

  // Another question with the same first source takes that one's keys and values, in the order in which they were saved.
  const auto other = with({}, "2");
  CHECK(number(other, "reused_tokens") >= 32);

  const Outcome shown = rig.run(ask);  // five sources
  CHECK(shown.status == 0);
  CHECK(shown.out.find("\n[1] story-") != std::string::npos);
  CHECK(shown.out.find("\n[3] story-") != std::string::npos);
  CHECK(shown.err.find("from saved prefixes") != std::string::npos);
}

TEST_CASE("questions come from standard input too, and a question that nothing is near has a status of its own") {
  if (lacks_rag()) return;
  const Rig rig;
  write_stories(rig, 5);
  (void)rig.index_texts();
  const Outcome two = rig.run({"search", "--json", "--least", "-1"}, "a dog\n\na cat\n");
  CHECK(two.status == 0);
  CHECK(lines_in(two.out).size() == 2);
  const Outcome none = rig.run({"search", "a dog", "--least", "1.5"});
  CHECK(none.status == 3);
  CHECK(none.out.starts_with("Nothing in the index is near this question"));
  CHECK(rig.run({"search", "a dog", "--least", "1.5", "--json"}).status == 3);
  // A reranker puts the passages in its own order.
  const auto ranked = rig.json({"search", "aa bb", "--least", "-1", "--reranker", kOther});
  std::vector<double> scores;
  for (const auto& each : list(ranked, "found")) scores.push_back(number(each, "score"));
  CHECK(scores.size() > 1);
  CHECK(std::ranges::is_sorted(scores, std::greater<>()));
}

TEST_CASE("what does not fit is refused with one sentence") {
  if (lacks_rag()) return;
  const Rig rig;
  write_stories(rig, 3);
  const auto refused = [&](const Args& args, int status, const std::string& sentence) {
    const Outcome got = rig.run(args);
    CAPTURE(got.err, sentence);
    CHECK(got.status == status);
    CHECK(got.out.empty());
    CHECK(got.err.starts_with("tessera-rag: "));
    CHECK(std::ranges::count(got.err, '\n') == 1);
    CHECK(got.err.find(sentence) != std::string::npos);
  };
  refused({"search", "x"}, 1, "make it with tessera-rag index FOLDER");
  refused({"index"}, 2, "a new index needs a folder and an embedder");
  refused({"index", rig.texts().string()}, 2, "a new index needs a folder and an embedder");
  refused({"index", "/nowhere/at/all", "--embedder", kEmbedder}, 1, "is no folder");
  refused({"index", rig.texts().string(), "--embedder", "/nowhere.gguf"}, 1, "nowhere.gguf");
  CHECK(!fs::exists(rig.index()));
  refused({"index", rig.texts().string(), "--embedder", kEmbedder, "--overlap", "50", "--passage-tokens", "40"}, 2, "--overlap must be lower");
  refused({"frob"}, 2, "is not a command");
  refused({"ask", "x"}, 2, "ask needs a chat model");
  refused({"search", "x", "-m", kStory}, 2, "-m names the chat model");
  refused({"search", " "}, 2, "the question is empty");
  refused({"search", "x", "--rebuild"}, 2, "options of the command index");
  refused({"search", "x", "--by", "luck"}, 2, "--by");
  refused({"status", "x"}, 2, "status takes no argument");

  (void)rig.index_texts();
  refused({"index", rig.texts().string(), "--embedder", kOther}, 2, "the index was made with another embedder");
  refused({"search", "x", "--embedder", kOther}, 1, "the index was made with another embedder");
  refused({"index", fs::temp_directory_path().string()}, 2, "the index was made from the folder");
  refused({"index", "--passage-tokens", "77"}, 2, "the index has passages of");
  CHECK(rig.run({"index", "--rebuild", rig.texts().string(), "--embedder", kOther}).status == 0);
  CHECK(number(rig.json({"status"}), "dimensions") == 32);

  const std::string good = slurp(rig.index());
  const auto with_index = [&](const std::string& bytes) { std::ofstream(rig.index(), std::ios::binary) << bytes; };
  for (const char* ending : {"-wal", "-shm"}) fs::remove(rig.index() + ending);
  with_index("This is a letter, and no index of anything. " + std::string(200, '.'));
  refused({"search", "x"}, 1, "is no index of tessera-rag");
  refused({"index", "--rebuild", rig.texts().string(), "--embedder", kEmbedder}, 1, "so it is not removed");
  std::string other = good;
  other[63] = 9;  // the version
  with_index(other);
  refused({"search", "x"}, 1, "version 9");
  other = good;
  std::fill(other.begin() + 4096, other.end(), '\x5a');
  with_index(other);
  CHECK(rig.run({"search", "x"}).status == 1);
  CHECK(rig.run({"index", "--rebuild", rig.texts().string(), "--embedder", kEmbedder}).status == 0);
  CHECK(rig.found("a dog").size() > 1);
}

TEST_CASE("over this project's documents the right page is among the first three") {
  if (lacks_rag()) return;
  const char* const home = std::getenv("HOME");
  std::string model;
  for (const char* place : {"/.cache/tessera/models/all-MiniLM-L6-v2", "/.cache/tessera-models/all-MiniLM-L6-v2"}) {
    if (home != nullptr && fs::exists(home + std::string(place))) model = home + std::string(place);
  }
  if (kSanitized || model.empty()) {
    skip(kSanitized ? "hits over the documents: too slow under a sanitizer" : "hits over the documents: no MiniLM (scripts/get-model minilm)");
    return;
  }
  const Rig rig;
  (void)rig.json({"index", TESSERA_SOURCE_DIR "/docs", "--embedder", model});
  std::string questions;
  std::vector<std::string> pages;
  for (const auto& each : lines_in(slurp(TESSERA_SOURCE_DIR "/tests/rag/questions.jsonl"))) {
    questions += text(each, "question") + "\n";
    pages.push_back(text(each, "page"));
  }
  for (const std::string by : {"both", "vectors"}) {
    CAPTURE(by);
    const Outcome got = rig.run({"search", "--json", "-k", "20", "--by", by}, questions);
    REQUIRE(got.status == 0);
    const auto answers = lines_in(got.out);
    REQUIRE((answers.size() == pages.size() && pages.size() == 30));
    std::size_t first = 0, in_three = 0;
    for (std::size_t i = 0; i < pages.size(); ++i) {
      std::vector<std::string> found;
      for (const auto& each : list(answers[i], "found")) {
        if (std::ranges::find(found, text(each, "file")) == found.end()) found.push_back(text(each, "file"));
      }
      found.resize(3);
      first += found[0] == pages[i] ? 1u : 0u;
      const bool is_hit = std::ranges::find(found, pages[i]) != found.end();
      if (!is_hit) UNSCOPED_INFO(pages[i] << " is not among the first three for: " << text(answers[i], "question"));
      in_three += is_hit ? 1u : 0u;
    }
    std::printf("hits over the documents by %s: first %zu, among three %zu, of %zu\n", by.c_str(), first, in_three, pages.size());
    if (by != "both") continue;
    CHECK(in_three >= 29);
    CHECK(first >= 20);
  }
}

}  // namespace test_rag
