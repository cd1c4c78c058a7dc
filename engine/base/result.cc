#include "engine/base/result.h"

namespace partita::internal {

void ValueOfFailure(const Status& status) {
  AssertFailed(("the Result whose value is asked for is ok(); it is " + status.ToString()).c_str(), __FILE__,
               __LINE__);
}

}  // namespace partita::internal
