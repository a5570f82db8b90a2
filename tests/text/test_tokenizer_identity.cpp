// What tells one tokenizer from another, and text from what is none.
#include "catch.hpp"
#include "text/rig.hpp"

namespace test_tokenizer_identity {

using namespace tessera;
using namespace rig;

TEST_CASE("a piece is what a token adds to the text: nothing for control tokens, the bytes of all others") {
  Vocab v = sentencepiece();
  v.add(kSpace);
  const Token word = v.add(kSpace + "the"), control = v.add("<|im_end|>", TokenType::control),
              user = v.add(kSpace + "y", TokenType::user_defined), empty = v.add("");
  const Tokenizer llama = rig::tokenizer(v);
  for (int byte = 0; byte < 256; ++byte) {
    CHECK(llama.piece(static_cast<Token>(3 + byte)) == std::string(1, static_cast<char>(byte)));
    CHECK_FALSE(llama.is_control(static_cast<Token>(3 + byte)));
  }
  CHECK(llama.piece(word) == " the");
  CHECK(llama.piece(user) == kSpace + "y");
  for (const Token token : {Token{0}, Token{1}, Token{2}, control}) {
    CHECK(llama.piece(token).empty());
    CHECK(llama.is_control(token));
  }
  CHECK(llama.text(control) == "<|im_end|>");
  CHECK(llama.piece(empty).empty());
  CHECK_FALSE(llama.is_control(empty));
  CHECK_FALSE(llama.is_control(-1));
  CHECK_FALSE(Tokenizer().is_control(0));

  Vocab b = byte_level({{" ", "\xFF"}});
  const Token end = b.add("<|endoftext|>");  // a normal token by type, a control token by name
  const Tokenizer gpt2 = rig::tokenizer(b);
  for (int byte = 0; byte < 256; ++byte) {
    CHECK(gpt2.piece(static_cast<Token>(byte)) == std::string(1, static_cast<char>(byte)));
  }
  CHECK(gpt2.piece(256) == " \xFF");
  CHECK(gpt2.piece(end).empty());
  CHECK(gpt2.is_control(end));

  // Without control tokens, the pieces of what a text encodes to are the text.
  const std::string text = "the <|im_end|> \xFF\xFE 中 x";
  for (const Tokenizer& tokenizer : {llama, gpt2}) {
    std::string back;
    const auto ids = tokenizer.encode(text, kPlain);
    REQUIRE(ids);
    for (const Token id : *ids) back += tokenizer.piece(id);
    CHECK(back == (tokenizer == llama ? " " + text : text));
  }
}

TEST_CASE("equal tokenizers have the same fingerprint, and any difference shows") {
  const auto base = [] {
    Vocab v = byte_level({{"a", "b"}, {"b", "c"}, {"ab", "c"}});
    v.add("<end>", TokenType::control);
    v.ids["eos_token_id"] = static_cast<std::uint32_t>(v.tokens.size() - 1);
    return v;
  };
  const Tokenizer one = rig::tokenizer(base());
  CHECK(one == rig::tokenizer(base()));
  CHECK(one.fingerprint() == rig::tokenizer(base()).fingerprint());
  CHECK(one.fingerprint() != Hash128{});
  Vocab other = base();
  other.name = "another model";
  CHECK(one == rig::tokenizer(other));
  other.pre = "gpt2";  // another name for the same patterns
  CHECK(one == rig::tokenizer(other));

  std::vector<Vocab> different(8, base());
  different[0].tokens[5] = "zz";
  different[1].types[5] = static_cast<std::int32_t>(TokenType::user_defined);
  std::swap(different[2].merges[0], different[2].merges[1]);
  different[3].pre = "qwen2";
  different[4].flags["add_bos_token"] = true;
  different[5].ids["bos_token_id"] = 7;
  different[6].add("more");
  different[7].pre = "llama-bpe";
  Vocab llama = sentencepiece();
  for (std::string text : {"a", "b"}) llama.add(text, TokenType::normal, -1);
  different.push_back(llama);
  different.push_back(llama);
  different.back().scores.back() = -2;
  different.push_back(llama);
  different.back().flags["add_space_prefix"] = false;
  different.push_back(llama);
  different.back().name = "Phi-3 mini";  // takes white space behind special tokens along
  std::vector<Tokenizer> all = {one};
  for (const Vocab& v : different) all.push_back(rig::tokenizer(v));
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t k = 0; k < all.size(); ++k) {
      CAPTURE(i, k);
      CHECK((all[i] == all[k]) == (i == k));
      CHECK((all[i].fingerprint() == all[k].fingerprint()) == (i == k));
    }
  }
  CHECK(Tokenizer() == Tokenizer());
  CHECK_FALSE(Tokenizer() == one);
  CHECK(Tokenizer().fingerprint() == Hash128{});
}

TEST_CASE("a file that does not name its pre-tokenizer is told from one that does") {
  Vocab v = byte_level({}, "default");
  CHECK_FALSE(rig::tokenizer(v).pre_tokenizer_is_assumed());
  v.pre.reset();
  CHECK(rig::tokenizer(v).pre_tokenizer_is_assumed());
  CHECK(rig::tokenizer(v).pre_tokenizer() == "default");
  CHECK_FALSE(rig::tokenizer(sentencepiece()).pre_tokenizer_is_assumed());
}

}  // namespace test_tokenizer_identity
