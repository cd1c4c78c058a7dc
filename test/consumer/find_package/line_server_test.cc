// Starts the line server, talks to it over several connections at once, restarts it and looks again.
//
//   line_server_test SERVER DIRECTORY
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "line_server_test: %s\n", what.c_str());
  std::exit(1);
}

void ExpectEqual(const std::string& got, const std::string& expected, const std::string& what) {
  if (got != expected) Fail(what + ": got '" + got + "', expected '" + expected + "'");
}

// The server as a child; ready once it has said "listening".
class Server {
 public:
  Server(const std::string& program, const std::string& directory, const std::string& socket) {
    int ends[2];
    if (pipe(ends) != 0) Fail("pipe");
    child_ = fork();
    if (child_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      close(ends[1]);
      execl(program.c_str(), program.c_str(), directory.c_str(), socket.c_str(), nullptr);
      _exit(127);
    }
    close(ends[1]);
    char byte = 0;
    std::string said;
    while (read(ends[0], &byte, 1) == 1 && byte != '\n') said += byte;
    close(ends[0]);
    ExpectEqual(said, "listening", "the server's first line");
  }

  // Waits for its end; its exit code.
  int Wait() {
    int status = 0;
    if (waitpid(child_, &status, 0) != child_) Fail("waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t child_ = -1;
};

class Client {
 public:
  explicit Client(const std::string& path) : socket_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    if (connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      Fail("connect to " + path);
  }
  ~Client() { close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void Send(const std::string& line) {
    const std::string bytes = line + "\n";
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t sent = send(socket_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) Fail("the server closed the connection");
      at += static_cast<size_t>(sent);
    }
  }

  std::string ReadLine() {
    for (;;) {
      const size_t end = buffer_.find('\n');
      if (end != std::string::npos) {
        const std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return line;
      }
      char bytes[4096];
      const ssize_t got = read(socket_, bytes, sizeof bytes);
      if (got <= 0) Fail("the server closed the connection");
      buffer_.append(bytes, static_cast<size_t>(got));
    }
  }

  std::string Ask(const std::string& line) {
    Send(line);
    return ReadLine();
  }

 private:
  int socket_;
  std::string buffer_;
};

std::string RowName(int number) {
  char name[16];
  std::snprintf(name, sizeof name, "row-%03d", number);
  return name;
}

constexpr int kRows = 40;

void CheckOneConnection(const std::string& socket) {
  Client client(socket);
  ExpectEqual(client.Ask("GET p none"), "-", "a missing row");
  const std::string first = client.Ask("PUT p r some value");
  if (first.size() < 2 || first[0] != '+') Fail("PUT answered " + first);
  ExpectEqual(client.Ask("GET p r"), "+some value", "the row just put");
  const std::string second = client.Ask("PUT p r another");
  if (second == first) Fail("two writes of a row have one ETag");
  ExpectEqual(client.Ask("GET p r"), "+another", "the row put twice");
  ExpectEqual(client.Ask("DEL p r"), "+", "deleting it");
  ExpectEqual(client.Ask("DEL p r"), "-", "deleting it again");
  ExpectEqual(client.Ask("GET p r"), "-", "the deleted row");
  ExpectEqual(client.Ask("NONSENSE").substr(0, 1), "!", "an unknown command");
  ExpectEqual(client.Ask("PUT a/b r x").substr(0, 1), "!", "a key with a forbidden character");
  client.Send("QUIT");
}

// Each client writes a partition of its own: even rows synchronously, odd ones asynchronously.
void WritePartition(const std::string& socket, int number) {
  Client client(socket);
  const std::string partition = "client-" + std::to_string(number);
  for (int row = 0; row < kRows; ++row) {
    const std::string words = partition + " " + RowName(row) + " value " + std::to_string(row);
    if (row % 2 == 0) {
      if (client.Ask("PUT " + words)[0] != '+') Fail("PUT " + words);
    } else {
      client.Send("APUT " + words);
    }
  }
  ExpectEqual(client.Ask("AWAIT"), "+" + std::to_string(kRows / 2), "asynchronous writes");
  client.Send("QUIT");
}

void CheckPartition(const std::string& socket, int number) {
  Client client(socket);
  ExpectEqual(client.Ask("SCAN client-" + std::to_string(number)), "+" + std::to_string(kRows),
              "rows in a partition");
  for (int row = 0; row < kRows; ++row) {
    ExpectEqual(client.ReadLine(), RowName(row) + " value " + std::to_string(row), "a row of the scan");
  }
  client.Send("QUIT");
}

// One that is connected and says nothing must not keep it.
void StopServer(Server* server, const std::string& socket) {
  Client idle(socket);
  ExpectEqual(idle.Ask("GET p none"), "-", "a missing row");
  Client(socket).Send("SHUTDOWN");
  if (const int code = server->Wait(); code != 0)
    Fail("the server ended with exit code " + std::to_string(code));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) Fail("usage: line_server_test SERVER DIRECTORY");
  alarm(300);  // What hangs fails.
  constexpr int kClients = 8;
  const std::string directory = argv[2], socket = directory + ".socket";
  {
    Server server(argv[1], directory, socket);
    CheckOneConnection(socket);
    std::vector<std::thread> clients;
    for (int number = 0; number < kClients; ++number) clients.emplace_back(WritePartition, socket, number);
    for (std::thread& client : clients) client.join();
    for (int number = 0; number < kClients; ++number) CheckPartition(socket, number);
    StopServer(&server, socket);
  }
  Server again(argv[1], directory, socket);
  for (int number = 0; number < kClients; ++number) CheckPartition(socket, number);
  StopServer(&again, socket);
  std::puts("line_server_test: all answers are right");
}
