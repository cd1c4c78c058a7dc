#pragma once
#include <cstddef>
#include <cstdint>

namespace partita {

// The limits of the table service, section 1 of its reference; each with where it is documented or
// was observed. "Units" are UTF-16 code units.

// Documented: naming rules for tables.
inline constexpr size_t kTableNameSizeMin = 3;
inline constexpr size_t kTableNameSizeMax = 63;

// Documented: naming rules for storage accounts.
inline constexpr size_t kAccountNameSizeMin = 3;
inline constexpr size_t kAccountNameSizeMax = 24;

// Documented as 1 KiB in UTF-16; that units are counted: an emulator; the code that answers: a public
// test suite run against the service.
inline constexpr size_t kKeyUnitsMax = 512;

// Documented as 255 with PartitionKey, RowKey and Timestamp.
inline constexpr size_t kCustomPropertiesMax = 252;

// Documented and recorded.
inline constexpr size_t kPropertyNameUnitsMax = 255;

// Documented as 64 KiB in UTF-16; that exactly so many are taken: test suite.
inline constexpr size_t kStringUnitsMax = 32'768;

// Documented as 64 KiB; that exactly so many are taken: test suite.
inline constexpr size_t kBinaryBytesMax = 65'536;

// Documented as 1 MiB; that the billing formula is what is measured is our rule.
inline constexpr size_t kEntitySizeMax = 1'048'576;

// Size by the billing formula (documented): 4 + 2 * (PartitionKey + RowKey) units, and for each
// custom property 8 + 2 * name units + value. Values: String 2n + 4, Binary n + 4, Boolean 1, Int32 4,
// Int64, Double, DateTime 8, Guid 16 (EntityRecordView::BilledSize).
inline constexpr size_t kEntitySizeBase = 4;

// Documented: entity group transactions.
inline constexpr size_t kTransactionOperationsMax = 100;
inline constexpr size_t kTransactionBytesMax = 4 << 20;

// Documented: entities on a page of a query.
inline constexpr size_t kPageEntitiesMax = 1'000;

// Documented: names in $select.
inline constexpr size_t kSelectNamesMax = 255;

}  // namespace partita
