#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <thread>

#include "test/http/http_server_fixture.h"
#include "test/http/tls_client.h"
#include "test/support/resident_memory.h"

namespace partita::http {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class HttpsServerTest : public HttpServerTest {
 protected:
  void OpenTls() {
    certificate_ = std::make_unique<TestCertificate>(directory_.path(), "first");
    auto context = TlsContext::Open({certificate_->certificate_path(), certificate_->key_path()});
    ASSERT_TRUE(context.ok()) << context.status().ToString();
    context_ = std::move(context).value();
    options_.tls = context_.get();
    Open();
  }

  std::unique_ptr<TestCertificate> certificate_;
  std::unique_ptr<TlsContext> context_;
};
INSTANTIATE_TEST_SUITE_P(Backends, HttpsServerTest, testing::Values(IoBackend::kUring, IoBackend::kThreads),
                         BackendName);

TEST_P(HttpsServerTest, AnswersOverTls12And13) {
  OpenTls();
  for (int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient client(Connect(), version);
    ASSERT_TRUE(client.shaken()) << client.error();
    for (size_t size : {size_t{5}, size_t{100'000}, size_t{3} << 20}) {
      const std::string body(size, 's');
      ASSERT_TRUE(client.Send(Post("/echo", body)));
      const std::string answer = client.ReceiveUntilEnd(body);
      EXPECT_THAT(answer.substr(0, 300), HasSubstr("X-Secure: yes\r\n"));
      EXPECT_EQ(answer.size() - answer.find("\r\n\r\n") - 4, size);
    }
  }
}

// Bodies come faster than they are decrypted, in pieces of hundreds of KiB: what they leave behind is little.
TEST_P(HttpsServerTest, IdleConnectionsKeepNothingOfTheirBodies) {
  OpenTls();
  constexpr int kConnections = 100;
  const std::string body(1 << 20, 's');
  std::vector<std::unique_ptr<TlsClient>> clients;
  const auto send = [&](TlsClient& client) {
    ASSERT_TRUE(client.shaken()) << client.error();
    ASSERT_TRUE(client.Send(Post("/none", body)));
    ASSERT_THAT(client.ReceiveUntilEnd(""), StartsWith("HTTP/1.1 204 "));
  };
  const auto connect = [&] {
    clients.push_back(std::make_unique<TlsClient>(Connect(), TLS1_3_VERSION));
    send(*clients.back());
  };
  for (int i = 0; i < 10; ++i) connect();
  const uint64_t before = ResidentBytes();
  for (int i = 0; i < kConnections; ++i) connect();
  const uint64_t after = ResidentBytes();
  const uint64_t each = (after - std::min(before, after)) / kConnections;
  std::printf("%lu bytes each (with the client's side)\n", each);
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
  EXPECT_LT(each, 150'000u);
#endif
}

TEST_P(HttpsServerTest, OldVersionsAndPlainHttpAreCutOff) {
  OpenTls();
  TlsClient old(Connect(), TLS1_1_VERSION);
  EXPECT_FALSE(old.shaken());
  SocketClient plain = Connect();
  ASSERT_TRUE(plain.Send(Get("/x")));
  EXPECT_THAT(plain.ReceiveAll(), Not(HasSubstr("HTTP/1.1 200")));
  while (server_->counters().tls_failures < 2) std::this_thread::yield();  // Each worker counts its own.
  EXPECT_EQ(server_->counters().tls_failures, 2u);
  TlsClient healthy(Connect(), TLS1_3_VERSION);
  EXPECT_TRUE(healthy.shaken());
}

TEST_P(HttpsServerTest, StopDoesNotWaitForWhoHasSaidNothing) {
  options_.timeouts.header_ms = options_.timeouts.stop_ms = 60'000;
  OpenTls();
  SocketClient silent = Connect();
  while (server_->counters().connections_open == 0) std::this_thread::yield();
  std::thread stopper([this] { server_->Stop(); });
  EXPECT_EQ(silent.ReceiveAll(), "");  // It waits ten seconds at most.
  silent.Reset();
  stopper.join();
}

TEST_P(HttpsServerTest, ReloadGivesNewConnectionsTheNewCertificate) {
  OpenTls();
  TlsClient before(Connect(), TLS1_3_VERSION);
  EXPECT_EQ(before.peer_name(), "first");
  TestCertificate second(directory_.path(), "second");
  const TlsContext::Files files{second.certificate_path(), second.key_path()};
  auto loaded = TlsContext::Load(files);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_EQ(TlsClient(Connect(), TLS1_3_VERSION).peer_name(), "first") << "it is not in use yet";
  context_->Use(std::move(loaded).value());
  TlsClient after(Connect(), TLS1_3_VERSION);
  EXPECT_EQ(after.peer_name(), "second");
  ASSERT_TRUE(before.Send(Get("/still")));
  EXPECT_THAT(before.ReceiveUntilEnd("/still"), EndsWith("/still"));

  std::ofstream(second.key_path()) << "no key";
  const Status refused = TlsContext::Load(files).status();
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr(second.key_path()));
  TlsClient kept(Connect(), TLS1_3_VERSION);
  EXPECT_EQ(kept.peer_name(), "second");
}

TEST(TlsContextTest, RefusesFilesThatDoNotServe) {
  TempDirectory directory;
  TestCertificate one(directory.path(), "one");
  TempDirectory elsewhere;
  TestCertificate two(elsewhere.path(), "two");
  auto missing = TlsContext::Open({directory.path() + "/nowhere", one.key_path()});
  EXPECT_EQ(missing.code(), Code::kInvalidArgument);
  EXPECT_THAT(missing.status().message(), HasSubstr("nowhere"));
  EXPECT_EQ(TlsContext::Open({one.key_path(), one.key_path()}).code(), Code::kInvalidArgument);
  auto mixed = TlsContext::Open({one.certificate_path(), two.key_path()});
  EXPECT_EQ(mixed.code(), Code::kInvalidArgument);
  EXPECT_THAT(mixed.status().message(), HasSubstr("server.key: it does not belong to the certificate"));
}

TEST(TlsContextTest, SaysWhatIsWrongWithAFile) {
  TempDirectory directory;
  const TestCertificate one(directory.path(), "one");
  const auto refusal = [&](const std::string& certificate, const std::string& key) {
    const Status status = TlsContext::Open({certificate, key}).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    return status.message();
  };
  const std::string empty = directory.path() + "/empty";
  std::ofstream(empty).flush();
  EXPECT_THAT(refusal(empty, one.key_path()), HasSubstr("certificate file " + empty + ": it is no PEM"));
  EXPECT_THAT(refusal(one.certificate_path(), empty), HasSubstr("key file " + empty + ": it is no PEM"));

  const std::string locked = directory.path() + "/locked", other_type = directory.path() + "/rsa";
  EVP_PKEY* key = EVP_EC_gen("P-256");
  EVP_PKEY* rsa = EVP_RSA_gen(2048);
  std::FILE* file = std::fopen(locked.c_str(), "w");
  char password[] = "secret";
  PEM_write_PKCS8PrivateKey(file, key, EVP_aes_128_cbc(), password, 6, nullptr, nullptr);
  std::fclose(file);
  file = std::fopen(other_type.c_str(), "w");
  PEM_write_PrivateKey(file, rsa, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  EVP_PKEY_free(key);
  EVP_PKEY_free(rsa);
  EXPECT_THAT(refusal(one.certificate_path(), locked), HasSubstr("it has a password"));
  EXPECT_THAT(refusal(one.certificate_path(), other_type),
              HasSubstr("it does not belong to the certificate"));
}

TEST(TlsContextTest, NotesACertificateThatClientsRefuse) {
  constexpr long kDay = 24 * 3600;
  TempDirectory directory;
  const auto note = [&](long from, long until) {
    const TestCertificate one(directory.path(), "one", from, until);
    return (*TlsContext::Open({one.certificate_path(), one.key_path()}))->ValidityNote();
  };
  EXPECT_EQ(note(-60, 15 * kDay), "");
  EXPECT_THAT(note(-60, 13 * kDay), HasSubstr("the certificate expires on "));
  EXPECT_THAT(note(-2 * kDay, -kDay), HasSubstr("the certificate expired on "));
  EXPECT_THAT(note(kDay, 30 * kDay), HasSubstr("the certificate is valid from "));
}

}  // namespace
}  // namespace partita::http
