#include "engine/log_end.h"

namespace partita {

std::string TornInWords(const LogRecovery& log) {
  if (log.torn_bytes == 0) return "";
  return std::to_string(log.torn_bytes) + " bytes of the log behind position " +
         std::to_string(log.torn_behind.value) +
         " are void, of a write that was not finished or, which nothing tells apart, was damaged later (F31, "
         "F33)";
}

std::string StrandedInWords(const LogRecovery& log) {
  if (log.records_stranded == 0) return "";
  return std::to_string(log.records_stranded) + " records up to position " +
         std::to_string(log.stranded_to.value) + " of the log's tail are lost, as position " +
         std::to_string(log.last.value + 1) + " in front of them is gone; of level power none was (F12, F80)";
}

}  // namespace partita
