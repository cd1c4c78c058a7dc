#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/http/signature.h"
#include "engine/base/result.h"

namespace partita::http {

// The customary emulator account; its key is public (spec 2.1).
inline constexpr std::string_view kDevelopmentAccount = "devstoreaccount1";
inline constexpr std::string_view kDevelopmentKey =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

// One account as it is configured.
struct AccountSettings {
  std::string name;               // CheckAccountName's rules (api/names.h).
  std::vector<std::string> keys;  // One or two, base64; two so that one can be replaced at a time.
  bool disabled = false;          // Answers 403 AccountIsDisabled to whoever signs rightly.

  bool operator==(const AccountSettings&) const = default;
};

AccountSettings DevelopmentAccount();

// Azurite's AZURITE_ACCOUNTS: `name:key1[:key2];name2:key1...`; empty parts between semicolons are
// skipped. kInvalidArgument says which part is wrong, never showing a key.
Result<std::vector<AccountSettings>> ParseAccountsText(std::string_view text);

// An account with its keys ready to verify.
class Account {
 public:
  const std::string& name() const { return name_; }
  bool disabled() const { return disabled_; }

  // True when one of the keys signed `text` so. A failure costs two signatures whether the account
  // has one key or two.
  bool Verify(std::string_view text, std::string_view signature) const;
  // By the first key: what a client that knows it would send.
  std::string Sign(std::string_view text) const;

 private:
  friend class AccountSet;
  Account(std::string name, SigningKey first, SigningKey second, bool disabled);

  std::string name_;
  SigningKey first_;
  SigningKey second_;  // The first again when there is one key.
  bool disabled_;
};

// The accounts that a server knows. Immutable, thread-safe.
class AccountSet {
 public:
  // kInvalidArgument: a name against the rules or given twice, no key or more than two, a key that is
  // no base64.
  static Result<AccountSet> Create(const std::vector<AccountSettings>& accounts);

  // Null when there is no such account.
  const Account* Find(std::string_view name) const;
  // The account, or one whose random keys nobody knows: checking a signature then takes the same
  // work and fails, so that no answer tells whether an account exists (spec 2.1).
  const Account& FindOrStranger(std::string_view name) const;
  bool IsStranger(const Account& account) const { return &account == &stranger_; }

  size_t size() const { return accounts_.size(); }
  std::vector<std::string> Names() const;  // Sorted.

 private:
  explicit AccountSet(Account stranger) : stranger_(std::move(stranger)) {}

  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, Account, TextHash, std::equal_to<>> accounts_;
  Account stranger_;
};

}  // namespace partita::http
