// What all programs owe their users: arguments taken as they were written, output that arrives or an error, files of theirs
// that are not overwritten, and no text of a file that commands the terminal.
#include <tessera/extend/files/gguf_writer.hpp>
#include <tessera/extend/files/model_file.hpp>

#include "cli/program.hpp"
#include "engine/models.hpp"

namespace test_cli_outputs {

using namespace tessera;
using namespace tessera::tests::cli;
using tessera::test::must;

namespace {

const std::string kBin = TESSERA_BIN_DIR "/";
const std::vector<std::string> kPrograms = {"generate", "tessera-bench", "tessera-inspect", "tessera-quality", "tessera-quantize"};

bool lacks_programs() {
  for (const std::string& name : kPrograms) {
    if (lacks(kBin + name, "the program \"" + name + "\" (not built)")) return true;
  }
  return false;
}

// The small model, with these strings among its metadata, and its first tensor under another name.
std::string renamed_model(const std::string& path, const std::string& name, const std::string& tensor) {
  const ModelFile model = must(ModelFile::open(kTiny));
  GgufWriter writer;
  for (const GgufEntry& entry : model.metadata().entries()) must(writer.copy(entry));
  must(writer.set_string("general.name", name));
  const GgufTensor& first = model.tensors()[0];
  for (const GgufTensor& t : model.tensors()) must(writer.add_tensor(t.name, t.dtype, std::span(t.dims.data(), t.n_dims)));
  if (!tensor.empty()) must(writer.add_tensor(tensor, first.dtype, std::span(first.dims.data(), first.n_dims)));
  must(writer.write_file(path, [&](std::string_view which, const ByteSink& write) -> Status {
    const auto found = std::ranges::find(model.tensors(), which, &GgufTensor::name);
    const GgufTensor& from = found != model.tensors().end() ? *found : first;
    std::vector<std::byte> bytes(from.bytes);
    must(model.read(from, 0, bytes));
    return write(bytes);
  }));
  return path;
}

bool commands_terminal(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && text[i] != '\n') || byte == 0x7f) return true;
    if (byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("an option with an empty value does not take the next one for it") {
  if (lacks_programs()) return;
  const Outcome json = run({"-m", kTiny, "--prompt-ids=", "--json", "-n", "1"});
  CHECK(json.err.find("token") != std::string::npos);  // of no prompt, not of one that reads "--json"
  CHECK(json.err.find("--json") == std::string::npos);
  const Outcome tokens = run({"--prompt=", "--tokenize"});
  CHECK(tokens.status == 0);
  const Outcome with_bos = run({"--tokenize", "-p", ""});
  CHECK(tokens.out == with_bos.out);
  CHECK(run_program(kBin + "tessera-inspect", {"--key=", kTiny}).status == 1);
  CHECK(run_program(kBin + "tessera-inspect", {"--key", "", kTiny}).status == 1);
  CHECK(run_program(kBin + "tessera-inspect", {"--ctx=", kTiny}).status == 2);
  CHECK(run_program(kBin + "tessera-inspect", {"--ctx", "1k", kTiny}).err.find("1024 tokens") != std::string::npos);
  CHECK(run_program(kBin + "tessera-bench", {"--shape=", "--json"}).err.find("\"\" is not a shape") != std::string::npos);
  CHECK(run_program(kBin + "tessera-quality", {"--numerics=", kTiny, "x"}).err.find("--numerics: \"\" is not one of") != std::string::npos);
  // Behind a lone -- nothing is an option.
  CHECK(run({"-m", kTiny, "--", "--prompt="}).status == 2);
}

TEST_CASE("output that cannot be written is a failure of every program") {
  if (lacks_programs()) return;
  const TemporaryFile tokens("1 2 3\n"), out;
  const std::vector<std::pair<std::string, Args>> cases = {
      {"generate", {"--help"}}, {"generate", {"--version"}}, {"tessera-bench", {"--help"}},
      {"tessera-inspect", {"--help"}}, {"tessera-inspect", {kTiny}}, {"tessera-quality", {"--help"}},
      {"tessera-inspect", {"--version"}}, {"tessera-quality", {"--version"}}, {"tessera-quantize", {"--version"}},
      {"tessera-quality", {kTiny, tokens.path()}}, {"tessera-quality", {kTiny, tokens.path(), "--json"}},
      {"tessera-quantize", {"--help"}}, {"tessera-quantize", {kTiny, out.path(), "Q8_0"}}};
  for (const auto& [program, args] : cases) {
    INFO(program << " " << args.front());
    std::string words;
    for (const std::string& arg : args) words += " '" + arg + "'";
    CHECK(run_program("/bin/sh", {"-c", kBin + program + words + " >/dev/full 2>&1"}).status == 1);
    CHECK(run_program("/bin/sh", {"-c", kBin + program + words + " >/dev/null 2>&1"}).status == 0);
  }
}

TEST_CASE("no program overwrites the model that it reads") {
  if (lacks_programs()) return;
  const std::string bytes = slurp(kTiny);
  const TemporaryFile model(bytes), tokens("1 2 3\n");
  const std::string& path = model.path();
  const auto refused = [&](const std::string& program, const Args& args) {
    INFO(program << " " << args.back());
    const Outcome got = run_program(kBin + program, args);
    CHECK(got.status != 0);
    CHECK(got.err.find("overwrite") != std::string::npos);
    CHECK(slurp(path) == bytes);
  };
  refused("generate", {"-m", path, "--prompt-ids", "1", "-n", "1", "--save-session", path});
  refused("generate", {"-m", path, "--prompt-ids", "1", "--logits", path});
  refused("tessera-quality", {path, tokens.path(), "--save", path});
  refused("tessera-bench", {"-m", path, "-n", "1", "--read-buffer", "4", "--plot", path});
  // Nor a picture before there is another.
  const TemporaryFile picture("<svg/>");
  CHECK(run_program(kBin + "tessera-bench", {"-m", "no-such-file", "--plot", picture.path()}).status == 1);
  CHECK(slurp(picture.path()) == "<svg/>");
}

TEST_CASE("texts of a file do not command the terminal") {
  if (lacks_programs()) return;
  const std::string bad = "\x1b]0;x\x07\x1b[31m\xc2\x9b" "31m\nname";
  const TemporaryFile named, with_tensor, out;
  renamed_model(named.path(), bad, "");
  renamed_model(with_tensor.path(), "plain", "blk.0." + bad + ".weight");
  const std::vector<std::pair<std::string, Args>> cases = {
      {"generate", {"-m", named.path(), "--plan"}},
      {"generate", {"-m", with_tensor.path(), "--plan"}},
      {"tessera-inspect", {named.path()}},
      {"tessera-inspect", {with_tensor.path()}},
      {"tessera-quantize", {with_tensor.path(), out.path(), "Q4_K", "--verbose"}},
      {"tessera-quantize", {with_tensor.path(), out.path(), "Q8_0", "--verbose"}},
      {"tessera-bench", {"-m", named.path(), "-n", "1", "--repeat", "1", "--read-buffer", "4"}}};
  for (const auto& [program, args] : cases) {
    INFO(program << " " << args.front() << " ... " << args.back());
    const Outcome got = run_program(kBin + program, args);
    INFO(got.out << got.err);
    CHECK_FALSE(commands_terminal(got.out));
    CHECK_FALSE(commands_terminal(got.err));
    if (program == "generate" && args[1] == with_tensor.path()) continue;  // what it has not to do with, it does not name
    CHECK((got.out + got.err).find("\\x1b") != std::string::npos);
  }
}

TEST_CASE("a program that the shell has ignore Ctrl-C goes on") {
  if (lacks_programs()) return;
  const TemporaryFile quantised;
  const std::vector<std::pair<std::string, Args>> cases = {
      {"tessera-quantize", {kTiny, quantised.path(), "Q8_0"}},
      {"tessera-bench", {"-m", kTiny, "-n", "1", "--repeat", "1", "--read-buffer", "1"}},
      {"generate", {"-m", kTiny, "--prompt-ids", "1", "-n", "8"}}};
  for (const auto& [program, args] : cases) {
    INFO(program);
    const File in = scratch(), out = scratch(), err = scratch();
    const pid_t pid =
        start(kBin + program, args, fileno(in.get()), fileno(out.get()), fileno(err.get()), Interrupts::ignored);
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) kill(pid, SIGINT);  // from its first instruction to its last
    INFO(content_of(err.get()));
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
}

}  // namespace test_cli_outputs
