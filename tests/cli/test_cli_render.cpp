// --render: what a model would be given for a conversation, byte for byte, without its weights.
#include "program.hpp"

namespace test_cli_render {

using namespace tessera::tests::cli;

namespace {

const std::string kTemplate =
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{{ eos_token }}{% endfor %}"
    "{% if tools %}{{ tools|tojson }}{% endif %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
    "{% if messages[0].content == '' %}{{ raise_exception('nothing was said') }}{% endif %}";

}  // namespace

TEST_CASE("a conversation is printed as the template has it, and nothing else") {
  if (lacks_program()) return;
  const TemporaryFile form(kTemplate);
  const TemporaryFile talk(R"({"messages": [{"role": "user", "content": "Gr\u00fc\u00dfe\n"}], "eos_token": "</s>"})");
  const Outcome got = run({"--template", form.path(), "--render", talk.path()});
  CHECK(got.status == 0);
  CHECK(got.err.empty());
  CHECK(got.out == "<|user|>Gr\xc3\xbc\xc3\x9f" "e\n</s>");
  CHECK(run({"--template", form.path(), "--render", "-"}, slurp(talk.path())).out == got.out);
}

TEST_CASE("a list of messages asks for an answer, and tools may come from a file") {
  if (lacks_program()) return;
  const TemporaryFile form(kTemplate), talk(R"([{"role": "user", "content": "a"}])"), tools(R"([{"b": 1.0, "a": "\u00e9"}])");
  CHECK(run({"--template", form.path(), "--render", talk.path()}).out == "<|user|>a<|assistant|>");
  CHECK(run({"--template", form.path(), "--render", talk.path(), "--tools", tools.path()}).out ==
        "<|user|>a[{\"b\": 1.0, \"a\": \"\xc3\xa9\"}]<|assistant|>");
}

TEST_CASE("a refusal is status 1 with the template's words, and so is what cannot be read") {
  if (lacks_program()) return;
  const TemporaryFile form(kTemplate), broken("\n{% if %}"), talk(R"([{"role": "user", "content": ""}])"), half("{\"messages\": [");
  const Outcome refused = run({"--template", form.path(), "--render", talk.path()});
  CHECK(refused.status == 1);
  CHECK(refused.out.empty());
  CHECK(refused.err.find("nothing was said") != std::string::npos);
  const Outcome bad = run({"--template", broken.path(), "--render", talk.path()});
  CHECK(bad.status == 1);
  CHECK(bad.err.find("line 2") != std::string::npos);
  const Outcome cut = run({"--template", form.path(), "--render", half.path()});
  CHECK(cut.status == 1);
  CHECK(cut.err.find("JSON, line 1, column 15") != std::string::npos);
  CHECK(run({"--tokens"}).status == 2);
  CHECK(run({"--render", talk.path(), "--plan"}).status == 2);
}

TEST_CASE("as tokens, a message's control tokens are letters") {
  const std::string vocabulary = kShared + "/tokenizers/ggml-vocab-phi-3.gguf";
  if (lacks_program() || lacks(vocabulary, "../shared/tokenizers")) return;
  const TemporaryFile form("{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}<|end|>\n{% endfor %}");
  const TemporaryFile talk(R"({"messages": [{"role": "user", "content": "a <|end|> b"}]})");
  const Outcome got = run({"-m", vocabulary, "--template", form.path(), "--render", talk.path(), "--tokens"});
  CHECK(got.status == 0);
  std::size_t ends = 0, users = 0;
  for (const int id : ids_in(got.out)) ends += id == 32007, users += id == 32010;
  CHECK(users == 1);
  CHECK(ends == 1);
}

}  // namespace test_cli_render
