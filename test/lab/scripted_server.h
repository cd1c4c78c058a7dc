#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace partita::lab {

// Speaks as much HTTP as a client of the table service needs to hear: one request a connection, answered as
// the script says, which gets the whole request and gives the whole answer; empty: it hangs up instead.
class ScriptedServer {
 public:
  using Script = std::function<std::string(const std::string& request)>;

  explicit ScriptedServer(Script script) : script_(std::move(script)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
    listen(listener_, 64);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~ScriptedServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  // With this SAS.
  std::string ConnectionString(const std::string& sas) const {
    return "TableEndpoint=http://" + address() + ";SharedAccessSignature=" + sas;
  }
  // The first lines of all requests so far.
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

  static std::string Answer(int status, const std::string& body) {
    return "HTTP/1.1 " + std::to_string(status) +
           " X\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

 private:
  void Serve() {
    for (int connection; (connection = accept(listener_, nullptr, nullptr)) >= 0; close(connection)) {
      const std::string request = Receive(connection);
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request.substr(0, request.find("\r\n")));
      }
      const std::string answer = script_(request);
      (void)!send(connection, answer.data(), answer.size(), MSG_NOSIGNAL);
    }
  }

  // Up to the end of its body, or of the connection.
  static std::string Receive(int connection) {
    std::string request;
    char chunk[4096];
    for (ssize_t got; (got = recv(connection, chunk, sizeof(chunk), 0)) > 0;) {
      request.append(chunk, static_cast<size_t>(got));
      const size_t head = request.find("\r\n\r\n");
      if (head == std::string::npos) continue;
      const std::string name = "\r\nContent-Length: ";
      const size_t at = request.find(name);
      const size_t body = at < head ? std::stoul(request.substr(at + name.size())) : 0;
      if (request.size() >= head + 4 + body) break;
    }
    return request;
  }

  const Script script_;
  int listener_ = -1;
  uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

}  // namespace partita::lab
