#include "sstable/footer_format.h"

#include "engine/base/assert.h"
#include "engine/base/coding.h"
#include "engine/base/site.h"

namespace partita {

namespace {

void AppendHandle(std::string* out, const PartHandle& handle) {
  AppendLe64(out, handle.offset);
  AppendLe32(out, handle.stored_size);
  AppendLe32(out, handle.content_size);
}

PartHandle ReadHandle(ByteReader* reader) {
  PartHandle handle;
  handle.offset = reader->ReadLe64();
  handle.stored_size = reader->ReadLe32();
  handle.content_size = reader->ReadLe32();
  return handle;
}

// Absent parts (a filter that could not be built) are all zero.
bool WithinFile(const PartHandle& handle, uint64_t limit) {
  return handle.stored_size <= limit && handle.offset <= limit - handle.stored_size &&
         handle.content_size <= kPartContentMax;
}

}  // namespace

void AppendFooter(std::string* out, const Footer& footer, StoreId store, ObjectId object) {
  const size_t start = out->size();
  AppendHandle(out, footer.top_index);
  AppendHandle(out, footer.properties);
  AppendHandle(out, footer.key_filter);
  AppendHandle(out, footer.partition_filter);
  AppendLe64(out, footer.index_begin);
  AppendLe64(out, footer.index_end);
  AppendLe64(out, footer.entry_count);
  AppendLe64(out, footer.tombstone_count);
  AppendLe64(out, footer.version_max.value);
  AppendLe64(out, footer.file_size);
  AppendLe16(out, kTableFormat);
  AppendLe16(out, 0);
  AppendLe32(out, kTableMagic);
  const Identity identity = PartIdentity(store, object, footer.file_size - kFooterSize, SealKind::kFooter);
  AppendLe64(out, Seal(std::string_view(*out).substr(start), identity));
  PARTITA_ASSERT(out->size() - start == kFooterSize);
}

Status DecodeFooter(std::string_view bytes, uint64_t file_size, StoreId store, ObjectId object,
                    Footer* footer) {
  PARTITA_ASSERT(bytes.size() == kFooterSize);
  const Identity identity = PartIdentity(store, object, file_size - kFooterSize, SealKind::kFooter);
  const std::string_view sealed = bytes.substr(0, kFooterSize - 8);
  if (SiteIsOn("table.footer.check") &&
      !SealMatches(sealed, identity, LoadLe64(bytes.data() + sealed.size()))) {
    const bool magic = LoadLe32(bytes.data() + 116) == kTableMagic;
    return Status::Corruption(magic
                                  ? "footer with a bad seal (damaged, or the file of another store or place)"
                                  : "no footer where one was expected (truncated, or not a table file)");
  }
  ByteReader reader(sealed);
  footer->top_index = ReadHandle(&reader);
  footer->properties = ReadHandle(&reader);
  footer->key_filter = ReadHandle(&reader);
  footer->partition_filter = ReadHandle(&reader);
  footer->index_begin = reader.ReadLe64();
  footer->index_end = reader.ReadLe64();
  footer->entry_count = reader.ReadLe64();
  footer->tombstone_count = reader.ReadLe64();
  footer->version_max = Version(reader.ReadLe64());
  footer->file_size = reader.ReadLe64();
  const uint16_t format = reader.ReadLe16();
  const uint16_t reserved = reader.ReadLe16();
  if (reader.ReadLe32() != kTableMagic) return Status::Corruption("footer without the table magic");
  if (format < kTableFormatMin || format > kTableFormat) {
    return Status::Unsupported("table format " + std::to_string(format) + ", this program reads " +
                               std::to_string(kTableFormatMin) + " to " + std::to_string(kTableFormat));
  }
  const uint64_t limit = file_size - kFooterSize;
  if (reserved != 0 || footer->file_size != file_size || !WithinFile(footer->top_index, limit) ||
      !WithinFile(footer->properties, limit) || !WithinFile(footer->key_filter, limit) ||
      !WithinFile(footer->partition_filter, limit) || footer->index_begin > footer->index_end ||
      footer->index_end > limit) {
    return Status::Corruption("footer whose parts do not lie within the file");
  }
  // Nothing else tells the two from each other.
  if (footer->partition_filter.stored_size > 0 && footer->key_filter.offset > footer->partition_filter.offset)
    return Status::Corruption("footer whose filters are not in their order");
  return Status();
}

}  // namespace partita
