#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "bench/lab/cell.h"
#include "engine/base/result.h"

// The figures of one cell as bytes, so that an interrupted run need not do it again.
//
//   size  field
//      8  magic   "PartCell"
//      1  format  kCellFileFormat
//      8  run     which run it is of (unfinished_run.h), little-endian: a cell of another run does not count
//      n  the figures in the order of cell_file.cc: whole numbers as LEB128, others as 8 bytes of IEEE 754,
//         texts and lists behind their size
//      8  seal    XXH3-64 of all before it
namespace partita::lab {

inline constexpr uint8_t kCellFileFormat = 3;

std::string EncodeCell(const CellFigures& cell, uint64_t run);
// kCorruption: they are no such bytes, or of another run. kUnsupported: of another format.
Result<CellFigures> DecodeCell(std::string_view bytes, uint64_t run);

}  // namespace partita::lab
