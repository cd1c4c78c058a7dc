#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "api/async_database.h"
#include "api/http/accounts.h"
#include "api/http/http_date.h"
#include "api/http/http_server.h"
#include "api/http/table_service.h"
#include "test/io/real_world.h"
#include "test/support/scratch_directory.h"
#include "test/support/socket_client.h"

// The service over real sockets, on real workers, asked by several clients at once: what is shared by
// requests (tables, settings, counters, the ring) is used from all threads. ThreadSanitizer runs this too.

namespace partita::http {
namespace {

constexpr int kClients = 4;
constexpr int kRounds = 40;

// A client on one connection that signs with the development account's key.
class SigningClient {
 public:
  explicit SigningClient(const std::string& address)
      : socket_(SocketAddress::Parse(address).value()),
        accounts_(AccountSet::Create({DevelopmentAccount()}).value()) {}

  // The whole answer, headers and body.
  std::string Ask(std::string_view method, const std::string& resource, std::string_view body,
                  std::string_view headers = "") {
    const std::string path = "/" + std::string(kDevelopmentAccount) + resource;
    // SharedKeyLite signs the path alone, and `comp`, which is the last in these queries.
    std::string signed_path = "/" + std::string(kDevelopmentAccount) + path;
    const size_t query = signed_path.find('?'), comp = signed_path.find("comp=");
    if (query != std::string::npos) {
      const std::string signed_query = comp == std::string::npos ? "" : "?" + signed_path.substr(comp);
      signed_path.replace(query, std::string::npos, signed_query);
    }
    const std::string text = date_ + "\n" + signed_path;
    std::string request(method);
    request.append(" ").append(path).append(" HTTP/1.1\r\nHost: 127.0.0.1\r\nx-ms-date: ").append(date_);
    request.append("\r\nAuthorization: SharedKeyLite ").append(kDevelopmentAccount).append(":");
    request.append(accounts_.Find(kDevelopmentAccount)->Sign(text)).append("\r\n").append(headers);
    request.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n\r\n").append(body);
    EXPECT_TRUE(socket_.Send(request));
    std::string answer = socket_.ReceiveUntil("\r\n\r\n");
    const size_t length = answer.find("Content-Length: ");
    if (length == std::string::npos) return answer + "(no length)";
    return answer + socket_.Receive(std::stoul(answer.substr(length + 16)));
  }
  int Status(std::string_view method, const std::string& resource, std::string_view body,
             std::string_view headers = "") {
    const std::string answer = Ask(method, resource, body, headers);
    return answer.size() > 12 ? std::stoi(answer.substr(9, 3)) : 0;
  }

 private:
  static std::string Now() {
    const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
    const uint64_t seconds =
        static_cast<uint64_t>(std::chrono::floor<std::chrono::seconds>(since_1970).count());
    return FormatHttpDate(DateTime{(seconds + 11'644'473'600) * 10'000'000});
  }

  SocketClient socket_;
  AccountSet accounts_;
  const std::string date_ = Now();
};

std::string Entity(const std::string& row) { return "(PartitionKey='p',RowKey='" + row + "')"; }

constexpr std::string_view kPolicies =
    "<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy><Permission>r</Permission>"
    "</AccessPolicy></SignedIdentifier></SignedIdentifiers>";
constexpr std::string_view kSomeCors =
    "<StorageServiceProperties><Cors><CorsRule><AllowedMethods>GET</AllowedMethods><AllowedOrigins>http://a"
    "</AllowedOrigins><AllowedHeaders></AllowedHeaders><ExposedHeaders></ExposedHeaders><MaxAgeInSeconds>5"
    "</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";

// Writes and reads rows of its own in a table that all share, and says what went wrong.
void UseSharedTable(const std::string& address, int number, std::atomic<int>* wrong) {
  SigningClient client(address);
  const std::string rows = "c" + std::to_string(number) + "-";
  auto expect = [&](bool right) { wrong->fetch_add(right ? 0 : 1); };
  for (int i = 0; i < kRounds; ++i) {
    const std::string row = rows + std::to_string(i);
    const std::string value = "{\"n\":" + std::to_string(i) + "}";
    expect(client.Status("PUT", "/Shared" + Entity(row), value) == 204);
    const std::string read = client.Ask("GET", "/Shared" + Entity(row), "");
    expect(read.find("\"n\":" + std::to_string(i)) != std::string::npos);
    // All clients write this one at once: an upsert has no condition, so each succeeds (9.3).
    expect(client.Status(i % 2 == 0 ? "PUT" : "MERGE", "/Shared" + Entity("everyones"), value) == 204);
    expect(client.Status("MERGE", "/Shared" + Entity(row), "{\"m\":1}", "If-Match: *\r\n") == 204);
    const std::string page = client.Ask(
        "GET", "/Shared()?$filter=RowKey%20ge%20'" + rows + "'%20and%20RowKey%20le%20'" + rows + "~'", "");
    size_t found = 0;
    for (size_t at = page.find("\"m\":1"); at != std::string::npos; at = page.find("\"m\":1", at + 1))
      ++found;
    expect(found == static_cast<size_t>(i + 1));
  }
}

// Makes, changes and drops what every request looks up.
void ChangeSettings(const std::string& address, std::atomic<int>* wrong) {
  SigningClient client(address);
  auto expect = [&](bool right) { wrong->fetch_add(right ? 0 : 1); };
  for (int i = 0; i < kRounds / 4; ++i) {
    const std::string table = "Passing" + std::to_string(i);
    expect(client.Status("POST", "/Tables", "{\"TableName\":\"" + table + "\"}") == 201);
    expect(client.Status("PUT", "/Shared?comp=acl", kPolicies) == 204);
    expect(client.Status("PUT", "/?restype=service&comp=properties", kSomeCors) == 202);
    expect(client.Status("PUT", "/" + table + Entity("r"), "{}") == 204);
    expect(client.Status("DELETE", "/Tables('" + table + "')", "") == 204);
    expect(client.Status("GET", "/" + table + Entity("r"), "") == 404);
  }
}

class ServiceThreadsTest : public testing::TestWithParam<IoBackend> {};
INSTANTIATE_TEST_SUITE_P(Backends, ServiceThreadsTest,
                         testing::Values(IoBackend::kUring, IoBackend::kThreads), [](const auto& info) {
                           return info.param == IoBackend::kUring ? "Ring" : "Threads";
                         });

TEST_P(ServiceThreadsTest, ManyClientsAtOnceGetTheirOwnRightAnswers) {
  if (GetParam() == IoBackend::kUring && !UringAvailable()) {
    GTEST_SKIP() << "io_uring is forbidden on this machine";
  }
  ScratchDirectory directory;  // The store wants direct I/O.
  Options options;
  options.directory = directory.path() + "/store";
  options.allow_volatile_storage = true;  // Wherever the tests run.
  options.create_if_missing = true;
  options.memory_bytes = 64 << 20;
  options.shards = 2;
  options.io_backend = GetParam();
  auto database = Database::Open(options);
  ASSERT_TRUE(database.ok()) << database.status().ToString();
  AccountSet accounts = AccountSet::Create({DevelopmentAccount()}).value();
  TableService service(**database, accounts);
  auto server = HttpServer::Open(AsyncDatabase(**database).runtime(), {}, service);
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  const std::string address = (*server)->address();
  ASSERT_EQ(SigningClient(address).Status("POST", "/Tables", "{\"TableName\":\"Shared\"}"), 201);

  std::atomic<int> wrong{0};
  std::vector<std::thread> clients;
  for (int number = 0; number < kClients; ++number) {
    clients.emplace_back(UseSharedTable, address, number, &wrong);
  }
  clients.emplace_back(ChangeSettings, address, &wrong);
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(wrong.load(), 0);
  (*server)->Stop();
  EXPECT_TRUE((*database)->Close().ok());
}

}  // namespace
}  // namespace partita::http
