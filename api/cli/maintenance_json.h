#pragma once
#include <string>
#include <string_view>

#include "engine/base/maintenance.h"
#include "engine/base/result.h"

namespace partita {

// What the admin address tells of a backup or a scrub that it was asked for, and the commands show:
//
// {"table_files":3,"bytes":..,"shared_bytes":..,"entries":..,"base_damages":["tables/..: ..",...]}
std::string BackupJson(const BackupReport& done);
// {"table_files":3,"entries":..,"log_segments":..,"meta_values":..,"read_bytes":..,"transient_reads":..,
//  "damages":["tables/..: ..",...]}
std::string ScrubJson(const ScrubReport& done);

// The same back. kInvalidArgument: it is none.
Result<BackupReport> ParseBackupJson(std::string_view json);
Result<ScrubReport> ParseScrubJson(std::string_view json);

}  // namespace partita
