// Reads the results of rows and of texts.
#include "outputs.hpp"

#include <span>
#include <string>

#include "values/values.hpp"

using namespace tessera::c;
using tessera::ErrorCode;

int32_t tessera_outputs_row(const tessera_outputs* outputs, size_t row, const float** values, size_t* count,
                            tessera_error** error) {
  return call(error, [&] {
    clear(count);
    const float*& at = out(values, "values");
    size_t& n = out(count, "count");
    const tessera_outputs& of = need(outputs, "outputs");
    if (row >= of.rows) {
      fail(ErrorCode::invalid_argument, "row " + std::to_string(row) + " of " + std::to_string(of.rows) + " rows",
           "row");
    }
    std::span<const float> found;
    if (const auto* vectors = std::get_if<tessera::Embeddings>(&of.results)) {
      found = vectors->row(row);
    } else {
      const auto& rows = std::get<tessera::Outputs>(of.results);
      must(rows.outcome(row));
      found = rows.row(row);
    }
    at = found.data();
    n = found.size();
  });
}

void tessera_outputs_free(tessera_outputs* outputs) { free_handle(outputs); }
