#pragma once
#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "api/http/http_server.h"
#include "test/io/real_world.h"
#include "test/support/socket_client.h"

namespace partita::http {

inline constexpr size_t kHugeBytes = 48 << 20;  // More than the kernel takes off the server's hands.

// Answers by the path: what a request needs to show of the server.
class TestHandler final : public RequestHandler {
 public:
  Task<void> Handle(const HttpRequest& request, HttpResponse* response) override {
    response->status = 200;
    if (request.body_too_large) {
      response->status = 413;
      response->body = "too large";
    } else if (request.method == Method::kPost && !request.has_length) {
      response->status = 411;
    } else if (request.target == "/echo") {
      response->body.assign(request.body);
      response->AddHeader("X-From", request.remote_address);
      if (request.secure) response->AddHeader("X-Secure", "yes");
    } else if (request.target == "/large") {
      response->body.assign(3 << 20, 'L');
    } else if (request.target == "/huge") {
      response->body.assign(kHugeBytes, 'H');
    } else if (request.target == "/counted") {
      response->body_share = BufferShare(request.buffers);
      response->body.assign(3 << 20, 'C');
      counted_fits = response->body_share.Set(response->body.capacity());
    } else if (request.target == "/refused-page") {
      response->body_share = BufferShare(request.buffers);
      response->body.assign(3 << 20, 'P');
      counted_fits = response->body_share.Set(response->body.capacity());
      response->Clear();
      response->status = 503;
      cleared_bytes = response->body.capacity();
    } else if (request.target == "/slow") {
      if (slow_requests.fetch_add(1) == 0) slow_go_on.wait();  // Holds up its worker.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } else if (request.target == "/slow-so-far") {
      response->body = std::to_string(slow_requests.load());
    } else if (request.target == "/arrived") {
      response->body = std::to_string(request.arrived_ticks);
    } else if (request.target == "/none") {
      response->status = 204;
    } else if (request.target == "/wait") {
      waiting.count_down();
      co_await go_on.Wait();
      response->body = "waited";
    } else if (request.target == "/late" || request.target == "/in-time") {
      response->due_ms = request.target == "/late" ? 20 : 60'000;
      waiting.count_down();
      co_await go_on.Wait();
      was_answered = request.answered;
      response->body.assign(request.body);
    } else if (request.target == "/gone") {
      waiting.count_down();
      while (!request.PeerIsGone()) co_await SleepFor(1'000'000);
      seen_gone.count_down();
    } else {
      response->body.assign(request.target);
    }
  }

  bool RefuseBeforeBody(const HttpRequest& request, HttpResponse* response) override {
    if (request.target == "/arrived") admitted_ticks.store(request.arrived_ticks);
    if (request.target != "/forbidden") return false;
    EXPECT_TRUE(request.body.empty());
    EXPECT_EQ(request.remote_address, "127.0.0.1");
    response->status = 403;
    response->body = "no";
    return true;
  }

  void Refuse(int status, std::string_view reason, const HttpRequest& request,
              HttpResponse* response) override {
    EXPECT_EQ(request.remote_address, "127.0.0.1");
    EXPECT_FALSE(request.answered) << "a handler words nothing then";
    RequestHandler::Refuse(status, reason, request, response);
    response->AddHeader("X-Refused", request.target.empty() ? "nothing" : request.target);
  }

  std::latch waiting{1};
  std::latch seen_gone{1};
  std::latch slow_go_on{1};
  std::atomic<int> slow_requests{0};
  std::atomic<uint64_t> admitted_ticks{0};  // When the last /arrived came that was let in.
  std::atomic<bool> counted_fits{true};
  std::atomic<bool> was_answered{false};  // Before /late or /in-time ended.
  std::atomic<size_t> cleared_bytes{0};   // Held of the body of /refused-page.
  Event go_on;
};

class HttpServerTest : public RealRuntimeBackendTest {
 protected:
  void SetUp() override { OpenRuntime({.shards = 2}); }
  void TearDown() override { server_.reset(); }

  // Before Open. They outlive the server: its connections give back to them until it has ended.
  ServerBudgets& LimitBudgets(uint64_t bytes) {
    budgets_.emplace(bytes);
    options_.budgets = &*budgets_;
    return *budgets_;
  }
  void Open() {
    auto opened = HttpServer::Open(*runtime_, options_, handler_);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    server_ = std::move(opened).value();
  }
  SocketClient Connect() { return SocketClient(SocketAddress::Parse(server_->address()).value()); }

  // One answer that has a Content-Length.
  static std::string ReadAnswer(SocketClient& client) {
    std::string answer = client.ReceiveUntil("\r\n\r\n");
    const size_t at = answer.find("Content-Length: ");
    if (at == std::string::npos) return answer + "(no length)";
    return answer + client.Receive(std::stoul(answer.substr(at + 16)));
  }
  std::string Ask(std::string_view request) {
    SocketClient client = Connect();
    EXPECT_TRUE(client.Send(request));
    return ReadAnswer(client);
  }

  TestHandler handler_;
  HttpServerOptions options_;
  std::optional<ServerBudgets> budgets_;
  std::unique_ptr<HttpServer> server_;
};

inline std::string BackendName(const testing::TestParamInfo<IoBackend>& info) {
  return info.param == IoBackend::kUring ? "Ring" : "Threads";
}

inline std::string Get(std::string_view target, std::string_view headers = "") {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: h\r\n" + std::string(headers) + "\r\n";
}

inline std::string Post(std::string_view target, std::string_view body, std::string_view headers = "") {
  return "POST " + std::string(target) + " HTTP/1.1\r\nHost: h\r\n" + std::string(headers) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

}  // namespace partita::http
