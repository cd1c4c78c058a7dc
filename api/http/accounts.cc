#include "api/http/accounts.h"

#include <openssl/rand.h>

#include <algorithm>
#include <array>

#include "api/names.h"
#include "engine/base/assert.h"

namespace partita::http {

namespace {

// Takes the text up to `separator` off the front, and the separator.
std::string_view TakeUntil(char separator, std::string_view* text) {
  const size_t end = std::min(text->find(separator), text->size());
  const std::string_view part = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return part;
}

SigningKey RandomKey() {
  std::array<uint8_t, 64> bytes;
  // A machine without randomness can run no server: TLS would fail as well.
  PARTITA_ASSERT(RAND_bytes(bytes.data(), int{bytes.size()}) == 1);
  return SigningKey(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

}  // namespace

AccountSettings DevelopmentAccount() {
  return {.name = std::string(kDevelopmentAccount), .keys = {std::string(kDevelopmentKey)}};
}

Result<std::vector<AccountSettings>> ParseAccountsText(std::string_view text) {
  std::vector<AccountSettings> accounts;
  while (!text.empty()) {
    std::string_view part = TakeUntil(';', &text);
    if (part.empty()) continue;
    AccountSettings account;
    account.name = std::string(TakeUntil(':', &part));
    while (!part.empty()) account.keys.emplace_back(TakeUntil(':', &part));
    if (account.keys.empty()) {
      return Status::InvalidArgument("account " + QuotedForMessage(account.name) +
                                     " has no key; the form is name:key1[:key2];name2:key1...");
    }
    accounts.push_back(std::move(account));
  }
  return accounts;
}

Account::Account(std::string name, SigningKey first, SigningKey second, bool disabled)
    : name_(std::move(name)), first_(first), second_(second), disabled_(disabled) {}

bool Account::Verify(std::string_view text, std::string_view signature) const {
  return first_.Verify(text, signature) || second_.Verify(text, signature);
}

std::string Account::Sign(std::string_view text) const { return first_.Sign(text); }

Result<AccountSet> AccountSet::Create(const std::vector<AccountSettings>& accounts) {
  AccountSet set(Account("", RandomKey(), RandomKey(), /*disabled=*/false));
  for (const AccountSettings& settings : accounts) {
    PARTITA_TRY(CheckAccountName(settings.name));
    const std::string context = "account '" + settings.name + "'";
    if (settings.keys.empty() || settings.keys.size() > 2) {
      return Status::InvalidArgument(context + " has " + std::to_string(settings.keys.size()) +
                                     " keys; one or two are needed");
    }
    Result<SigningKey> first = SigningKey::FromBase64(settings.keys.front());
    if (!first.ok()) return first.status().WithContext(context);
    Result<SigningKey> second = SigningKey::FromBase64(settings.keys.back());
    if (!second.ok()) return second.status().WithContext(context);
    Account account(settings.name, *first, *second, settings.disabled);
    if (!set.accounts_.emplace(settings.name, std::move(account)).second) {
      return Status::InvalidArgument(context + " is given twice");
    }
  }
  return set;
}

const Account* AccountSet::Find(std::string_view name) const {
  const auto it = accounts_.find(name);
  return it == accounts_.end() ? nullptr : &it->second;
}

const Account& AccountSet::FindOrStranger(std::string_view name) const {
  const Account* account = Find(name);
  return account == nullptr ? stranger_ : *account;
}

std::vector<std::string> AccountSet::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, account] : accounts_) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace partita::http
