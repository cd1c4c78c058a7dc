// What a Grant allows (spec 14.4, 14.5): the half of authorization.h that is asked for each operation.
#include <algorithm>

#include "api/http/authorization.h"
#include "engine/catalog.h"

namespace partita::http {

namespace {

constexpr uint32_t Bit(char letter) { return uint32_t{1} << (letter - 'a'); }

bool IsEntityOperation(Operation operation) { return operation <= Operation::kDeleteEntity; }

bool IsWrite(Operation operation) {
  switch (operation) {
    case Operation::kQueryEntities:
    case Operation::kGetEntity:
    case Operation::kQueryTables:
    case Operation::kGetTableAcl:
    case Operation::kGetServiceProperties:
    case Operation::kGetServiceStats:
      return false;
    default:
      return true;
  }
}

// ACL, properties and stats answer all their errors in XML (spec 13.1).
bool AnswersXml(Operation operation) { return operation >= Operation::kGetTableAcl; }

ServiceError Refuse(ErrorCode code, Operation operation) {
  ServiceError error(code);
  if (AnswersXml(operation)) error.as_xml = true;
  return error;
}

// What a SAS must hold for an operation.
struct Needs {
  char resource_type;      // Of an account SAS.
  uint32_t all_of;         // Letters of `sp`.
  uint32_t or_one_of = 0;  // Besides; 0: nothing.
};

Needs NeedsOf(Operation operation) {
  switch (operation) {
    case Operation::kQueryEntities:
    case Operation::kGetEntity:
      return {'o', Bit('r')};
    case Operation::kInsertEntity:
      return {'o', Bit('a')};
    case Operation::kUpdateEntity:
      return {'o', Bit('u')};
    case Operation::kUpsertEntity:
      // For an account SAS the documentation leaves room for "or" (unconfirmed); "and" gives nothing away.
      return {'o', Bit('a') | Bit('u')};
    case Operation::kDeleteEntity:
      return {'o', Bit('d')};
    case Operation::kQueryTables:
      return {'c', Bit('l')};
    case Operation::kCreateTable:
      return {'c', 0, Bit('c') | Bit('w')};
    case Operation::kDeleteTable:
      return {'c', Bit('d')};
    case Operation::kGetServiceProperties:
    case Operation::kGetServiceStats:
      return {'s', Bit('r')};
    case Operation::kSetServiceProperties:
      return {'s', Bit('w')};
    case Operation::kGetTableAcl:
    case Operation::kSetTableAcl:
      break;  // No SAS reaches them.
  }
  return {'\0', 0};
}

bool HasPermissions(uint32_t permissions, const Needs& needs) {
  if ((permissions & needs.all_of) != needs.all_of) return false;
  return needs.or_one_of == 0 || (permissions & needs.or_one_of) != 0;
}

// The order of UTF-16 code units, that of OrderedText (user_key.h), without a copy: the bytes of UTF-8,
// but EE and EF, which begin U+E000 to U+FFFF, come after those that begin surrogate pairs.
int CompareKeys(std::string_view a, std::string_view b) {
  const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (x == a.end()) return y == b.end() ? 0 : -1;
  if (y == b.end()) return 1;
  const auto weight = [](char c) {
    const int byte = static_cast<unsigned char>(c);
    return byte == 0xEE || byte == 0xEF ? byte + 7 : byte;
  };
  return weight(*x) - weight(*y);
}

}  // namespace

bool KeyRange::Contains(std::string_view partition_key, std::string_view row_key) const {
  if (lower_partition) {
    const int order = CompareKeys(partition_key, *lower_partition);
    if (order < 0 || (order == 0 && lower_row && CompareKeys(row_key, *lower_row) < 0)) return false;
  }
  if (upper_partition) {
    const int order = CompareKeys(partition_key, *upper_partition);
    if (order > 0 || (order == 0 && upper_row && CompareKeys(row_key, *upper_row) > 0)) return false;
  }
  return true;
}

std::optional<ServiceError> Grant::Check(Operation operation, std::string_view table) const {
  if (kind_ == Kind::kNothing) return ServiceError(ErrorCode::kAuthenticationFailed).AsXml();
  if (kind_ == Kind::kTableSas) {
    if (auto refused = CheckTableSas(operation, table)) return refused;
  } else if (kind_ == Kind::kAccountSas) {
    if (auto refused = CheckAccountSas(operation)) return refused;
  }
  if (secondary_ && IsWrite(operation)) {  // The code is unconfirmed.
    return Refuse(ErrorCode::kInsufficientAccountPermissions, operation);
  }
  return std::nullopt;
}

std::optional<ServiceError> Grant::CheckTableSas(Operation operation, std::string_view table) const {
  if (!IsEntityOperation(operation)) return Refuse(ErrorCode::kAuthorizationFailure, operation);
  // The signature does not cover another table (the code is unconfirmed).
  if (FoldCase(table) != table_) return ServiceError(ErrorCode::kAuthenticationFailed).AsXml();
  if (!HasPermissions(permissions_, NeedsOf(operation))) {
    return Refuse(ErrorCode::kAuthorizationPermissionMismatch, operation);
  }
  return std::nullopt;
}

std::optional<ServiceError> Grant::CheckAccountSas(Operation operation) const {
  // Recorded; a table SAS is told 403 instead (recorded too).
  if (operation == Operation::kGetTableAcl || operation == Operation::kSetTableAcl) {
    return Refuse(ErrorCode::kResourceNotFound, operation);
  }
  const Needs needs = NeedsOf(operation);
  if ((resource_types_ & Bit(needs.resource_type)) == 0) {
    return Refuse(ErrorCode::kAuthorizationResourceTypeMismatch, operation);
  }
  if (!HasPermissions(permissions_, needs)) {
    return Refuse(ErrorCode::kAuthorizationPermissionMismatch, operation);
  }
  return std::nullopt;
}

std::optional<ServiceError> Grant::CheckKey(Operation operation, std::string_view partition_key,
                                            std::string_view row_key) const {
  if (!range_.bounded() || range_.Contains(partition_key, row_key)) return std::nullopt;
  // Both recorded.
  return ServiceError(IsWrite(operation) ? ErrorCode::kAuthorizationFailure : ErrorCode::kResourceNotFound);
}

}  // namespace partita::http
