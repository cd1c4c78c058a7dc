#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/service_error.h"

namespace partita::http {

// `$select` (spec 11.4): which properties an answer shows. Value type.
class Selection {
 public:
  Selection() = default;  // Everything, and not asked for.

  // `text`: the decoded value of $select; nothing when it was not given. Names are separated by commas,
  // spaces around them fall away, duplicates collapse. Blank text selects everything, and so does `*`, alone
  // as the reference has it or among others: no property can have that name. 400 InvalidInput for more than
  // 255 names or an empty one.
  static std::optional<ServiceError> Parse(std::optional<std::string_view> text, Selection* selection);

  bool selects_all() const { return names_.empty(); }
  // Distinct, in the order asked. Empty when everything is selected.
  std::span<const std::string> names() const { return names_; }
  bool asked() const { return asked_; }
  // As asked: what odata.metadata repeats.
  const std::string& text() const { return text_; }

 private:
  bool asked_ = false;
  std::string text_;
  std::vector<std::string> names_;
};

}  // namespace partita::http
