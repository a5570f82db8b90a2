// Prints results: for people, and as JSON.
#pragma once

#include <string>
#include <string_view>

#include "answering.hpp"
#include "indexing.hpp"
#include "search.hpp"
#include "store/store.hpp"

namespace rag {

// Writes to standard output at once. Replaces control characters on a terminal, because texts of files may contain them. Throws Failure if
// the output is lost.
void print(std::string_view text);

void print_report(const IndexReport& report, const IndexCounts& counts, bool json);
void print_status(const IndexSettings& settings, const IndexCounts& counts, const std::string& index, bool json);
void print_found(std::string_view question, const SearchResult& result, bool json);
// Prints an answer. Without `json`, the answer's text was printed while it came, so only its sources and figures are printed. With `json`,
// prints one JSON object with everything, also the text.
void print_answer(std::string_view question, const SearchResult& result, const AnswerReport& report, bool json);
void print_nothing(std::string_view question, const SearchResult& result, float least, bool json);

}  // namespace rag
