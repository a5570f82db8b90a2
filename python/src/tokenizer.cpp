// tessera.Tokenizer and tessera.Detokenizer.
#include <tessera/extend/text/detokenizer.hpp>

#include "calls.hpp"
#include "types/boxes.hpp"

namespace tessera::python {

Result<Tokens> tokens_of(const TextOrTokens& prompt, const Tokenizer& tokenizer, bool begins, bool special) {
  if (const Tokens* tokens = std::get_if<Tokens>(&prompt)) return *tokens;
  return tokenizer.encode(std::get<std::string>(prompt), {.bos = begins ? Bos::as_model : Bos::never,
                                                          .special = special ? Special::parse : Special::as_text});
}

void bind_tokenizer(nb::module_& m) {
  const auto text_of = [](std::string_view bytes) {
    return nb::object(nb::bytes(bytes.data(), bytes.size()).attr("decode")("utf-8", "replace"));
  };
  nb::class_<Tokenizer>(m, "Tokenizer", no_constructor(), "A vocabulary and its rules. Any thread may use it.")
      .def(
          "encode",
          [](const Tokenizer& self, const std::string& text, std::optional<bool> bos, bool special) {
            const EncodeOptions options{.bos = !bos   ? Bos::as_model
                                               : *bos ? Bos::always
                                                      : Bos::never,
                                        .special = special ? Special::parse : Special::as_text};
            return take(unlocked([&] { return self.encode(text, options); }));
          },
          nb::arg("text"), nb::kw_only(), nb::arg("bos") = nb::none(), nb::arg("special") = false,
          R"(Returns the tokens of a text. bos: True puts the beginning-of-sequence token in front, False does not; None: as the model says. special=True reads
"<|im_end|>" and other names of control tokens as these tokens. By default they are ordinary text, so that a text from strangers cannot contain control
tokens.)")
      .def(
          "decode",
          [](const Tokenizer& self, const Tokens& tokens, bool special, bool continuation) {
            const DecodeOptions options{.control = special ? ControlText::show : ControlText::omit,
                                        .start = continuation ? TextStart::continuation : TextStart::sequence};
            return take(unlocked([&] { return self.decode(tokens, options); }));
          },
          nb::arg("tokens"), nb::kw_only(), nb::arg("special") = false, nb::arg("continuation") = false,
          R"(Returns the text of tokens. special=True also writes the names of control tokens. continuation=True says that the tokens continue a text; then the space
in front of the first word stays.)")
      .def(
          "piece",
          [](const Tokenizer& self, Token token) {
            const auto p = self.piece(token);
            return nb::bytes(p.data(), p.size());
          },
          nb::arg("token"), "Returns the bytes that a token adds to a text.")
      .def(
          "text", [text_of](const Tokenizer& self, Token token) { return text_of(self.text(token)); }, nb::arg("token"),
          nb::sig("def text(self, token: int) -> str"), "Returns the token as it is written in the vocabulary.")
      .def(
          "find", [](const Tokenizer& self, const std::string& text) { return self.find(text); }, nb::arg("text"),
          "Returns the token that is written as `text` in the vocabulary, or None.")
      .def("is_control", &Tokenizer::is_control, nb::arg("token"))
      .def("is_end_of_generation", &Tokenizer::is_end_of_generation, nb::arg("token"))
      .def_prop_ro("vocab_size", &Tokenizer::vocab_size, "Number of tokens.")
      .def("__len__", &Tokenizer::vocab_size)
      .def_prop_ro(
          "bos", [](const Tokenizer& self) { return self.bos(); }, "The beginning-of-sequence token, or None.")
      .def_prop_ro(
          "eos", [](const Tokenizer& self) { return self.eos(); }, "The end-of-sequence token, or None.")
      .def_prop_ro("adds_bos", &Tokenizer::adds_bos, "True if encode() puts the beginning-of-sequence token in front by default.")
      .def(
          "__eq__",
          [](const Tokenizer& self, const nb::object& other) {
            const Tokenizer* it = nullptr;
            return nb::try_cast<const Tokenizer*>(other, it) && it != nullptr && self == *it;
          },
          nb::arg("other"), nb::sig("def __eq__(self, other: object) -> bool"))
      .def("__hash__", [](const Tokenizer& self) { return static_cast<Py_hash_t>(self.fingerprint().low >> 2); })
      .def("__repr__", [](const Tokenizer& self) {
        static constexpr const char* kModels[] = {"none", "llama", "gpt2", "unigram", "gemma4"};
        return std::string("<tessera.Tokenizer ") + kModels[static_cast<std::size_t>(self.model())] + ", " +
               std::to_string(self.vocab_size()) + " tokens>";
      });

  nb::class_<Detokenizer>(m, "Detokenizer",
                          "Turns tokens into text, one token at a time. It returns only whole characters. Only one thread at a time may use it.")
      .def(
          "__init__",
          [](Detokenizer* self, const Tokenizer& tokenizer, bool special, bool continuation) {
            new (self) Detokenizer(tokenizer, {.control = special ? ControlText::show : ControlText::omit,
                                               .start = continuation ? TextStart::continuation : TextStart::sequence});
          },
          nb::arg("tokenizer"), nb::kw_only(), nb::arg("special") = false, nb::arg("continuation") = false)
      .def(
          "push", [](Detokenizer& self, Token token) { return take(self.push(token)); }, nb::arg("token"),
          "Adds a token, and returns the text that is certain now: a character is returned once all of its bytes are there.")
      .def("finish", &Detokenizer::finish, "Ends the text. Returns U+FFFD if the last character is incomplete, else an empty text.");
}

}  // namespace tessera::python
