// --tokenize and --detokenize: text goes through byte for byte.
#include "program.hpp"

namespace test_cli_tokenize {

using namespace tessera::tests::cli;

namespace {

std::vector<std::string> texts_of(const std::string& path) {
  const std::string all = slurp(path), separator = "\n__ggml_vocab_test__\n";
  std::vector<std::string> texts;
  for (std::size_t at = 0, end = 0; (end = all.find(separator, at)) != std::string::npos; at = end + separator.size()) {
    texts.push_back(all.substr(at, end - at));
  }
  return texts;
}

Outcome tokenize(const std::string& vocabulary, const std::string& text) {
  return run({"-m", vocabulary, "--tokenize", "--no-bos", "--no-special", "-f", "-"}, text);
}

std::string vocabulary_path(const std::string& name) { return kShared + "/tokenizers/ggml-vocab-" + name + ".gguf"; }

}  // namespace

TEST_CASE("every text of the reference vocabularies gives its ids") {
  if (lacks_program()) return;
  for (const std::string name : {"llama-spm", "phi-3", "gpt-2", "deepseek-coder"}) {
    const std::string path = vocabulary_path(name);
    if (lacks(path, "../shared/tokenizers")) return;
    const std::vector<std::string> texts = texts_of(path + ".inp");
    std::istringstream lines(slurp(path + ".out"));
    REQUIRE(texts.size() == 46);
    for (const std::string& text : texts) {
      std::string line;
      REQUIRE(std::getline(lines, line));
      INFO(name << ": " << text);
      const Outcome got = tokenize(path, text);
      CHECK(got.status == 0);
      CHECK(got.err.empty());
      CHECK(got.out.find('\n') == got.out.size() - 1);
      CHECK(ids_in(got.out) == ids_in(line));
    }
  }
}

TEST_CASE("a file, standard input and an argument are the same prompt") {
  const std::string path = vocabulary_path("llama-spm");
  if (lacks_program() || lacks(path, "../shared/tokenizers")) return;
  const std::string text = "-n\tcaf\xc3\xa9 \n";  // looks like an option, and ends with a line end
  const TemporaryFile file(text);
  const std::string from_file = run({"-m", path, "--tokenize", "-f", file.path()}).out;
  CHECK(from_file == run({"-m", path, "--tokenize", "-f", "-"}, text).out);
  CHECK(from_file == run({"-m", path, "--tokenize", "-p", text}).out);
  CHECK(from_file == run({"-m", path, "--tokenize", "--prompt=" + text}).out);
  CHECK(ids_in(from_file).front() == 1);
}

TEST_CASE("any bytes survive tokenizing and come back") {
  if (lacks_program()) return;
  const std::string zero(1, '\0');
  for (const std::string name : {"llama-spm", "gpt-2"}) {
    const std::string path = vocabulary_path(name);
    if (lacks(path, "../shared/tokenizers")) return;
    for (const std::string& text : {"a" + zero + "b" + zero, std::string("line\r\nline\r\n\r"), std::string("\n\n\n"),
                                    std::string("  two spaces, tab\t, \xf0\x9f\xa6\x99\n"), std::string()}) {
      const Outcome ids = tokenize(path, text);
      CHECK(run({"-m", path, "--detokenize", "-f", "-"}, ids.out).out == text);
    }
    // What is no UTF-8 comes back as U+FFFD.
    const Outcome ids = tokenize(path, "x\xff\xfey");
    CHECK(run({"-m", path, "--detokenize", "--prompt-ids", ids.out}).out == "x\xef\xbf\xbd\xef\xbf\xbdy");
  }
}

TEST_CASE("--no-special and --no-bos") {
  const std::string path = vocabulary_path("llama-spm");
  if (lacks_program() || lacks(path, "../shared/tokenizers")) return;
  const auto ids = [&](Args options) {
    Args args = {"-m", path, "--tokenize", "-p", "</s>"};
    args.insert(args.end(), options.begin(), options.end());
    return ids_in(run(args).out);
  };
  CHECK(ids({}) == std::vector<int>{1, 2});
  CHECK(ids({"--no-bos"}) == std::vector<int>{2});
  CHECK(ids({"--no-bos", "--no-special"}).size() > 1);
  CHECK(run({"-m", path, "--tokenize", "--no-bos", "-p", ""}).out == "\n");
}

}  // namespace test_cli_tokenize
