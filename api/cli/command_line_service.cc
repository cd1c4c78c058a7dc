#include "api/cli/command_words.h"

// The commands of the HTTP service: serve, sas.
namespace partita {

namespace {

void AddAdminAndTls(CLI::App* serve, ServeFlags* flags) {
  serve
      ->add_option(
          "--admin", flags->admin,
          "Address of /healthz, /readyz, /metrics (Prometheus), /heat, /ranges and /stalls, which asks "
          "nobody "
          "who he is; /heat and /ranges tell PartitionKeys, and who is on this machine may POST changes of "
          "ranges, backups and scrubs. Asked by a name other than localhost it answers if 'admin-hosts' of "
          "the settings has it")
      ->check(NotEmpty())
      ->type_name("IP:PORT");
  serve->add_flag("--admin-public", flags->admin_public, "Allows --admin on an address that others reach");
  serve->add_option("--cert", flags->certificate_file, "TLS certificate, then its chain, PEM")
      ->check(NotEmpty())
      ->type_name("FILE");
  serve->add_option("--key-file", flags->key_file, "Its private key, PEM")
      ->check(NotEmpty())
      ->type_name("FILE");
  serve->add_option("--access-log", flags->access_log, "A line for each request; - is standard output")
      ->check(NotEmpty())
      ->type_name("FILE");
}

void AddServe(CLI::App& app, Words* words) {
  CLI::App* serve = AddCommand(
      app, "serve", "Serve tables over HTTP to the Azure Table clients of every language",
      "partita serve --data ./store --listen 127.0.0.1:10002\n"
      "  partita serve --data /var/lib/partita --listen 0.0.0.0:443 --account contoso --key BASE64 "
      "--cert cert.pem --key-file key.pem\n\n"
      "What stands on the command line wins over the environment (PARTITA_DATA,\n"
      "PARTITA_ALLOW_VOLATILE_STORAGE, AZURITE_ACCOUNTS=NAME:KEY[:KEY2];...), which wins over the settings "
      "file: TOML with data, listen, memory, shards, durability, io, create,\n"
      "admin, admin-public, admin-hosts, allow-volatile-storage, cert, key-file, access-log,\n"
      "path-style-hosts, connections-max, throughput, "
      "[[account]] sections with name, keys, disabled, and [[throughput-rule]] sections with account, "
      "table,\n"
      "partition-prefix, partition-rate, account-rate, total-rate (of the table or prefix). Unknown settings "
      "are refused.\n\n"
      "Over a throughput target clients are told 503 ServerBusy, with Retry-After and x-ms-retry-after-ms.\n"
      "Counted as the service counts: entities written, read or scanned, each by its size in KiB. A bucket\n"
      "holds what flows in within 2 s. Of several rules the one with the longest prefix is in force, then\n"
      "the one that names the table, then the account; a rate of 0 is no limit.\n\n"
      "--memory is for everything: memtables, blocks, and (an eighth) large requests and answers under way.\n"
      "Beside it stand 5 %, a fixed part of some 24 MiB and 10 MiB a shard, and 2 to 64 KiB for each open "
      "connection.\n\n"
      "SIGTERM or Ctrl-C: requests in flight end, the store is flushed, exit code 0; a second one ends it "
      "at\n"
      "once. While the store is opened, the first one waits for that. SIGHUP: reads the settings file anew: "
      "certificate, access log (each read anew in any case) "
      "and\n"
      "throughput are in force at once, and it says what else has changed, for the next start. A rule for "
      "an\n"
      "account that is new is in force nowhere until then.\n"
      "Scripts wait for the line READY",
      [words] { words->run = [words](Console& c) { return RunServe(words->store, words->serve, c); }; });
  ServeFlags& flags = words->serve;
  serve
      ->add_option("--listen", flags.listen,
                   "Where; may be given several times; port 0 takes a free one; default: 127.0.0.1:10002. "
                   "With --cert TLS is spoken, but on http://IP:PORT")
      ->type_name("IP:PORT");
  serve
      ->add_option(
          "--account", flags.accounts,
          "An account, with its --key behind it; may be given several times. Default, on loopback "
          "only: the development account, devstoreaccount1, for addresses, localhost and path-style-hosts")
      ->type_name("NAME");
  serve
      ->add_option("--key", flags.keys,
                   "Its key, base64; KEY:KEY2 while one is replaced. Others see it in the list of processes: "
                   "AZURITE_ACCOUNTS and the settings file keep it from them")
      ->type_name("KEY");
  serve->add_option("--settings", flags.settings_file, "Settings file, TOML")
      ->check(NotEmpty())
      ->type_name("FILE");
  AddAdminAndTls(serve, &flags);
  serve->add_flag("--no-create", flags.no_create,
                  "Refuse to start where there is no store, rather than make an empty one");
  serve
      ->add_option("--throughput", flags.throughput,
                   "Entities a second: off (default), storage (2,000 a partition, 20,000 an account), or "
                   "partition=N,account=N")
      ->check(NotEmpty())
      ->type_name("TARGETS");
  serve
      ->add_option(
          "--connections-max", flags.connections_max,
          "At each address, as far as the limit of open files allows; more are told 503; default: 16384")
      ->type_name("N");
}

void AddSas(CLI::App& app, Words* words) {
  CLI::App* sas = AddCommand(
      app, "sas", "Make a token (shared access signature) for clients that do not have the key",
      "partita sas --account devstoreaccount1 --table Orders --permissions raud --expiry 12h\n"
      "  curl \"http://127.0.0.1:10002/devstoreaccount1/Orders()?$(partita sas --table Orders)\"",
      [words] { words->run = [words](Console& c) { return RunSas(words->store, words->sas, c); }; });
  sas->add_option("--account", words->sas.account, "The account; default: devstoreaccount1")
      ->check(NotEmpty())
      ->type_name("NAME");
  sas->add_option("--key", words->sas.key,
                  "Its key; default: as AZURITE_ACCOUNTS has it; the development account's is known")
      ->check(NotEmpty())
      ->type_name("KEY");
  sas->add_option("--table", words->sas.table, "For this table alone; default: for the whole account")
      ->check(NotEmpty())
      ->type_name("T");
  sas->add_option("--permissions", words->sas.permissions,
                  "For a table some of r (query), a (add), u (update), d (delete), default r; for an account "
                  "also w, l, c, p, default rl")
      ->check(NotEmpty())
      ->type_name("LETTERS");
  sas->add_option("--expiry", words->sas.expiry,
                  "Until when: 2030-01-01T00:00:00Z, or from now on: 90m, 12h, 7d; default: 1h")
      ->check(NotEmpty())
      ->type_name("TIME");
  sas->add_option("--partition", words->sas.partition, "Only this PartitionKey (with --table)")
      ->check(NotEmpty())
      ->type_name("PK");
}

}  // namespace

void AddServiceCommands(CLI::App& app, Words* words) {
  AddServe(app, words);
  AddSas(app, words);
}

}  // namespace partita
