// A small server that embeds Partita: a line protocol over a Unix socket, a thread a connection.
//
//   line_server DIRECTORY SOCKET
//
//   PUT <partition> <row> <value>   +<etag>     durable when answered
//   APUT <partition> <row> <value>  (nothing)   started; AWAIT answers for it
//   AWAIT                           +<count>    all of this connection's APUTs are durable
//   GET <partition> <row>           +<value>, or - when there is none
//   SCAN <partition>                +<count>, then one line "<row> <value>" each
//   DEL <partition> <row>           +, or - when there is none
//   QUIT                            closes the connection
//   SHUTDOWN                        ends all connections, closes the store and ends the server
//
// Keys hold no spaces, values no line ends. A wrong line answers "!" and the reason.
//
// Threads: each connection calls the store on its own thread, synchronously for PUT, GET, SCAN and
// DEL. APUT calls asynchronously; its completion runs on one of Partita's worker threads, where it
// only counts and notifies.
#include <partita/partita.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>

namespace {

// The asynchronous writes of one connection.
class Outstanding {
 public:
  void Started() {
    const std::lock_guard lock(mutex_);
    ++running_;
  }

  void Ended(const partita::Status& status) {
    const std::lock_guard lock(mutex_);
    --running_;
    if (status.ok()) {
      ++written_;
    } else {
      error_ = status.ToString();
    }
    changed_.notify_all();
  }

  // Waits for all of them; the number written since the last call, or the last error.
  std::string Await() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return running_ == 0; });
    const std::string answer = error_.empty() ? "+" + std::to_string(written_) : "!" + error_;
    written_ = 0;
    error_.clear();
    return answer;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int running_ = 0;
  int written_ = 0;
  std::string error_;
};

partita::Entity ToEntity(const std::string& partition, const std::string& row, const std::string& value) {
  partita::Entity entity(partition, row);
  entity.Set("Value", value);
  return entity;
}

std::string ValueOf(const partita::Entity& entity) {
  const std::string* value = entity.GetString("Value");
  return value != nullptr ? *value : "";
}

// One connection: reads lines, answers each.
class Connection {
 public:
  Connection(int socket, partita::Table table) : socket_(socket), table_(std::move(table)) {}

  // Serves until QUIT, SHUTDOWN or the end of input; true when it was SHUTDOWN.
  bool Serve() {
    std::string line;
    while (ReadLine(&line)) {
      std::istringstream words(line);
      std::string command;
      words >> command;
      if (command == "QUIT" || command == "SHUTDOWN") {
        outstanding_.Await();
        return command == "SHUTDOWN";
      }
      const std::string answer = Answer(command, words);
      if (!answer.empty() && !WriteLine(answer)) break;
    }
    outstanding_.Await();
    return false;
  }

 private:
  std::string Answer(const std::string& command, std::istringstream& words) {
    std::string partition, row, value;
    words >> partition;
    if (command == "AWAIT") return outstanding_.Await();
    if (command == "SCAN") return Scan(partition);
    words >> row;
    std::getline(words >> std::ws, value);
    if (command == "PUT") {
      const partita::WriteResult result = table_.InsertOrReplace(ToEntity(partition, row, value));
      return result.ok() ? "+" + result.etag : "!" + result.status.ToString();
    }
    if (command == "APUT") {
      outstanding_.Started();
      partita::Write write;
      write.action = partita::WriteAction::kInsertOrReplace;
      write.entity = ToEntity(partition, row, value);
      table_.WriteAsync(std::move(write), {},
                        [this](const partita::WriteResult& result) { outstanding_.Ended(result.status); });
      return "";
    }
    if (command == "GET") {
      const partita::Result<partita::Entity> entity = table_.Get(partition, row);
      if (entity.ok()) return "+" + ValueOf(*entity);
      return entity.code() == partita::Code::kNotFound ? "-" : "!" + entity.status().ToString();
    }
    if (command == "DEL") {
      const partita::Status status = table_.Delete(partition, row).status;
      if (status.ok()) return "+";
      return status.code() == partita::Code::kNotFound ? "-" : "!" + status.ToString();
    }
    return "!no command " + command;
  }

  std::string Scan(const std::string& partition) {
    partita::ScanOptions options;
    options.partition = partition;
    options.limit = 7;  // Small, so that the continuation is used.
    std::string lines;
    size_t count = 0;
    do {
      const partita::Result<partita::Page> page = table_.Scan(options);
      if (!page.ok()) return "!" + page.status().ToString();
      for (const partita::Entity& entity : page.value().entities) {
        lines += "\n" + entity.row_key() + " " + ValueOf(entity);
        ++count;
      }
      options.continuation = page.value().continuation;
    } while (!options.continuation.empty());
    return "+" + std::to_string(count) + lines;
  }

  bool ReadLine(std::string* line) {
    for (;;) {
      const size_t end = buffer_.find('\n');
      if (end != std::string::npos) {
        *line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return true;
      }
      char bytes[4096];
      const ssize_t got = read(socket_, bytes, sizeof bytes);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      buffer_.append(bytes, static_cast<size_t>(got));
    }
  }

  bool WriteLine(const std::string& answer) {
    const std::string bytes = answer + "\n";
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t sent = send(socket_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return false;
      at += static_cast<size_t>(sent);
    }
    return true;
  }

  int socket_;
  partita::Table table_;
  Outstanding outstanding_;
  std::string buffer_;
};

int Listen(const char* path) {
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener, 64) != 0) {
    std::perror(path);
    return -1;
  }
  return listener;
}

partita::Result<partita::Table> OpenValues(partita::Database* database) {
  auto table = database->OpenTable("Values");
  if (table.code() == partita::Code::kNotFound) return database->CreateTable("Values");
  return table;
}

// The connections that are served, a thread each.
class Connections {
 public:
  explicit Connections(const partita::Table& table) : table_(table) {}

  // Serves one more, and closes it at its end; where that was a SHUTDOWN calls `shutdown_asked` first.
  void Begin(int socket, const std::function<void()>& shutdown_asked) {
    const std::lock_guard lock(mutex_);
    JoinEnded();
    Served& served = served_.emplace_back();
    served.socket = socket;
    served.thread = std::thread([this, &served, shutdown_asked] {
      if (Connection(served.socket, table_).Serve()) shutdown_asked();
      const std::lock_guard ended(mutex_);
      close(served.socket);
      served.ended = true;
    });
  }

  // No further line is read of any; returns when all are answered. No other may begin.
  void End() {
    {
      const std::lock_guard lock(mutex_);
      for (const Served& served : served_) {
        if (!served.ended) shutdown(served.socket, SHUT_RD);
      }
    }
    for (Served& served : served_) served.thread.join();
    served_.clear();
  }

 private:
  struct Served {
    int socket = -1;
    bool ended = false;
    std::thread thread;
  };

  // Else each would keep its stack until the server's end.
  void JoinEnded() {
    served_.remove_if([](Served& served) {
      if (served.ended) served.thread.join();
      return served.ended;
    });
  }

  const partita::Table& table_;
  std::mutex mutex_;
  std::list<Served> served_;  // Each stays in its place, as its thread refers to it.
};

// Accepts connections until one of them asks for the end.
void ServeAll(int listener, const partita::Table& table) {
  std::atomic<bool> ending = false;
  const auto end = [listener, &ending] {
    ending = true;
    shutdown(listener, SHUT_RDWR);  // Ends the waiting accept.
  };
  Connections connections(table);
  while (!ending) {
    const int socket = accept(listener, nullptr, nullptr);
    if (socket >= 0) {
      const timeval patience{10, 0};  // A client that takes no answers must not keep the server from its end.
      setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
      connections.Begin(socket, end);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // Until another connection has ended.
    } else if (errno != EINTR && errno != ECONNABORTED) {
      if (!ending) std::perror("accept");
      break;
    }
  }
  connections.End();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: line_server DIRECTORY SOCKET\n");
    return 2;
  }
  partita::Options options;
  options.directory = argv[1];
  options.create_if_missing = true;
  options.memory_bytes = uint64_t{64} << 20;
  options.io_backend = partita::IoBackend::kThreads;
  auto database = partita::Database::Open(options);
  if (!database.ok()) {
    std::fprintf(stderr, "line_server: %s\n", database.status().ToString().c_str());
    return 1;
  }
  const partita::Result<partita::Table> table = OpenValues(database->get());
  const int listener = table.ok() ? Listen(argv[2]) : -1;
  if (listener < 0) return 1;
  std::puts("listening");
  std::fflush(stdout);
  ServeAll(listener, table.value());
  close(listener);
  unlink(argv[2]);
  const partita::Status closed = (*database)->Close();
  if (!closed.ok()) std::fprintf(stderr, "line_server: %s\n", closed.ToString().c_str());
  return closed.ok() ? 0 : 1;
}
