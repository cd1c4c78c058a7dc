// A client that goes while its query runs stops the query: over real sockets, on both backends.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "api/async_database.h"
#include "api/http/accounts.h"
#include "api/http/http_date.h"
#include "api/http/http_server.h"
#include "api/http/table_service.h"
#include "test/io/real_world.h"
#include "test/support/scratch_directory.h"
#include "test/support/slowdown.h"
#include "test/support/socket_client.h"

namespace partita::http {
namespace {

constexpr int kEntities = 12'000;
constexpr int kDroppedQueries = 6;
// Of each entity. A query ends its page after five seconds, whatever it has seen by then.
constexpr int kComparisons = kSlowdown > 1 ? 100 : 400;

std::string SignedRequest(const std::string& path, const std::string& query, std::string_view headers = "") {
  const AccountSet accounts = AccountSet::Create({DevelopmentAccount()}).value();
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = static_cast<uint64_t>(std::chrono::floor<std::chrono::seconds>(since_1970).count());
  const std::string date = FormatHttpDate(DateTime{(seconds + 11'644'473'600) * 10'000'000});
  const std::string full = "/" + std::string(kDevelopmentAccount) + path;
  const std::string text = date + "\n/" + std::string(kDevelopmentAccount) + full;
  return "GET " + full + query + " HTTP/1.1\r\nHost: 127.0.0.1\r\nx-ms-date: " + date +
         "\r\nAuthorization: SharedKeyLite " + std::string(kDevelopmentAccount) + ":" +
         std::string(accounts.Find(kDevelopmentAccount)->Sign(text)) + "\r\n" + std::string(headers) + "\r\n";
}

// No entity passes it, and each takes so many comparisons to say so.
std::string SlowFilter() {
  std::string filter = "?$filter=N%20eq%20-1";
  for (int i = 2; i <= kComparisons; ++i) filter += "%20or%20N%20eq%20-" + std::to_string(i);
  return filter;
}

class DroppedClientTest : public testing::TestWithParam<IoBackend> {};
INSTANTIATE_TEST_SUITE_P(Backends, DroppedClientTest, testing::Values(IoBackend::kUring, IoBackend::kThreads),
                         [](const auto& info) {
                           return info.param == IoBackend::kUring ? "Ring" : "Threads";
                         });

TEST_P(DroppedClientTest, QueriesOfClientsThatHaveGoneStop) {
  if (GetParam() == IoBackend::kUring && !UringAvailable()) {
    GTEST_SKIP() << "io_uring is forbidden on this machine";
  }
  ScratchDirectory directory;
  Options options;
  options.directory = directory.path() + "/store";
  options.allow_volatile_storage = true;  // Wherever the tests run.
  options.create_if_missing = true;
  options.memory_bytes = 64 << 20;
  options.shards = 2;
  options.durability = Durability::kMemory;
  options.io_backend = GetParam();
  auto database = Database::Open(options);
  ASSERT_TRUE(database.ok()) << database.status().ToString();
  auto table = (*database)->CreateTable("Things");
  ASSERT_TRUE(table.ok());
  std::vector<Write> writes;
  for (int i = 0; i < kEntities; ++i) {
    writes.push_back({.action = WriteAction::kInsert, .entity = Entity("p", std::to_string(i))});
    writes.back().entity.Set("N", i);
  }
  for (const WriteResult& written : table->WriteMany(writes)) ASSERT_TRUE(written.ok());

  AccountSet accounts = AccountSet::Create({DevelopmentAccount()}).value();
  TableService service(**database, accounts);
  auto server = HttpServer::Open(AsyncDatabase(**database).runtime(), {}, service);
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  const SocketAddress address = SocketAddress::Parse((*server)->address()).value();

  // Who stays, or has ended its half as a habit, gets an answer of the whole table.
  {
    SocketClient staying(address);
    ASSERT_TRUE(staying.Send(SignedRequest("/Things()", SlowFilter(), "Connection: close\r\n")));
    EXPECT_TRUE(staying.ReceiveAll().starts_with("HTTP/1.1 200 "));
  }
  const uint64_t whole = service.counters().Sum().entities_scanned;
  EXPECT_EQ(whole, static_cast<uint64_t>(kEntities));

  // Ends its connection in the plain way, or by a reset. A query that was over before the drop was seen has
  // counted, as all of one of the two ways would have.
  for (int i = 0; i < kDroppedQueries; ++i) {
    SocketClient leaving(address);
    const uint64_t asked = (*server)->counters().requests;
    ASSERT_TRUE(leaving.Send(SignedRequest("/Things()", SlowFilter())));
    while ((*server)->counters().requests == asked) std::this_thread::yield();  // It is being answered.
    if (i % 2 == 1) leaving.Reset();
  }
  // Queues behind them on its worker, whichever it is.
  for (int i = 0; i < 4; ++i) {
    SocketClient last(address);
    ASSERT_TRUE(
        last.Send(SignedRequest("/Things(PartitionKey='p',RowKey='1')", "", "Connection: close\r\n")));
    EXPECT_TRUE(last.ReceiveAll().starts_with("HTTP/1.1 200 "));
  }
  (*server)->Stop();
  EXPECT_LT(service.counters().Sum().entities_scanned, whole + kDroppedQueries / 2 * whole);
  EXPECT_TRUE((*database)->Close().ok());
}

}  // namespace
}  // namespace partita::http
