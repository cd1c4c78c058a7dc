#include "engine/io/listener.h"

#include <arpa/inet.h>
#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <latch>
#include <optional>
#include <thread>

#include "engine/base/event.h"
#include "engine/io/io_worker.h"
#include "engine/io/sim_runtime.h"
#include "test/io/real_world.h"
#include "test/support/socket_client.h"

namespace partita {
namespace {

using ::testing::HasSubstr;

// Listeners on both backends, over two workers.
class ListenerTest : public RealRuntimeBackendTest {
 protected:
  void SetUp() override { OpenRuntime({.shards = 2}); }
  void TearDown() override {
    if (listener_ != nullptr) listener_->Close(0);
  }

  void Listen(Listener::Serve serve, const std::string& address = "127.0.0.1:0") {
    auto opened = Listener::Open(*runtime_, SocketAddress::Parse(address).value(), std::move(serve));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    listener_ = std::move(opened).value();
  }
  SocketClient Connect() { return SocketClient(listener_->address()); }
  // Returns once the listener counts so many open connections.
  void AwaitOpen(uint64_t count) {
    while (listener_->counters().open != count) std::this_thread::yield();
  }

  std::unique_ptr<Listener> listener_;
};
INSTANTIATE_TEST_SUITE_P(Backends, ListenerTest, testing::Values(IoBackend::kUring, IoBackend::kThreads),
                         [](const auto& info) {
                           return info.param == IoBackend::kUring ? "Ring" : "Threads";
                         });

Task<void> Echo(ConnectionHandle connection) {
  std::string bytes;
  while (true) {
    Status readable = co_await connection->Readable();
    if (!readable.ok()) co_return;
    Result<size_t> received = co_await connection->Receive(&bytes);
    if (!received.ok() || *received == 0) co_return;
    Status sent = co_await connection->Send(bytes);
    if (!sent.ok()) co_return;
    bytes.clear();
    connection->Recycle(&bytes);
  }
}

// What became of a connection, told to the test's thread.
struct Outcome {
  std::latch done{1};
  Status status;
  size_t size = 0;
};

TEST_P(ListenerTest, BytesComeBackInOrder) {
  Listen(Echo);
  SocketClient client = Connect();
  for (int i = 0; i < 100; ++i) {
    const std::string text = "message " + std::to_string(i);
    ASSERT_TRUE(client.Send(text));
    EXPECT_EQ(client.Receive(text.size()), text);
  }
}

TEST_P(ListenerTest, ListensOnIpv6AndTellsThePeersAddress) {
  std::string host;
  std::latch told(1);
  Listen(
      [&](ConnectionHandle connection) -> Task<void> {
        host = connection->peer_host();
        told.count_down();
        return Echo(std::move(connection));
      },
      "[::1]:0");
  EXPECT_THAT(listener_->address().ToString(), HasSubstr("[::1]:"));
  SocketClient client = Connect();
  ASSERT_TRUE(client.connected());
  told.wait();
  EXPECT_EQ(host, "::1");
}

// An address of this machine that others may reach; nothing where it has none.
std::optional<std::string> OwnAddress() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return std::nullopt;
  std::optional<std::string> found;
  for (const ifaddrs* at = all; at != nullptr; at = at->ifa_next) {
    const bool is_up = (at->ifa_flags & IFF_UP) != 0;
    if (!is_up || at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr, text, sizeof text);
    if (!std::string_view(text).starts_with("127.")) found = text;
  }
  freeifaddrs(all);
  return found;
}

TEST_P(ListenerTest, WhoComesFromTheAddressThatItAskedIsOfThisMachine) {
  const std::optional<std::string> own = OwnAddress();
  if (!own) GTEST_SKIP() << "this machine has only loopback addresses";
  // Whether who binds to `from` and asks `to` is taken for a process of this machine.
  const auto is_local = [&](const std::string& from, const std::string& to) {
    bool told_local = false;
    std::latch told(1);
    Listen(
        [&](ConnectionHandle connection) -> Task<void> {
          told_local = connection->peer_is_local();
          told.count_down();
          return Echo(std::move(connection));
        },
        to + ":0");
    SocketClient client;
    client.Prepare(listener_->address());
    const SocketAddress source = SocketAddress::Parse(from + ":0").value();
    EXPECT_EQ(bind(client.descriptor(), source.get(), source.size()), 0);
    client.ConnectPrepared();
    EXPECT_TRUE(client.connected()) << from << " to " << to << ": errno " << client.connect_error();
    if (client.connected()) told.wait();
    listener_->Close(0);
    return told_local;
  };
  EXPECT_TRUE(is_local(*own, *own));
  EXPECT_TRUE(is_local("127.0.0.1", "127.0.0.1"));
  EXPECT_FALSE(is_local(*own, "127.0.0.1")) << "another address, which could be another machine's";
}

TEST_P(ListenerTest, ManyConnectionsAreSpreadEvenlyAndAllAnswered) {
  constexpr int kConnections = 400;  // Both ends are here: below the usual limit of 1,024 descriptors.
  Listen(Echo);
  std::vector<SocketClient> clients;
  for (int i = 0; i < kConnections; ++i) {
    clients.push_back(Connect());
    ASSERT_TRUE(clients.back().connected()) << i << ": errno " << clients.back().connect_error();
  }
  AwaitOpen(kConnections);
  EXPECT_EQ(listener_->OpenOn(ShardId(0)), kConnections / 2u);
  EXPECT_EQ(listener_->OpenOn(ShardId(1)), kConnections / 2u);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kConnections; ++i) ASSERT_TRUE(clients[i].Send(std::to_string(100'000 + i)));
    for (int i = 0; i < kConnections; ++i) EXPECT_EQ(clients[i].Receive(6), std::to_string(100'000 + i));
  }
}

// More at once than a worker has receive buffers: those that found none are armed again.
TEST_P(ListenerTest, ABurstLargerThanTheReceiveBuffersLosesNothing) {
  constexpr int kConnections = 40;
  constexpr size_t kBytes = 300'000;
  Listen(Echo);
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < kConnections; ++i) {
    threads.emplace_back([&, i] {
      SocketClient client = Connect();
      const std::string text(kBytes, static_cast<char>('a' + i % 26));
      std::thread sender([&] { EXPECT_TRUE(client.Send(text)); });
      if (client.Receive(kBytes) == text) right.fetch_add(1);
      sender.join();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, kConnections);
}

Task<void> SendMuch(ConnectionHandle connection, size_t bytes, Outcome* outcome) {
  std::string text(bytes, 'x');
  for (size_t i = 0; i < bytes; i += 997) text[i] = static_cast<char>('a' + i % 26);
  connection->SetDeadline(30'000);
  outcome->status = co_await connection->Send(text);
  outcome->done.count_down();
}

TEST_P(ListenerTest, ALargeSendReachesASlowReaderWhole) {
  constexpr size_t kBytes = 20 << 20;
  Outcome outcome;
  Listen([&](ConnectionHandle connection) { return SendMuch(std::move(connection), kBytes, &outcome); });
  SocketClient client = Connect();
  std::string received;
  while (received.size() < kBytes) {
    const std::string piece = client.Receive(std::min<size_t>(kBytes - received.size(), 100'000));
    ASSERT_FALSE(piece.empty()) << received.size() << " " << errno;
    received += piece;
  }
  outcome.done.wait();
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  EXPECT_EQ(client.ReceiveAll(), "");
  size_t wrong = 0;
  for (size_t i = 0; i < kBytes; i += 997) wrong += received[i] != static_cast<char>('a' + i % 26);
  EXPECT_EQ(wrong, 0u);
}

Task<void> SendInTime(ConnectionHandle connection, Outcome* outcome) {
  const std::string text(64 << 20, 'x');
  connection->SetDeadline(200);
  outcome->status = co_await connection->Send(text);
  outcome->done.count_down();
}

TEST_P(ListenerTest, APeerThatTakesNothingRunsIntoTheDeadlineOfASend) {
  Outcome outcome;
  Listen([&](ConnectionHandle connection) { return SendInTime(std::move(connection), &outcome); });
  SocketClient client = Connect();
  outcome.done.wait();
  EXPECT_EQ(outcome.status.code(), Code::kDeadlineExceeded) << outcome.status.ToString();
}

// The deadline passes while nothing is under way, as between two pieces of an answer.
Task<void> SendTooLate(ConnectionHandle connection, Outcome* outcome) {
  connection->SetDeadline(50);
  co_await SleepFor(200'000'000);
  outcome->status = co_await connection->Send("late");
  outcome->done.count_down();
}

TEST_P(ListenerTest, ASendThatBeginsAfterItsDeadlineFails) {
  Outcome outcome;
  Listen([&](ConnectionHandle connection) { return SendTooLate(std::move(connection), &outcome); });
  SocketClient client = Connect();
  outcome.done.wait();
  EXPECT_EQ(outcome.status.code(), Code::kDeadlineExceeded) << outcome.status.ToString();
  EXPECT_EQ(client.ReceiveAll(), "");
}

// Each is taken at once, and all together take longer than the deadline.
Task<void> SendPieces(ConnectionHandle connection, bool limited, Outcome* outcome) {
  connection->SetDeadline(1'000);
  if (limited) connection->LimitSends(60'000);
  for (int i = 0; i < 4 && outcome->status.ok(); ++i) {
    co_await SleepFor(400'000'000);
    outcome->status = co_await connection->Send("piece");
  }
  outcome->done.count_down();
}

TEST_P(ListenerTest, ADeadlineStartsAgainWithEachSendThatIsTaken) {
  Outcome outcome;
  Listen([&](ConnectionHandle connection) { return SendPieces(std::move(connection), true, &outcome); });
  SocketClient client = Connect();
  EXPECT_EQ(client.ReceiveAll(), "piecepiecepiecepiece");
  outcome.done.wait();
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
}

// As TLS sends amid a request: whoever makes it answer gains no time for his own.
TEST_P(ListenerTest, ADeadlineForSomethingElseIsNotPutOffBySends) {
  Outcome outcome;
  Listen([&](ConnectionHandle connection) { return SendPieces(std::move(connection), false, &outcome); });
  SocketClient client = Connect();
  outcome.done.wait();
  EXPECT_EQ(outcome.status.code(), Code::kDeadlineExceeded) << outcome.status.ToString();
}

// A process that was stopped for a while takes no time from who begins afterwards.
Task<void> ReceiveAfterAStall(ConnectionHandle connection, Outcome* outcome) {
  constexpr auto kStall = std::chrono::milliseconds(600);
  std::string bytes;
  connection->SetDeadline(60'000);
  std::this_thread::sleep_for(kStall);  // Of the whole worker.
  const auto begun = std::chrono::steady_clock::now();
  connection->SetDeadline(200);
  outcome->status = (co_await connection->Receive(&bytes)).status();
  outcome->size =
      static_cast<size_t>((std::chrono::steady_clock::now() - begun) / std::chrono::milliseconds(1));
  outcome->done.count_down();
}

TEST_P(ListenerTest, ADeadlineThatIsSetAfterAStallDoesNotPassEarly) {
  Outcome outcome;
  Listen([&](ConnectionHandle connection) { return ReceiveAfterAStall(std::move(connection), &outcome); });
  SocketClient client = Connect();
  outcome.done.wait();
  EXPECT_EQ(outcome.status.code(), Code::kDeadlineExceeded) << outcome.status.ToString();
  EXPECT_GE(outcome.size, 200u);
}

Task<void> ReceiveInTime(ConnectionHandle connection, Outcome* outcome) {
  std::string bytes;
  connection->SetDeadline(100);
  Result<size_t> received = co_await connection->Receive(&bytes);
  outcome->status = received.status();
  connection->SetDeadline(10'000);  // The connection is none the worse for it.
  Status sent = co_await connection->Send("!");
  received = co_await connection->Receive(&bytes);
  outcome->size = received.ok() ? *received : 0;
  sent = co_await connection->Send(bytes);
  outcome->done.count_down();
}

TEST_P(ListenerTest, AReceiveOverItsTimeLeavesTheConnectionUsable) {
  Outcome outcome;
  Listen([&](ConnectionHandle connection) { return ReceiveInTime(std::move(connection), &outcome); });
  SocketClient client = Connect();
  EXPECT_EQ(client.Receive(1), "!");  // By then it was late.
  ASSERT_TRUE(client.Send("late"));
  EXPECT_EQ(client.Receive(4), "late");
  outcome.done.wait();
  EXPECT_EQ(outcome.status.code(), Code::kDeadlineExceeded) << outcome.status.ToString();
  EXPECT_EQ(outcome.size, 4u);
}

Task<void> OutlastEvent(Event* go_on) { co_await go_on->Wait(); }

Task<void> GiveUpAndWaitAgain(ConnectionHandle connection, Event* go_on, Outcome* outcome) {
  Task<void> task = OutlastEvent(go_on);
  task.Start();
  connection->SetDeadline(20);
  const bool in_time = co_await connection->InTime(task);
  if (in_time) outcome->status = Status::Corruption("the event is not set yet");
  connection->SetDeadline(30'000);
  Status sent = co_await connection->Send("late");
  const bool in_time_now = co_await connection->InTime(task);
  if (!in_time_now || !task.done()) outcome->status = Status::Corruption("the task has not ended");
  outcome->done.count_down();
}

TEST_P(ListenerTest, ATaskThatIsNotOverAtTheDeadlineGoesOn) {
  Outcome outcome;
  Event go_on;
  Listen([&](ConnectionHandle connection) {
    return GiveUpAndWaitAgain(std::move(connection), &go_on, &outcome);
  });
  SocketClient client = Connect();
  EXPECT_EQ(client.Receive(4), "late");
  go_on.Set();
  outcome.done.wait();
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
}

Task<void> ReceiveUntilItFails(ConnectionHandle connection, Outcome* outcome) {
  std::string bytes;
  while (true) {
    Result<size_t> received = co_await connection->Receive(&bytes);
    outcome->status = received.status();
    if (!received.ok() || *received == 0) break;
  }
  outcome->size = connection->gone().load() ? 1 : 0;
  outcome->done.count_down();
}

TEST_P(ListenerTest, AResetByThePeerIsAnErrorAndKnownAtOnce) {
  Outcome outcome;
  Listen([&](ConnectionHandle connection) { return ReceiveUntilItFails(std::move(connection), &outcome); });
  SocketClient client = Connect();
  ASSERT_TRUE(client.Send("x"));
  client.Reset();
  outcome.done.wait();
  EXPECT_EQ(outcome.status.code(), Code::kIoError);
  EXPECT_EQ(outcome.size, 1u);
}

TEST_P(ListenerTest, AnOrderlyEndIsNoErrorAndStillTakesAnAnswer) {
  Listen([](ConnectionHandle connection) -> Task<void> {
    return [](ConnectionHandle own) -> Task<void> {
      std::string bytes;
      while (true) {
        Result<size_t> received = co_await own->Receive(&bytes);
        if (!received.ok()) co_return;
        if (*received == 0) break;
      }
      bytes += own->gone().load() ? " gone" : " there";
      (void)co_await own->Send(bytes);
    }(std::move(connection));
  });
  SocketClient client = Connect();
  ASSERT_TRUE(client.Send("all"));
  client.EndSending();
  EXPECT_EQ(client.ReceiveAll(), "all there");
}

// The peer sends while nobody receives; all of it arrives, though receiving is paused in between.
TEST_P(ListenerTest, WhatComesWhileNobodyReceivesWaits) {
  constexpr size_t kBytes = 8 << 20;
  Outcome outcome;
  Listen([&](ConnectionHandle connection) -> Task<void> {
    return [](ConnectionHandle own, Outcome* out) -> Task<void> {
      co_await SleepFor(50'000'000);
      std::string bytes;
      while (out->size < kBytes) {
        Result<size_t> received = co_await own->Receive(&bytes);
        if (!received.ok() || *received == 0) break;
        out->size += *received;
        bytes.clear();
        co_await Yield();
      }
      out->done.count_down();
    }(std::move(connection), &outcome);
  });
  SocketClient client = Connect();
  ASSERT_TRUE(client.Send(std::string(kBytes, 'y')));
  outcome.done.wait();
  EXPECT_EQ(outcome.size, kBytes);
}

TEST_P(ListenerTest, CloseEndsIdleConnectionsAtOnceAndCutsTheOthersAfterTheGrace) {
  Outcome busy;
  std::atomic<bool> first = true;
  Listen([&](ConnectionHandle connection) {
    if (first.exchange(false)) return ReceiveUntilItFails(std::move(connection), &busy);
    return Echo(std::move(connection));
  });
  SocketClient receiving = Connect();
  AwaitOpen(1);
  SocketClient idle = Connect();
  ASSERT_TRUE(idle.Send("x"));
  EXPECT_EQ(idle.Receive(1), "x");
  listener_->Close(200);
  EXPECT_EQ(busy.status.code(), Code::kCancelled);
  EXPECT_EQ(idle.ReceiveAll(), "");
  EXPECT_FALSE(Connect().connected());
  EXPECT_EQ(listener_->counters().open, 0u);
  EXPECT_EQ(listener_->counters().accepted, 2u);
}

TEST_P(ListenerTest, ConnectionsHaveTheOptionsOfTheListener) {
  Outcome outcome;
  Listen([&](ConnectionHandle connection) { return ReceiveUntilItFails(std::move(connection), &outcome); });
  SocketClient client = Connect();
  AwaitOpen(1);
  // The server's end is the descriptor whose peer is the client's own port.
  int found = 0;
  for (int fd = 3; fd < 256; ++fd) {
    if (SocketAddress::PeerOf(fd).family() == AF_UNSPEC) continue;
    if (SocketAddress::LocalOf(fd).port() != listener_->address().port()) continue;
    int no_delay = 0, keep_alive = 0;
    socklen_t size = sizeof(int);
    getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, &size);
    getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &keep_alive, &size);
    if (no_delay != 0 && keep_alive != 0) ++found;
  }
  EXPECT_EQ(found, 1);
  client.Close();
  outcome.done.wait();
}

TEST_P(ListenerTest, WithoutDescriptorsItRestsAndThenGoesOn) {
  rlimit old{};
  getrlimit(RLIMIT_NOFILE, &old);
  rlimit few = old;
  few.rlim_cur = 256;
  setrlimit(RLIMIT_NOFILE, &few);
  Listen(Echo);
  SocketClient before = Connect();
  AwaitOpen(1);
  SocketClient blocked;
  blocked.Prepare(listener_->address());
  std::vector<int> taken;
  for (int fd = dup(2); fd >= 0; fd = dup(2)) taken.push_back(fd);
  blocked.ConnectPrepared();  // The kernel connects it; the listener cannot take it.
  while (listener_->counters().accept_failures == 0) std::this_thread::yield();
  EXPECT_TRUE(before.Send("still"));
  EXPECT_EQ(before.Receive(5), "still");
  EXPECT_LT(listener_->counters().accept_failures, 20u);
  for (int fd : taken) close(fd);
  setrlimit(RLIMIT_NOFILE, &old);
  ASSERT_TRUE(blocked.Send("x"));
  EXPECT_EQ(blocked.Receive(1), "x");
}

TEST_P(ListenerTest, AnAddressInUseOrElsewhereIsRefusedInWords) {
  Listen(Echo);
  auto twice = Listener::Open(*runtime_, listener_->address(), Echo);
  EXPECT_EQ(twice.code(), Code::kLocked);
  EXPECT_THAT(twice.status().message(), HasSubstr("in use"));
  auto elsewhere = Listener::Open(*runtime_, SocketAddress::Parse("192.0.2.1:0").value(), Echo);
  EXPECT_EQ(elsewhere.code(), Code::kInvalidArgument);
  EXPECT_THAT(elsewhere.status().message(), HasSubstr("none of this machine"));
}

TEST(ListenerOfSimulatorTest, TheSimulatorHasNoNetwork) {
  SimDisk disk(1);
  SimRuntime runtime(SimOptions{}, disk);
  auto opened = Listener::Open(runtime, SocketAddress::Parse("127.0.0.1:0").value(), Echo);
  EXPECT_EQ(opened.code(), Code::kUnsupported);
}

TEST(SocketAddressTest, TakesNumericAddressesOnly) {
  for (const char* good : {"127.0.0.1:10002", "0.0.0.0:0", "[::1]:80", "[fe80::1]:65535"}) {
    auto parsed = SocketAddress::Parse(good);
    ASSERT_TRUE(parsed.ok()) << good;
    EXPECT_EQ(parsed->ToString(), good);
  }
  for (const char* bad : {"", "127.0.0.1", "localhost:80", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
                          "127.0.0.1: 1", "::1:80", "[127.0.0.1]:80", "[::1]", "1.2.3:4", ":80"}) {
    EXPECT_EQ(SocketAddress::Parse(bad).code(), Code::kInvalidArgument) << bad;
  }
  EXPECT_TRUE(SocketAddress::Parse("127.9.9.9:1")->IsLoopback());
  EXPECT_TRUE(SocketAddress::Parse("[::ffff:127.0.0.1]:1")->IsLoopback());
  EXPECT_FALSE(SocketAddress::Parse("10.0.0.1:1")->IsLoopback());
  EXPECT_EQ(SocketAddress::Parse("[::ffff:10.0.0.1]:1")->Host(), "10.0.0.1");
}

}  // namespace
}  // namespace partita
