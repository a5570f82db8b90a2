// Unicode's four normal forms (UAX 15), with and without the replacement of compatibility characters. For NFC, Nfc (text/nfc.hpp) is
// faster on texts that are almost normal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/pipeline/characters.hpp"

namespace tessera::detail {

struct NormalForm {
  bool compatibility;  // true: NFKD and NFKC
  bool composed;       // true: NFC and NFKC
};

// Brings texts into a normal form, with working memory that lasts for one encode() call of the tokenizer.
class NormalFormer {
 public:
  // Replaces `out` by the normal form of `text`, which must be valid UTF-8. Linear time, apart from sorting of consecutive marks.
  void normalize(std::string_view text, NormalForm form, std::string& out);

 private:
  void decompose(std::string_view text, NormalForm form);
  void order_marks();

  std::vector<CodePoint> points_;  // a part of the text; while marks are sorted, each with its combining class above bit 21
};

}  // namespace tessera::detail
