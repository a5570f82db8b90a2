// libFuzzer's entry to what the server reads of a connection: any bytes are requests, a refusal or the beginning of one, however they
// arrive; a request is what its own text says and nothing else. See CMakeLists.txt for how to run it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "http_reader.hpp"

namespace {

using server::HttpReader;
using server::HttpRequest;

constexpr std::size_t kMostHeader = 2048, kMostBody = 1024;

void require(bool promise) {
  if (!promise) std::abort();
}

struct Seen {
  std::vector<HttpRequest> requests;
  unsigned refused = 0;  // the status
};

void check(const HttpRequest& request) {
  const auto is_line = [](std::string_view text) { return text.find_first_of(std::string_view("\r\n\0", 3)) == text.npos; };
  require(!request.method.empty() && is_line(request.method) && request.method.find(' ') == request.method.npos);
  require(is_line(request.path) && request.path.find_first_of(" ?") == request.path.npos);
  require(is_line(request.query));
  require(request.body.size() <= kMostBody);
  std::size_t hosts = 0;
  for (const auto& [name, value] : request.headers) {
    require(!name.empty() && is_line(name) && is_line(value) && name.find_first_of(": ABCDEFGHIJKLMNOPQRSTUVWXYZ") == name.npos);
    hosts += name == "host" ? 1 : 0;
  }
  require(hosts <= 1);
}

Seen read(const std::vector<std::string_view>& pieces) {
  HttpReader reader(kMostHeader, kMostBody);
  Seen seen;
  for (const std::string_view piece : pieces) {
    reader.add(piece);
    for (HttpReader::Progress step = reader.step(); step != HttpReader::Progress::waits; step = reader.step()) {
      if (step == HttpReader::Progress::refused) {
        seen.refused = reader.refusal().status;
        require(seen.refused == 400 || seen.refused == 413 || seen.refused == 431 || seen.refused == 501);
        require(!reader.refusal().message.empty());
        require(reader.path().find('?') == std::string::npos);
        return seen;
      }
      if (step == HttpReader::Progress::headed) continue;
      seen.requests.push_back(reader.take());
      require(!reader.is_within());
      check(seen.requests.back());
    }
    require(reader.unread() <= kMostHeader);
  }
  return seen;
}

bool same(const HttpRequest& a, const HttpRequest& b) {
  return std::tie(a.method, a.path, a.query, a.headers, a.body) == std::tie(b.method, b.path, b.query, b.headers, b.body);
}

bool same(const Seen& a, const Seen& b) {
  if (a.requests.size() != b.requests.size() || (a.refused == 0) != (b.refused == 0)) return false;
  for (std::size_t i = 0; i < a.requests.size(); ++i) {
    if (!same(a.requests[i], b.requests[i])) return false;
  }
  return true;
}

// The request as another server would pass it on: read again it is the same, and nothing is left.
void pass_on(const HttpRequest& request) {
  const bool has_query = !request.query.empty() || request.path.empty();  // a target of "?" alone has two empty ones
  std::string text = request.method + " " + request.path + (has_query ? "?" + request.query : "") + " HTTP/1.1\r\n";
  HttpRequest kept = request;
  std::erase_if(kept.headers, [](const auto& field) { return field.first == "content-length" || field.first == "transfer-encoding"; });
  if (kept.header("host").empty()) {
    std::erase_if(kept.headers, [](const auto& field) { return field.first == "host"; });
    kept.headers.emplace_back("host", "h");
  }
  kept.headers.emplace_back("content-length", std::to_string(kept.body.size()));
  for (const auto& [name, value] : kept.headers) text += name + ": " + value + "\r\n";
  if (text.size() + 2 > kMostHeader) return;  // written out it may be too long
  const Seen again = read({text, "\r\n", kept.body});
  require(again.refused == 0 && again.requests.size() == 1 && same(again.requests[0], kept));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  // What is wrong with a header may be seen as late as at its end.
  const std::string all = std::string(reinterpret_cast<const char*>(data) + 1, size - 1) + "\r\n\r\n";
  const std::string_view input = all;
  const std::size_t cut = std::min<std::size_t>(data[0], input.size());
  const Seen whole = read({input});
  require(same(whole, read({input.substr(0, cut), input.substr(cut)})));
  std::vector<std::string_view> bytes;
  for (std::size_t i = 0; i < std::min<std::size_t>(input.size(), 512); ++i) bytes.push_back(input.substr(i, 1));
  bytes.push_back(input.substr(bytes.size()));
  require(same(whole, read(bytes)));
  for (const HttpRequest& request : whole.requests) pass_on(request);
  return 0;
}
