#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>

#include "api/async_database.h"
#include "api/cli/access_log_file.h"
#include "api/cli/admin_handler.h"
#include "api/cli/commands.h"
#include "api/cli/figures.h"
#include "api/cli/open_store.h"
#include "api/cli/process_heap.h"
#include "api/cli/serve_settings.h"
#include "api/cli/version.h"
#include "api/http/http_server.h"
#include "api/http/table_service.h"
#include "api/http/tls_context.h"

namespace partita {

namespace {

// What connections hold in large buffers, all together: an eighth of the memory number, within it, and room
// for one largest transaction at least.
constexpr uint64_t kHttpBufferShare = 8;
constexpr uint64_t kHttpBufferBytesMin = 16u << 20;
constexpr uint64_t kHttpBufferBytesMax = uint64_t{1} << 30;
// Of the admin address, beside them: what tells of an overload must not be refused for it. Who asks there are
// few, and so is what they hold.
constexpr uint64_t kAdminBufferBytes = 4u << 20;

uint64_t HttpBufferBytes(const StoreFlags& store) {
  return std::clamp(store.memory_bytes / kHttpBufferShare, kHttpBufferBytesMin, kHttpBufferBytesMax);
}

std::string WithScheme(bool tls, const std::string& address) {
  return (tls ? "https://" : "http://") + address;
}

// Everything that runs while the service does, in the order it is made; undone in the reverse one.
class Serving {
 public:
  // `resolve` says what the settings are now.
  Serving(const ServeSettings& settings, std::function<Result<ServeSettings>()> resolve)
      : settings_(settings), resolve_(std::move(resolve)) {}

  Status Start(Console& console);
  // What to know about the running service, ending with the READY line that scripts wait for.
  void Announce(std::ostream& out) const;
  // What was reloaded, as a line.
  Result<std::string> Reload();
  // Lets requests in flight end, on all addresses at once.
  void Stop();
  Database& database() { return *database_; }

 private:
  Status OpenParts(Console& console);
  Status Listen();

  const ServeSettings& settings_;
  const std::function<Result<ServeSettings>()> resolve_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<http::AccountSet> accounts_;
  std::unique_ptr<http::TlsContext> tls_;
  std::unique_ptr<AccessLogFile> access_log_;
  std::unique_ptr<http::TableService> service_;
  std::optional<http::ServerBudgets> budgets_;  // Of all addresses of the table service.
  std::vector<std::unique_ptr<http::HttpServer>> servers_;
  std::unique_ptr<AdminHandler> admin_handler_;
  std::unique_ptr<http::HttpServer> admin_server_;
  uint64_t descriptors_max_ = 0;
  ConnectionShare share_;  // Of each address.
};

http::TlsContext::Files TlsFiles(const ServeSettings& settings) {
  return {.certificate = settings.certificate_file, .key = settings.key_file};
}

Status Serving::OpenParts(Console& console) {
  descriptors_max_ = RaiseDescriptorLimit();
  share_ = ShareDescriptors(descriptors_max_, settings_.listen.size(), settings_.connections_max);
  // What fails for a typing error fails before the store is touched.
  PARTITA_ASSIGN(http::AccountSet accounts, http::AccountSet::Create(settings_.accounts));
  accounts_ = std::make_unique<http::AccountSet>(std::move(accounts));
  if (!settings_.certificate_file.empty()) {
    PARTITA_ASSIGN(tls_, http::TlsContext::Open(TlsFiles(settings_)));
  }
  if (!settings_.access_log.empty()) {
    PARTITA_ASSIGN(access_log_, AccessLogFile::Open(settings_.access_log));
  }
  StoreFlags store = settings_.store;
  store.account =
      settings_.accounts.front().name;  // Whose tables /heat and /ranges call by their name alone.
  store.host_memory_bytes = HttpBufferBytes(store);
  budgets_.emplace(http::ServerBudgets::LargeOf(store.host_memory_bytes));
  const IfNoStore if_no_store = settings_.create_store ? IfNoStore::kCreate : IfNoStore::kFail;
  PARTITA_ASSIGN(database_, OpenStore(store, if_no_store, console));
  return database_->SetThroughputTargets(settings_.throughput);
}

// Of an address that another process has.
Status WithAdvice(const Status& status) {
  if (status.code() != Code::kLocked) return status;
  return Status::Locked(status.message() +
                        "; is another partita running? Another port: --listen 127.0.0.1:PORT");
}

Status Serving::Listen() {
  Runtime& runtime = AsyncDatabase(*database_).runtime();
  http::HttpServerOptions options{.connections_max = share_.connections,
                                  .refused_max = share_.refused,
                                  .server_name = std::string("Partita/") + kPartitaVersion};
  options.budgets = &*budgets_;
  std::vector<const http::HttpServer*> servers;
  for (const ListenAddress& listen : settings_.listen) {
    options.address = listen.address;
    options.tls = listen.tls ? tls_.get() : nullptr;
    Result<std::unique_ptr<http::HttpServer>> server = http::HttpServer::Open(runtime, options, *service_);
    if (!server.ok()) return WithAdvice(server.status().WithContext("listening on " + listen.address));
    servers.push_back(server->get());
    servers_.push_back(std::move(*server));
  }
  if (!settings_.admin) return Status();
  admin_handler_ = std::make_unique<AdminHandler>(*database_, *service_, std::move(servers), kPartitaVersion,
                                                  settings_.admin_hosts);
  options.address = settings_.admin->address;
  options.connections_max = kAdminConnectionsMax;
  options.refused_max = kAdminConnectionsMax;
  options.tls = nullptr;
  options.budgets = nullptr;
  options.buffer_bytes_max = kAdminBufferBytes;
  Result<std::unique_ptr<http::HttpServer>> admin = http::HttpServer::Open(runtime, options, *admin_handler_);
  if (!admin.ok())
    return WithAdvice(admin.status().WithContext("listening on " + options.address + " (--admin)"));
  admin_server_ = std::move(*admin);
  return Status();
}

Status Serving::Start(Console& console) {
  PARTITA_TRY(OpenParts(console));
  http::TableServiceOptions options;
  options.addresses.path_style_hosts = settings_.path_style_hosts;
  options.authorization.read_only = settings_.store.read_only;
  options.guards_development_account = settings_.accounts_are_default;
  if (access_log_ != nullptr) {
    options.access_log = [log = access_log_.get()](const http::AccessRecord& record) { log->Add(record); };
  }
  service_ = std::make_unique<http::TableService>(*database_, *accounts_, std::move(options));
  return Listen();
}

std::string ThroughputLine(const ThroughputTargets& targets) {
  std::string line = ThroughputText(targets);
  if (!targets.rules.empty()) line += ", " + FormatCount(targets.rules.size()) + " rules";
  return line;
}

void AnnounceStore(const Database& database, const StoreFlags& store, std::ostream& out) {
  const OpenReport& report = database.open_report();
  out << "  store       " << store.directory << ", " << report.shards << " shards, "
      << FormatBytes(store.memory_bytes) << " of memory\n"
      << "  durability  " << DurabilityName(store.durability.value_or(Durability::kPower))
      << " for tables that are made without their own\n";
  if (store.read_only) out << "  read only   writes are told 403 (--read-only)\n";
  if (!report.volatile_storage.empty()) {
    out << "              power is in force as process: " << report.volatile_storage
        << " (--allow-volatile-storage)\n";
  }
  if (report.direct_io_refused) {
    out << "  page cache  files go through it, as the file system refuses O_DIRECT: as durable, but slower, "
           "and a scrub may read from memory\n";
  }
  if (const DatabaseStats stats = database.Stats(); stats.out_of_space) {
    out << "  disk full   only deletes are accepted until the store has " << FormatBytes(stats.reserve_wanted)
        << " in reserve again\n";
  }
  if (const uint64_t beyond = database.Stats().memory_beyond_budget; beyond > 0) {
    out << "  beyond      tables take " << FormatBytes(beyond)
        << " more than --memory has room for, and so will the process once memtables are full\n";
  }
  if (const ThroughputTargets targets = database.throughput_targets(); !targets.IsOff()) {
    out << "  throughput  " << ThroughputLine(targets) << "\n";
  }
  out << "  recovery    " << (report.clean_shutdown ? "clean" : "after a stop that was not clean") << ", "
      << FormatCount(report.records_replayed) << " log records replayed, " << FormatSeconds(report.seconds)
      << "\n";
  if (report.shards_before != 0 && report.shards_before != report.shards) {
    out << "              re-divided from " << report.shards_before << " shards\n";
  }
  for (const std::string& damage : report.damaged_shards) out << "  not served  " << damage << "\n";
}

void Serving::Announce(std::ostream& out) const {
  out << "partita " << kPartitaVersion << ", table service\n";
  AnnounceStore(*database_, settings_.store, out);
  std::string ready = "READY";
  ListenAddress first;
  for (size_t i = 0; i < servers_.size(); ++i) {
    const std::string url = WithScheme(settings_.listen[i].tls, servers_[i]->address());
    if (i == 0) first = {.address = servers_[i]->address(), .tls = settings_.listen[i].tls};
    out << "  listening   " << url << "\n";
    ready += " " + url;
  }
  if (admin_server_ != nullptr) {
    const std::string url = WithScheme(false, admin_server_->address());
    out << "  admin       " << url << " (/healthz /readyz /metrics /heat /ranges /stalls; /backup /scrub)\n";
    ready += " admin=" + url;
  }
  for (const http::AccountSettings& account : settings_.accounts) {
    out << "  account     " << account.name << ", by " << settings_.accounts_from
        << (account.disabled ? ", disabled" : "") << "\n";
    if (account.disabled) continue;
    // Only the key that is public anyway is printed: logs are read by many.
    http::AccountSettings shown = account;
    if (account.keys.front() != http::kDevelopmentKey) shown.keys = {"YOUR-KEY"};
    out << "  connect     " << ConnectionString(shown, first) << "\n";
  }
  if (share_.connections < settings_.connections_max) {
    out << "  note        " << FormatCount(descriptors_max_) << " descriptors are allowed, too few for "
        << FormatCount(settings_.connections_max) << " connections; " << FormatCount(share_.connections)
        << (settings_.listen.size() > 1 ? " at each address" : "") << " are taken; raise ulimit -n\n";
  }
  if (tls_ != nullptr && !tls_->ValidityNote().empty()) {
    out << "  note        " << tls_->ValidityNote() << "\n";
  }
  out << ready << std::endl;  // Flushed: scripts wait for it.
}

Result<std::string> Serving::Reload() {
  // What can fail comes first, and of that what is in force at once comes last: after a failure all is as it
  // was. The targets have been checked.
  PARTITA_ASSIGN(const ServeSettings wanted, resolve_());
  std::shared_ptr<ssl_ctx_st> certificate;
  if (tls_ != nullptr && !wanted.certificate_file.empty()) {
    PARTITA_ASSIGN(certificate, http::TlsContext::Load(TlsFiles(wanted)));
  }
  if (access_log_ != nullptr && !wanted.access_log.empty()) {
    PARTITA_TRY(access_log_->Reopen(wanted.access_log));
  }
  if (certificate != nullptr) tls_->Use(certificate);
  PARTITA_TRY(database_->SetThroughputTargets(wanted.throughput));

  std::string line = "settings are read anew; throughput: " + ThroughputLine(database_->throughput_targets());
  if (certificate != nullptr) line += "; certificate " + wanted.certificate_file;
  if (access_log_ != nullptr && !wanted.access_log.empty()) line += "; access log " + wanted.access_log;
  const std::vector<std::string> waiting = SettingsOfNextStart(settings_, wanted);
  for (size_t i = 0; i < waiting.size(); ++i) {
    line += (i == 0 ? "; changed, and in force from the next start on: " : ", ") + waiting[i];
  }
  if (tls_ != nullptr && !tls_->ValidityNote().empty()) line += "; " + tls_->ValidityNote();
  return line;
}

void Serving::Stop() {
  if (admin_handler_ != nullptr) admin_handler_->NoteStopping();
  http::HttpServer::StopAll(servers_);
  // Last, so that who asks meanwhile hears that the server stops.
  if (admin_server_ != nullptr) admin_server_->Stop();
}

// Until it is asked to stop.
void ServeUntilAsked(Serving* serving, Console& console) {
  while (console.interrupts.Wait() == InterruptSource::Wish::kReload) {
    const Result<std::string> reloaded = serving->Reload();
    Tell(console,
         reloaded.ok() ? *reloaded : "reload failed, all stays as it was: " + reloaded.status().message());
  }
}

}  // namespace

ExitCode RunServe(const StoreFlags& store, const ServeFlags& flags, Console& console) {
  if (!store.account.empty()) {
    return FailUsage(console, "--account in front of serve names nobody; behind it each has its --key");
  }
  const char* variable = std::getenv("AZURITE_ACCOUNTS");
  const std::string azurite_accounts = variable == nullptr ? "" : variable;
  Result<ServeSettings> settings = ResolveServeSettings(store, flags, azurite_accounts);
  if (!settings.ok()) return FailToStart(console, settings.status());

  console.interrupts.Arm();
  console.interrupts.ArmReload();
  KeepHeapSmall(settings->store.memory_bytes);
  const Result<std::unique_ptr<HeapTrimmer>> trimmer = HeapTrimmer::Open(settings->store.memory_bytes);
  if (!trimmer.ok()) return FailToStart(console, trimmer.status());
  Serving serving(*settings, [&]() -> Result<ServeSettings> {
    // Of the accounts that are served.
    PARTITA_ASSIGN(ThroughputTargets targets, ResolveThroughput(flags, settings->accounts));
    PARTITA_ASSIGN(ServeSettings wanted, ResolveServeSettings(store, flags, azurite_accounts));
    wanted.throughput = std::move(targets);
    return wanted;
  });
  const Status started = serving.Start(console);
  if (!started.ok()) {
    serving.Stop();
    return FailToStart(console, started);
  }
  // Who waited for READY may read no further, or hang; requests are served all the same.
  console.out_may_be_lost = true;
  // Who was asked to stop while the store was opened is ready for nobody.
  if (!console.interrupts.Requested()) {
    serving.Announce(console.out);
    ServeUntilAsked(&serving, console);
  }
  Tell(console, "stopping: requests in flight end, the store is flushed; again to stop at once");
  serving.Stop();
  const ExitCode code = CloseStore(serving.database(), ExitCode::kOk, console);
  if (code == ExitCode::kOk) Tell(console, "stopped");
  return code;
}

}  // namespace partita
