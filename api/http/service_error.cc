#include "api/http/service_error.h"

#include <array>
#include <utility>

#include "api/names.h"
#include "engine/base/assert.h"
#include "engine/base/throughput_targets.h"

namespace partita::http {

namespace {

struct CodeRow {
  ErrorCode code;
  int status;
  std::string_view name;
  std::string_view message;  // Spec 13.2: the service's text where it is recorded, else ours.
};

// In the order of ErrorCode.
constexpr CodeRow kCodes[] = {
    {ErrorCode::kAccountIsDisabled, 403, "AccountIsDisabled", "The specified account is disabled."},
    {ErrorCode::kAtomFormatNotSupported, 415, "AtomFormatNotSupported", "Atom format is not supported."},
    {ErrorCode::kAuthenticationFailed, 403, "AuthenticationFailed",
     "Server failed to authenticate the request. Make sure the value of Authorization header is formed "
     "correctly including the signature."},
    {ErrorCode::kAuthorizationFailure, 403, "AuthorizationFailure",
     "This request is not authorized to perform this operation."},
    {ErrorCode::kAuthorizationPermissionMismatch, 403, "AuthorizationPermissionMismatch",
     "This request is not authorized to perform this operation using this permission."},
    {ErrorCode::kAuthorizationProtocolMismatch, 403, "AuthorizationProtocolMismatch",
     "This request is not authorized to perform this operation using this protocol."},
    {ErrorCode::kAuthorizationResourceTypeMismatch, 403, "AuthorizationResourceTypeMismatch",
     "This request is not authorized to perform this operation using this resource type."},
    {ErrorCode::kAuthorizationServiceMismatch, 403, "AuthorizationServiceMismatch",
     "This request is not authorized to perform this operation using this service."},
    {ErrorCode::kAuthorizationSourceIPMismatch, 403, "AuthorizationSourceIPMismatch",
     "This request is not authorized to perform this operation using this source IP."},
    {ErrorCode::kCommandsInBatchActOnDifferentPartitions, 400, "CommandsInBatchActOnDifferentPartitions",
     "All commands in a batch must operate on same entity group."},
    {ErrorCode::kCorsPreflightFailure, 403, "CorsPreflightFailure",
     "CORS not enabled or no matching rule found for this request."},
    {ErrorCode::kDuplicatePropertiesSpecified, 400, "DuplicatePropertiesSpecified",
     "A property appears more than once."},
    {ErrorCode::kEntityAlreadyExists, 409, "EntityAlreadyExists", "The specified entity already exists."},
    {ErrorCode::kEntityTooLarge, 400, "EntityTooLarge",
     "The entity is larger than the maximum allowed size (1MB)."},
    {ErrorCode::kHostInformationNotPresent, 400, "HostInformationNotPresent",
     "The request has no usable Host."},
    {ErrorCode::kInsufficientAccountPermissions, 403, "InsufficientAccountPermissions",
     "The account being accessed does not have sufficient permissions to execute this operation."},
    {ErrorCode::kInternalError, 500, "InternalError", "The server encountered an internal error."},
    {ErrorCode::kInvalidAuthenticationInfo, 400, "InvalidAuthenticationInfo",
     "The Authorization header is not in the expected form."},
    {ErrorCode::kInvalidDuplicateRow, 400, "InvalidDuplicateRow",
     "The batch request contains multiple changes with same row key. An entity can appear only once in a "
     "batch request."},
    {ErrorCode::kInvalidHeaderValue, 400, "InvalidHeaderValue",
     "The value of one of the headers is not in the correct format."},
    {ErrorCode::kInvalidInput, 400, "InvalidInput", "One of the request inputs is not valid."},
    {ErrorCode::kInvalidMd5, 400, "InvalidMd5",
     "The MD5 value specified in the request is invalid. It must be 128 bits, base64-encoded."},
    {ErrorCode::kInvalidQueryParameterValue, 400, "InvalidQueryParameterValue",
     "A query parameter value is not valid."},
    {ErrorCode::kInvalidResourceName, 400, "InvalidResourceName",
     "The specifed resource name contains invalid characters."},
    {ErrorCode::kInvalidUri, 400, "InvalidUri", "The URL could not be parsed."},
    {ErrorCode::kInvalidXmlDocument, 400, "InvalidXmlDocument", "XML specified is not syntactically valid."},
    {ErrorCode::kInvalidXmlNodeValue, 400, "InvalidXmlNodeValue", "An XML node has an invalid value."},
    {ErrorCode::kJsonFormatNotSupported, 415, "JsonFormatNotSupported", "JSON format is not supported."},
    {ErrorCode::kMd5Mismatch, 400, "Md5Mismatch",
     "The MD5 value specified in the request did not match the MD5 value of the body."},
    {ErrorCode::kMethodNotAllowed, 405, "MethodNotAllowed",
     "The resource doesn't support the specified Http Verb."},
    {ErrorCode::kMissingContentLengthHeader, 411, "MissingContentLengthHeader",
     "Content-Length HTTP header is missing."},
    {ErrorCode::kMissingRequiredHeader, 400, "MissingRequiredHeader",
     "An HTTP header that's mandatory for this request is not specified."},
    {ErrorCode::kMissingRequiredXmlNode, 400, "MissingRequiredXmlNode",
     "A required XML node was not specified in the request body."},
    {ErrorCode::kNotImplemented, 501, "NotImplemented",
     "The requested operation is not implemented on the specified resource."},
    {ErrorCode::kOperationTimedOut, 500, "OperationTimedOut",
     "The operation could not be completed within the permitted time."},
    {ErrorCode::kOutOfRangeInput, 400, "OutOfRangeInput", "One of the request inputs is out of range."},
    {ErrorCode::kPropertiesNeedValue, 400, "PropertiesNeedValue",
     "The values are not specified for all properties in the entity."},
    {ErrorCode::kPropertyNameInvalid, 400, "PropertyNameInvalid", "The property name is invalid."},
    {ErrorCode::kPropertyNameTooLong, 400, "PropertyNameTooLong",
     "The property name exceeds the maximum allowed length (255)."},
    {ErrorCode::kPropertyValueTooLarge, 400, "PropertyValueTooLarge",
     "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is "
     "UTF-16 encoded and the maximum number of characters should be 32K or less."},
    {ErrorCode::kRequestBodyTooLarge, 413, "RequestBodyTooLarge",
     "The request body is too large and exceeds the maximum permissible limit."},
    {ErrorCode::kResourceNotFound, 404, "ResourceNotFound", "The specified resource does not exist."},
    {ErrorCode::kServerBusy, 503, "ServerBusy",
     "The server is currently unable to receive requests. Please retry your request."},
    {ErrorCode::kTableAlreadyExists, 409, "TableAlreadyExists", "The table specified already exists."},
    {ErrorCode::kTableBeingDeleted, 409, "TableBeingDeleted",
     "The specified table is being deleted. Try operation later."},
    {ErrorCode::kTableNotFound, 404, "TableNotFound", "The table specified does not exist."},
    {ErrorCode::kTooManyProperties, 400, "TooManyProperties",
     "The entity contains more properties than allowed. Each entity can include up to 252 properties to "
     "store data. Each entity also has 3 system properties."},
    {ErrorCode::kUnsupportedHttpVerb, 405, "UnsupportedHttpVerb",
     "The resource doesn't support the specified Http Verb."},
    {ErrorCode::kUpdateConditionNotSatisfied, 412, "UpdateConditionNotSatisfied",
     "The update condition specified in the request was not satisfied."},
    {ErrorCode::kXMethodIncorrectCount, 400, "XMethodIncorrectCount",
     "There should be only one X-HTTP-Method header."},
    {ErrorCode::kXMethodIncorrectValue, 400, "XMethodIncorrectValue",
     "The value of the X-HTTP-Method header is invalid."},
    {ErrorCode::kXMethodNotUsingPost, 400, "XMethodNotUsingPost",
     "The request with an X-HTTP-Method header must use POST."},
};

constexpr bool InOrder() {
  for (size_t i = 0; i < std::size(kCodes); ++i) {
    if (static_cast<size_t>(kCodes[i].code) != i) return false;
  }
  return true;
}
static_assert(InOrder());
static_assert(std::size(kCodes) == static_cast<size_t>(ErrorCode::kXMethodNotUsingPost) + 1);

const CodeRow& RowOf(ErrorCode code) {
  PARTITA_ASSERT(static_cast<size_t>(code) < std::size(kCodes));
  return kCodes[static_cast<size_t>(code)];
}

// Clients obey it; the service is not known to send it (spec 17.2).
constexpr uint64_t kRetryAfterUs = 1'000'000;

// The service's text (spec 17.2).
constexpr std::string_view kAccountLimitText = "Operations per second is over the account limit.";

ServiceError Busy(uint64_t retry_after_us) {
  ServiceError error(ErrorCode::kServerBusy);
  error.retry_after_us = retry_after_us > 0 ? retry_after_us : kRetryAfterUs;
  return error;
}

ErrorCode CodeOfViolation(Violation violation) {
  switch (violation) {
    case Violation::kOutOfRangeInput:
      return ErrorCode::kOutOfRangeInput;
    case Violation::kInvalidResourceName:
      return ErrorCode::kInvalidResourceName;
    case Violation::kPropertyValueTooLarge:
      return ErrorCode::kPropertyValueTooLarge;
    case Violation::kPropertyNameTooLong:
      return ErrorCode::kPropertyNameTooLong;
    case Violation::kPropertyNameInvalid:
      return ErrorCode::kPropertyNameInvalid;
    case Violation::kTooManyProperties:
      return ErrorCode::kTooManyProperties;
    case Violation::kEntityTooLarge:
      return ErrorCode::kEntityTooLarge;
    case Violation::kDuplicatePropertiesSpecified:
      return ErrorCode::kDuplicatePropertiesSpecified;
    case Violation::kPropertiesNeedValue:
      return ErrorCode::kPropertiesNeedValue;
    case Violation::kNone:
    case Violation::kInvalidInput:
      break;
  }
  return ErrorCode::kInvalidInput;
}

constexpr std::string_view kNameLengthText =
    "The specified resource name length is not within the permissible limits.";

}  // namespace

ServiceError::ServiceError(ErrorCode error_code) : ServiceError(error_code, "") {
  message = RowOf(error_code).message;
}

ServiceError::ServiceError(ErrorCode error_code, std::string text)
    : code(error_code), status(RowOf(error_code).status), message(std::move(text)) {
  if (error_code == ErrorCode::kServerBusy) retry_after_us = kRetryAfterUs;
}

ServiceError&& ServiceError::AsXml() && {
  as_xml = true;
  return std::move(*this);
}

ServiceError&& ServiceError::Early() && {
  early = true;
  return std::move(*this);
}

std::string_view ErrorCodeName(ErrorCode code) { return RowOf(code).name; }

ServiceError ErrorOfForbiddenKey(std::string_view name, std::string_view key) {
  std::string text = "The '";
  text.append(name).append("' parameter of value '").append(key).append("' is out of range.");
  return ServiceError(ErrorCode::kOutOfRangeInput, std::move(text)).Early();
}

ServiceError ErrorOfStatus(const Status& status, bool for_table) {
  switch (status.code()) {
    case Code::kNotFound:
      return ServiceError(ErrorCode::kResourceNotFound);
    case Code::kAlreadyExists:
      return ServiceError(for_table ? ErrorCode::kTableAlreadyExists : ErrorCode::kEntityAlreadyExists);
    case Code::kPreconditionFailed:
      return ServiceError(ErrorCode::kUpdateConditionNotSatisfied);
    case Code::kInvalidArgument: {
      const ErrorCode code = CodeOfViolation(ViolationOf(status));
      // Of a table name this code means its length (api/names.h).
      if (for_table && code == ErrorCode::kOutOfRangeInput) {
        return ServiceError(code, std::string(kNameLengthText));
      }
      return ServiceError(code);
    }
    case Code::kThrottled: {
      ServiceError error = Busy(status.retry_after_us());
      if (status.detail() == static_cast<uint16_t>(ThrottledBy::kAccount)) error.message = kAccountLimitText;
      return error;
    }
    case Code::kBusy:
      // The only "busy" of the catalog: the name is that of a table whose deletion is under way.
      if (for_table) return ServiceError(ErrorCode::kTableBeingDeleted);
      return Busy(0);
    // Nothing was applied, and it may succeed once there is room, or on the server that takes over.
    case Code::kNoSpace:
    case Code::kResourceExhausted:
    case Code::kCancelled:
    case Code::kClosed:
    case Code::kMoved:
      return Busy(0);
    // The outcome is unknown to the client, which must look or try again (spec 17.2); or nothing was done, as
    // the disk did not answer in time.
    case Code::kUnknown:
    case Code::kDeadlineExceeded:
      return ServiceError(ErrorCode::kOperationTimedOut);
    case Code::kOk:
    case Code::kLocked:
    case Code::kUnsupported:
    case Code::kIoError:
    case Code::kCorruption:
      break;
  }
  return ServiceError(ErrorCode::kInternalError);
}

}  // namespace partita::http
