// Reads lines with libedit. libedit would restart a read that a signal interrupts, so it gets its characters from next_byte().
#include <clocale>
#include <cstdio>
#include <string>

#include <histedit.h>

#include "chat/line_reader.hpp"
#include "failure.hpp"
#include "output/terminal_modes.hpp"

namespace {

// Reads the next UTF-8 character. Malformed bytes become U+FFFD.
Input next_character(Interrupts& interrupts, wchar_t& character) {
  char byte = 0;
  const Input first = next_byte(interrupts, byte);
  if (first != Input::byte) return first;
  const auto lead = static_cast<unsigned char>(byte);
  const int more = lead < 0x80 ? 0 : lead < 0xc0 ? -1 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : lead < 0xf8 ? 3 : -1;
  unsigned value = more == 0 ? lead : more > 0 ? lead & (0x3fu >> more) : 0xfffdu;
  for (int i = 0; i < more; ++i) {
    const Input next = next_byte(interrupts, byte);
    if (next != Input::byte) return next;
    value = value << 6 | (static_cast<unsigned char>(byte) & 0x3fu);
  }
  character = static_cast<wchar_t>(value);
  return Input::byte;
}

class EditedReader final : public LineReader {
 public:
  explicit EditedReader(Interrupts& interrupts) : interrupts_(interrupts) {
    if (std::setlocale(LC_CTYPE, "") == nullptr || MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");
    editor_ = el_init("generate", stdin, stderr, stderr);
    history_ = history_init();
    if (editor_ == nullptr || history_ == nullptr) throw Failure(tessera::ErrorCode::out_of_memory, "no memory for lines");
    HistEvent event;
    history(history_, &event, H_SETSIZE, 500);
    history(history_, &event, H_SETUNIQUE, 1);
    el_set(editor_, EL_CLIENTDATA, this);
    el_set(editor_, EL_PROMPT, &EditedReader::prompt);
    el_set(editor_, EL_EDITOR, "emacs");
    el_set(editor_, EL_HIST, history, history_);
    el_set(editor_, EL_GETCFN, &EditedReader::get);
    // Sets the terminal modes between two lines. By default libedit would switch icanon and echo on: the terminal would show typed text,
    // and the switch could lose some of the text. With these modes typed text waits unseen, and Ctrl-C does not discard the text (noflsh).
    el_set(editor_, EL_SETTY, "-x", "-icanon", "-echo", "+noflsh", nullptr);
    el_set(editor_, EL_BIND, "\\e[3~", "ed-delete-next-char", nullptr);
    el_set(editor_, EL_BIND, "\\e[1;5C", "em-next-word", nullptr);
    el_set(editor_, EL_BIND, "\\e[1;5D", "ed-prev-word", nullptr);
  }
  EditedReader(const EditedReader&) = delete;
  EditedReader& operator=(const EditedReader&) = delete;
  ~EditedReader() override {
    if (editor_ != nullptr) el_end(editor_);
    if (history_ != nullptr) history_end(history_);
  }

  Line read(const std::string& prompt) override {
    prompt_ = prompt;
    last_ = Input::byte;
    int size = 0;
    const char* typed = el_gets(editor_, &size);
    if (last_ == Input::interrupted) return {Line::Kind::interrupted};
    if (typed == nullptr || size <= 0) return {};
    std::string text(typed, static_cast<std::size_t>(size));
    if (text.ends_with('\n')) text.pop_back();
    HistEvent event;
    if (!text.empty()) history(history_, &event, H_ENTER, text.c_str());
    return {Line::Kind::text, std::move(text)};
  }

  [[nodiscard]] bool is_terminal() const override { return true; }

 private:
  static EditedReader& self(EditLine* editor) {
    void* data = nullptr;
    el_get(editor, EL_CLIENTDATA, &data);
    return *static_cast<EditedReader*>(data);
  }
  static char* prompt(EditLine* editor) { return self(editor).prompt_.data(); }
  static int get(EditLine* editor, wchar_t* character) {
    EditedReader& reader = self(editor);
    try {
      reader.last_ = next_character(reader.interrupts_, *character);
      // Ctrl-D that was typed before the editor was made: the kernel stored it as a null character.
      if (*character == L'\0') *character = L'\4';
    } catch (const Failure&) {
      reader.last_ = Input::end;  // no exception may pass through C code
    }
    return reader.last_ == Input::byte ? 1 : reader.last_ == Input::end ? 0 : -1;
  }

  TerminalModes modes_;
  Interrupts& interrupts_;
  EditLine* editor_ = nullptr;
  History* history_ = nullptr;
  std::string prompt_;
  Input last_ = Input::byte;
};

}  // namespace

std::unique_ptr<LineReader> make_edited_reader(Interrupts& interrupts) { return std::make_unique<EditedReader>(interrupts); }
