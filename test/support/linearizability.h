#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/status.h"
#include "engine/write_request.h"

namespace partita {

// One call on a partition as its client saw it: when it began and ended, what was asked, what was answered.
// Rows are numbers from 0 on. Times come from one counter, so that one call ended before another began
// exactly when it says so.
struct HistoryCall {
  enum class Kind : uint8_t { kWrite, kGet, kPage };
  struct Part {
    uint32_t row = 0;
    WriteKind kind = WriteKind::kPut;
    Precondition precondition = Precondition::kNone;
    Version expected;
    std::string content;  // Of a merge the patch; it is appended after ';'.
  };
  struct Row {
    bool present = false;
    Version version;
    std::string content;
  };

  Kind kind = Kind::kGet;
  uint32_t client = 0;
  uint64_t begun = 0;
  uint64_t ended = UINT64_MAX;
  std::vector<Part> parts;   // Of a write; an entity group transaction has several.
  Code code = Code::kOk;     // Of a write: kUnknown is in doubt, a condition's code refused it.
  uint32_t failed_part = 0;  // Of a refused write.
  Version version;           // Of an acknowledged one.
  uint32_t row = 0;          // Of a get.
  std::vector<Row> seen;     // Of a get one, of a page all rows.

  std::string ToString() const;
};

// Whether the calls of a partition can be put into one order that explains every answer and in which a call
// that ended before another began comes first (F14). A transaction is one step (F10), and so is a page (F14);
// a write in doubt comes anywhere after its beginning, or never (F15); a refusal is a read (F13, F16);
// versions of acknowledged writes rise along the order (F18), which leaves choices only for writes in doubt.
//
// All rows are absent at first. Null: it can. Else: why not, with the calls that are left over.
std::optional<std::string> ExplainNotLinearizable(const std::vector<HistoryCall>& calls, uint32_t rows);

}  // namespace partita
