#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace partita::http {

// The codes of the service (spec 13.2) that this server sends.
enum class ErrorCode : uint8_t {
  kAccountIsDisabled,
  kAtomFormatNotSupported,
  kAuthenticationFailed,
  kAuthorizationFailure,
  kAuthorizationPermissionMismatch,
  kAuthorizationProtocolMismatch,
  kAuthorizationResourceTypeMismatch,
  kAuthorizationServiceMismatch,
  kAuthorizationSourceIPMismatch,
  kCommandsInBatchActOnDifferentPartitions,
  kCorsPreflightFailure,
  kDuplicatePropertiesSpecified,
  kEntityAlreadyExists,
  kEntityTooLarge,
  kHostInformationNotPresent,
  kInsufficientAccountPermissions,
  kInternalError,
  kInvalidAuthenticationInfo,
  kInvalidDuplicateRow,
  kInvalidHeaderValue,
  kInvalidInput,
  kInvalidMd5,
  kInvalidQueryParameterValue,
  kInvalidResourceName,
  kInvalidUri,
  kInvalidXmlDocument,
  kInvalidXmlNodeValue,
  kJsonFormatNotSupported,
  kMd5Mismatch,
  kMethodNotAllowed,
  kMissingContentLengthHeader,
  kMissingRequiredHeader,
  kMissingRequiredXmlNode,
  kNotImplemented,
  kOperationTimedOut,
  kOutOfRangeInput,
  kPropertiesNeedValue,
  kPropertyNameInvalid,
  kPropertyNameTooLong,
  kPropertyValueTooLarge,
  kRequestBodyTooLarge,
  kResourceNotFound,
  kServerBusy,
  kTableAlreadyExists,
  kTableBeingDeleted,
  kTableNotFound,
  kTooManyProperties,
  kUnsupportedHttpVerb,
  kUpdateConditionNotSatisfied,
  kXMethodIncorrectCount,
  kXMethodIncorrectValue,
  kXMethodNotUsingPost,
};

// A refusal as the service words it. Functions that can refuse return std::optional<ServiceError>:
// nothing means all is well.
struct ServiceError {
  ErrorCode code = ErrorCode::kInternalError;
  int status = 500;     // HTTP.
  std::string message;  // First line of the message; request id and time are added when it is written.
  bool as_xml = false;  // Always XML, whatever was asked: authentication, ACL, properties (spec 13.1).
  bool early = false;   // Found before the data layer is asked: no Cache-Control (spec 4.2).
  uint64_t retry_after_us = 0;  // Above 0 only with 503.
  bool challenge = false;       // Adds WWW-Authenticate: the 401 of spec 14.6.

  // The status and the documented text of the code (spec 13.2), or `text` in its place.
  explicit ServiceError(ErrorCode code);
  ServiceError(ErrorCode code, std::string text);

  ServiceError&& AsXml() &&;
  ServiceError&& Early() &&;
};

std::string_view ErrorCodeName(ErrorCode code);

// What the engine's refusal is to a client: of an entity operation with `for_table` false (kNotFound is
// ResourceNotFound), of a table operation with true. kInvalidArgument goes by its Violation
// (api/names.h). The texts are the service's, never the engine's, which may name files.
ServiceError ErrorOfStatus(const Status& status, bool for_table);

// A key of an entity's body, named so, that holds a forbidden character (spec 7.2).
ServiceError ErrorOfForbiddenKey(std::string_view name, std::string_view key);

}  // namespace partita::http
