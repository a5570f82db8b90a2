// The built tessera-server as a user starts it, and a small HTTP/1.1 client on sockets that shows what came as it came.
#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <tessera/json/json.hpp>

#include "catch.hpp"

extern "C" char** environ;

namespace tessera::tests::server {

inline const std::string kServer = TESSERA_BIN_DIR "/tessera-server";
inline const std::string kGolden = TESSERA_SOURCE_DIR "/tests/golden/data/";
inline const std::string kTiny = kGolden + "llama-gqa.gguf";  // random weights, 104 tokens, context 64
inline const std::string kStories = TESSERA_SOURCE_DIR "/models/tessera-stories.gguf";

// True, and told, when the program is not built.
inline bool lacks_server() {
  if (std::filesystem::exists(kServer)) return false;
  skip("the example program \"tessera-server\" (not built)");
  return true;
}

// Clients run in threads of their own, where Catch2 has no assertions: a mistake of theirs is an exception.
inline void must(bool holds, const std::string& text) {
  if (!holds) throw std::runtime_error(text);
}

using HeaderList = std::vector<std::pair<std::string, std::string>>;

struct Response {
  int status = 0;  // 0: the connection ended before a status line
  HeaderList headers{};  // names in lower case
  std::string body{};    // without chunks
  bool is_whole = false;  // all that its head promises came

  [[nodiscard]] std::string header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
      if (key == name) return value;
    }
    return {};
  }
  [[nodiscard]] Json json() const {
    auto value = Json::parse(body);
    must(value.has_value(), "no JSON: " + body);
    return *value;
  }
};

// One of a stream: `data` is its data lines.
struct ServerEvent {
  std::string event{}, data{};
  [[nodiscard]] Json json() const {
    auto value = Json::parse(data);
    must(value.has_value(), "no JSON: " + data);
    return *value;
  }
};

// A value in JSON by names and indices: at(json, {"choices", "0", "text"}); null if it is not there.
inline Json at(Json json, const std::vector<std::string>& path) {
  for (const std::string& key : path) {
    if (const Json::Array* list = json.elements()) {
      const auto index = static_cast<std::size_t>(std::strtoul(key.c_str(), nullptr, 10));
      json = index < list->size() ? Json((*list)[index]) : Json();
    } else {
      const Json* value = json.find(key);
      json = value != nullptr ? Json(*value) : Json();
    }
  }
  return json;
}
inline std::string text_at(const Json& json, const std::vector<std::string>& path) {
  const Json value = at(json, path);
  return value.string() != nullptr ? *value.string() : value.dump();
}
inline std::int64_t number_at(const Json& json, const std::vector<std::string>& path) {
  const Json value = at(json, path);
  return value.integer() != nullptr ? *value.integer() : -1;
}

// One connection. Nothing waits longer than `patience` for the next byte.
class Connection {
 public:
  explicit Connection(std::uint16_t port, std::chrono::milliseconds patience = std::chrono::seconds(60)) : patience_(patience) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(fd_ >= 0, "no socket");
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_open_ = connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { drop(); }

  [[nodiscard]] bool is_open() const { return is_open_; }
  [[nodiscard]] int fd() const { return fd_; }
  // As a client that goes away. With `reset` the other side sees an error rather than an end.
  void drop(bool reset = false) {
    if (fd_ < 0) return;
    const linger now{1, 0};
    if (reset) setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    ::close(fd_);
    fd_ = -1;
    is_open_ = false;
  }
  // No more is sent; answers still come.
  void end_sending() { shutdown(fd_, SHUT_WR); }

  // --- Bytes. send_raw: false if the other side has closed.
  bool send_raw(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  // What comes next; empty at the end, or when patience does.
  std::string receive_some() {
    if (!unread_.empty()) return std::exchange(unread_, {});
    return from_socket();
  }
  // All up to the end of the connection.
  std::string receive_all() {
    std::string all;
    for (std::string more = receive_some(); !more.empty(); more = receive_some()) all += more;
    return all;
  }

  // --- Requests. A body gets its Content-Length, and application/json unless the headers say otherwise.
  static std::string text_of(std::string_view method, std::string_view path, const HeaderList& headers, std::string_view body) {
    std::string text = std::string(method) + " " + std::string(path) + " HTTP/1.1\r\n";
    const auto has = [&](std::string_view name) {
      return std::any_of(headers.begin(), headers.end(), [&](const auto& each) { return lower(each.first) == name; });
    };
    if (!has("host")) text += "Host: localhost\r\n";
    for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
    if (!body.empty() && !has("content-type")) text += "Content-Type: application/json\r\n";
    if ((!body.empty() || method == "POST") && !has("content-length") && !has("transfer-encoding")) {
      text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    }
    return text + "\r\n" + std::string(body);
  }
  bool send_request(std::string_view method, std::string_view path, const HeaderList& headers = {}, std::string_view body = {}) {
    is_head_only_ = method == "HEAD";
    return send_raw(text_of(method, path, headers, body));
  }
  // The head of an answer: its status and headers. Interim answers (100) are passed over.
  Response receive_head() {
    Response response;
    do {
      response = {};
      const std::string line = take_line();
      if (!line.starts_with("HTTP/1.") || line.size() < 12) return response;
      const int status = std::atoi(line.substr(9, 3).c_str());
      for (std::string field = take_line(); !field.empty(); field = take_line()) {
        const std::size_t colon = field.find(':');
        if (colon == std::string::npos) return response;
        const std::size_t value = field.find_first_not_of(' ', colon + 1);
        response.headers.emplace_back(lower(field.substr(0, colon)), value == std::string::npos ? "" : field.substr(value));
      }
      response.status = status;
    } while (response.status / 100 == 1);
    is_chunked_ = lower(response.header("transfer-encoding")) == "chunked";
    const std::string length = response.header("content-length");
    to_come_ = is_chunked_ || length.empty() ? 0 : std::strtoull(length.c_str(), nullptr, 10);
    until_close_ = !is_chunked_ && length.empty();
    is_over_ = is_head_only_ || response.status == 204 || response.status == 304 || (!is_chunked_ && !until_close_ && to_come_ == 0);
    is_whole_ = is_over_;
    events_.clear();
    return response;
  }
  // More of its body, without chunks; empty at its end.
  std::string receive_body_some() {
    if (is_over_) return {};
    if (is_chunked_ && to_come_ == 0) {
      const std::string size = take_line();
      to_come_ = std::strtoull(size.c_str(), nullptr, 16);
      if (size.empty() || to_come_ == 0) {
        is_over_ = true;
        is_whole_ = !size.empty() && take_line().empty();
        return {};
      }
    }
    std::string some = receive_some();
    if (some.empty()) {
      is_over_ = true;
      is_whole_ = until_close_;
      return {};
    }
    if (until_close_) return some;
    if (some.size() > to_come_) {
      unread_ = some.substr(to_come_) + unread_;
      some.resize(to_come_);
    }
    to_come_ -= some.size();
    if (to_come_ == 0) {
      if (is_chunked_) (void)take_line();
      else is_over_ = is_whole_ = true;
    }
    return some;
  }
  Response receive_response() {
    Response response = receive_head();
    if (response.status == 0) return response;
    for (std::string more = receive_body_some(); !more.empty(); more = receive_body_some()) response.body += more;
    response.is_whole = is_whole_;
    return response;
  }
  Response request(std::string_view method, std::string_view path, const HeaderList& headers = {}, std::string_view body = {}) {
    if (!send_request(method, path, headers, body)) return {};
    return receive_response();
  }

  // The next event of the body, as it comes; comments are passed over. nullopt at its end.
  std::optional<ServerEvent> next_event() {
    for (;;) {
      const std::size_t end = events_.find("\n\n");
      if (end == std::string::npos) {
        const std::string more = receive_body_some();
        if (more.empty()) return std::nullopt;
        events_ += more;
        continue;
      }
      const std::string block = events_.substr(0, end);
      events_.erase(0, end + 2);
      ServerEvent event;
      bool has_data = false;
      for (std::size_t at = 0; at <= block.size();) {
        const std::size_t stop = std::min(block.find('\n', at), block.size());
        const std::string_view line = std::string_view(block).substr(at, stop - at);
        at = stop + 1;
        if (line.starts_with("event: ")) event.event = line.substr(7);
        if (!line.starts_with("data: ")) continue;
        if (std::exchange(has_data, true)) event.data += '\n';
        event.data += line.substr(6);
      }
      if (has_data) return event;
    }
  }
  // All events to the end.
  std::vector<ServerEvent> all_events() {
    std::vector<ServerEvent> events;
    while (auto event = next_event()) events.push_back(*std::move(event));
    return events;
  }
  [[nodiscard]] bool is_whole() const { return is_whole_; }  // the body came to its end

  static std::string lower(std::string_view text) {
    std::string result(text);
    for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result;
  }

 private:
  std::string from_socket() {
    pollfd wait{fd_, POLLIN, 0};
    if (fd_ < 0 || poll(&wait, 1, static_cast<int>(patience_.count())) <= 0) return {};
    char bytes[16384];
    const ssize_t n = recv(fd_, bytes, sizeof bytes, 0);
    return n > 0 ? std::string(bytes, static_cast<std::size_t>(n)) : std::string();
  }
  // Up to "\r\n", which is taken too. Empty at the end, as an empty line is.
  std::string take_line() {
    for (;;) {
      const std::size_t end = unread_.find("\r\n");
      if (end != std::string::npos) {
        std::string line = unread_.substr(0, end);
        unread_.erase(0, end + 2);
        return line;
      }
      const std::string more = from_socket();
      if (more.empty()) return {};
      unread_ += more;
    }
  }

  int fd_ = -1;
  bool is_open_ = false;
  std::chrono::milliseconds patience_;
  std::string unread_, events_;
  std::uint64_t to_come_ = 0;  // bytes of the body, or of the chunk
  bool is_chunked_ = false, until_close_ = false, is_over_ = true, is_whole_ = false, is_head_only_ = false;
};

// A server of its own, on a port that was free, until this goes. Its log is kept.
class RunningServer {
 public:
  explicit RunningServer(std::vector<std::string> args = {}) {
    int out[2];
    REQUIRE(pipe2(out, O_CLOEXEC) == 0);
    log_ = std::tmpfile();
    REQUIRE(log_ != nullptr);
    args.insert(args.begin(), {kServer, "--port", "0"});
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(arg.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out[1], 1);
    posix_spawn_file_actions_adddup2(&files, fileno(log_), 2);
    const int error = posix_spawn(&pid_, kServer.c_str(), &files, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    ::close(out[1]);
    REQUIRE(error == 0);
    out_ = out[0];
    while (line_.find('\n') == std::string::npos) {
      char bytes[256];
      const ssize_t n = read(out_, bytes, sizeof bytes);
      if (n <= 0) break;
      line_.append(bytes, static_cast<std::size_t>(n));
    }
    const std::size_t colon = line_.rfind(':');  // "... at http://127.0.0.1:43210/"
    if (colon != std::string::npos) port_ = static_cast<std::uint16_t>(std::atoi(line_.c_str() + colon + 1));
    INFO("the server's first line: " << line_ << "\nits log: " << log());
    REQUIRE(port_ != 0);
  }
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;
  ~RunningServer() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    if (out_ >= 0) ::close(out_);
    if (log_ != nullptr) std::fclose(log_);
  }

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const std::string& first_line() const { return line_; }
  // What it wrote to standard error so far.
  [[nodiscard]] std::string log() const {
    std::string text;
    char bytes[4096];
    for (off_t at = 0;;) {
      const ssize_t n = pread(fileno(log_), bytes, sizeof bytes, at);
      if (n <= 0) return text;
      text.append(bytes, static_cast<std::size_t>(n));
      at += n;
    }
  }
  void signal(int number) const {
    if (pid_ > 0) kill(pid_, number);  // it may have ended: -1 would be everybody
  }
  // Its exit status, or 128 + the signal that ended it, once it has ended; nullopt after `patience`.
  std::optional<int> wait(std::chrono::milliseconds patience = std::chrono::seconds(60)) {
    const auto end = std::chrono::steady_clock::now() + patience;
    for (;;) {
      int status = 0;
      if (waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      }
      if (std::chrono::steady_clock::now() > end) return std::nullopt;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  // SIGTERM, and its exit status.
  std::optional<int> terminate() {
    signal(SIGTERM);
    const std::optional<int> status = wait();
    if (status != 0) UNSCOPED_INFO("the server's log: " << log());
    return status;
  }

  // On a connection of its own.
  Response request(std::string_view method, std::string_view path, const HeaderList& headers = {}, std::string_view body = {}) const {
    Connection connection(port_);
    must(connection.is_open(), "the server accepts no connection");
    return connection.request(method, path, headers, body);
  }
  Response post(std::string_view path, std::string_view body, const HeaderList& headers = {}) const { return request("POST", path, headers, body); }

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  std::FILE* log_ = nullptr;
  std::uint16_t port_ = 0;
  std::string line_;
};

}  // namespace tessera::tests::server
