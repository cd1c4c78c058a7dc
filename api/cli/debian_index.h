#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "api/cli/line_reader.h"
#include "api/cli/record_reader.h"
#include "api/entity.h"
#include "api/names.h"

namespace partita {

// What was mapped, for the import's report: every departure from the input is counted.
struct DebianIndexCounts {
  uint64_t stanzas = 0;   // Given as entities or as errors.
  uint64_t entities = 0;  // Given as entities.
  uint64_t fields = 0;    // Of those given as entities.
  uint64_t continuation_lines = 0;
  uint64_t sections_missing = 0;         // PartitionKey is kDebianNoSection.
  uint64_t key_characters_replaced = 0;  // Characters in both keys.
  uint64_t names_changed = 0;            // Fields whose name had to change.
  uint64_t numbers = 0;                  // Size and Installed-Size as Int64.
  uint64_t numbers_kept_as_text = 0;     // Of those two, not a number.
  uint64_t values_split = 0;             // Values too long for one property,
  uint64_t parts_added = 0;              // and the properties they needed beyond their first.
  uint64_t rows_made_unique = 0;         // RowKey got _Architecture, because another one has the key.
  uint64_t rows_repeated = 0;            // The same key and Architecture again: the last one stays.

  // One line a figure.
  std::string ToString() const;
};

inline constexpr std::string_view kDebianNoSection = "none";

// Entities from a Debian package index, as `apt-cache dumpavail` prints it: stanzas of `Field: value`
// lines with continuation lines that begin with white space, blank lines between stanzas.
//
//   PartitionKey  Section; `none` where it is missing
//   RowKey        Package_Version
//   properties    every field under its name, keys included. Size and Installed-Size are Int64, all
//                 others String: the text after the colon without white space around it, then for each
//                 continuation line a line feed and the line without its first character
//
// What no table takes is mapped, and counted: in keys each of `/ \ # ?` and control characters becomes
// `:`; in names each character but letters, digits and `_` becomes `_`, a leading digit gets a `_`, and the
// system's three names get a `_` behind; a value of more than 32,768 UTF-16 units is cut into
// `Name`, `Name_2`, `Name_3`..., which put together give it back.
//
// Rows that repeat: an index for several architectures holds the same Package and Version once each. The
// first one keeps Package_Version, one of another Architecture becomes Package_Version_Architecture.
// A stanza of the same Architecture too is the same package again (several sources offer it): it
// comes out under the same RowKey, so that with insert-or-replace the last one stays. For this the
// reader remembers 24 bytes or so a stanza.
//
// Errors, one a stanza: a line without colon, a field twice, two names that become one, more fields than
// an entity has properties, no Package or Version, text that is not UTF-8, a stanza above the record limit,
// what ValidateEntity finds.
class DebianIndexReader : public RecordReader {
 public:
  explicit DebianIndexReader(std::unique_ptr<ByteSource> source, size_t record_bytes_max = kRecordBytesMax);

  std::optional<Result<Entity>> Next() override;
  uint64_t line_number() const override { return stanza_line_; }
  uint64_t resume_offset() const override { return lines_.offset(); }
  uint64_t resume_line() const override { return lines_.line_number() + 1; }
  // Reads what lies before, since the RowKeys of repeated rows depend on it.
  Status SkipTo(uint64_t offset, uint64_t line) override;

  // Of everything read so far, what SkipTo passed included.
  const DebianIndexCounts& counts() const { return counts_; }

 private:
  struct Field {
    std::string name;
    std::string value;
  };
  enum class StanzaEnd : uint8_t { kRead, kEndOfInput };

  StanzaEnd ReadStanza();
  void TakeLine(std::string_view text);
  void Fail(std::string_view why, Violation violation = Violation::kInvalidInput);
  Result<Entity> BuildEntity();
  Status AddField(Entity* entity, const Field& field);
  std::string UniqueRowKey(const std::string& partition_key, std::string row_key,
                           std::string_view architecture);
  const std::string* Find(std::string_view name) const;

  LineReader lines_;
  size_t record_bytes_max_;
  DebianIndexCounts counts_;
  std::vector<Field> fields_;
  size_t stanza_bytes_ = 0;
  uint64_t stanza_line_ = 0;
  Status stanza_status_;  // The first thing that is wrong with the stanza.
  bool input_failed_ = false;
  std::unordered_map<uint64_t, uint64_t>
      first_architecture_;                   // Hash of the keys -> of the first Architecture.
  std::unordered_set<uint64_t> later_rows_;  // Hashes of keys and Architecture.
};

// The property name a field gets.
std::string DebianPropertyName(std::string_view field_name);

}  // namespace partita
