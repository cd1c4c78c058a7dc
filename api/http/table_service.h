#pragma once
#include <cstdint>
#include <memory>

#include "api/async_database.h"
#include "api/http/accounts.h"
#include "api/http/authorization.h"
#include "api/http/http_message.h"
#include "api/http/resource.h"
#include "api/http/service_counters.h"

namespace partita::http {

struct TableServiceOptions {
  AddressRules addresses;
  // How far the date of a Shared Key request may be from the server's clock.
  AuthorizationOptions authorization;
  // The development account is served though everybody knows its key, as this machine alone reaches it. So do
  // web pages that a browser of it shows: that account then answers 403 where the Host is no own one
  // (own_host.h; AddressRules::path_style_hosts are the names), or an Origin is none of its CORS rules.
  bool guards_development_account = false;
  // Empty: no log. Called for every answer.
  AccessLog access_log;
};

// The table service: answers every request of the protocol (spec 3) from a database.
//
// Stateless towards clients; thread-safe: workers handle requests at once, each on its own thread, and
// share no lock on the way of reads and writes of entities but what the engine has. Handle runs on a
// worker, or to its end in blocking mode.
//
// A request is answered in the order of checks of spec 10.9; what can only fail again is never a 500.
//
// `database` and `accounts` must outlive it, and no Handle may be under way when it is destroyed.
class TableService : public RequestHandler {
 public:
  TableService(Database& database, const AccountSet& accounts, TableServiceOptions options = {});
  ~TableService() override;

  Task<void> Handle(const HttpRequest& request, HttpResponse* response) override;
  // In the service's form, so that clients find a code and a request id in it.
  bool RefuseBeforeBody(const HttpRequest& request, HttpResponse* response) override;
  void Refuse(int status, std::string_view reason, const HttpRequest& request,
              HttpResponse* response) override;

  const ServiceCounters& counters() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace partita::http
