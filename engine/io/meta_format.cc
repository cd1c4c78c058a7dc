#include "engine/io/meta_format.h"

#include "engine/base/assert.h"
#include "engine/base/checksum.h"
#include "engine/base/coding.h"
#include "engine/base/site.h"

namespace partita {

namespace {

constexpr size_t kSealOffset = 32;
constexpr size_t kSealSize = 8;
static_assert(kSealOffset + kSealSize == kMetaHeaderSize);

uint64_t SealOf(std::string_view key, StoreId store, uint64_t generation, std::string_view header,
                std::string_view value) {
  StreamHash hash;
  hash.Update(header);
  hash.Update(value);
  const Identity identity{store, Hash64(key), 0, SealKind::kMeta, generation};
  return hash.Digest() ^ identity.Mix();
}

Status Bad(std::string_view name, size_t offset, std::string_view what) {
  std::string message = "\"" + std::string(name) + "\", offset " + std::to_string(offset) + ": ";
  return Status::Corruption(message.append(what).append(" (F41)"));
}

Status BadNumber(std::string_view name, size_t offset, const char* field, uint64_t found, uint64_t expected) {
  return Bad(name, offset,
             std::string(field) + " is " + std::to_string(found) + ", expected " + std::to_string(expected));
}

}  // namespace

std::string EncodeMeta(std::string_view key, StoreId store, uint64_t generation, std::string_view value) {
  PARTITA_ASSERT(store.value != 0);
  PARTITA_ASSERT(generation != 0);
  PARTITA_ASSERT(value.size() <= kMetaValueSizeMax);
  std::string file;
  file.reserve(kMetaHeaderSize + value.size());
  AppendLe32(&file, kMetaMagic);
  AppendLe16(&file, kMetaFormat);
  AppendLe16(&file, 0);
  AppendLe64(&file, store.value);
  AppendLe64(&file, generation);
  AppendLe64(&file, value.size());
  PARTITA_ASSERT(file.size() == kSealOffset);
  AppendLe64(&file, SealOf(key, store, generation, file, value));
  file.append(value);
  return file;
}

Result<MetaRecord> DecodeMeta(std::string_view key, std::string_view name, std::string_view file) {
  if (file.size() < kMetaHeaderSize) {
    return Bad(name, file.size(),
               "the file ends inside its header of " + std::to_string(kMetaHeaderSize) + " bytes");
  }
  ByteReader reader(file);
  const uint32_t magic = reader.ReadLe32();
  const uint16_t format = reader.ReadLe16();
  const uint16_t reserved = reader.ReadLe16();
  const StoreId store{reader.ReadLe64()};
  const uint64_t generation = reader.ReadLe64();
  const uint64_t length = reader.ReadLe64();
  const uint64_t seal = reader.ReadLe64();
  const std::string_view value = reader.ReadRaw(reader.remaining());

  if (magic != kMetaMagic) return Bad(name, 0, "no magic \"PMTA\": not a meta value");
  if (format > kMetaFormat) {
    return Status::Unsupported("\"" + std::string(name) + "\" has format " + std::to_string(format) +
                               ", this version reads up to " + std::to_string(kMetaFormat) +
                               ": a newer version wrote it (F66)");
  }
  if (format == 0) return BadNumber(name, 4, "format", format, kMetaFormat);
  if (reserved != 0) return BadNumber(name, 6, "reserved field", reserved, 0);
  if (store.value == 0) return Bad(name, 8, "store id is 0");
  if (generation == 0) return Bad(name, 16, "generation is 0");
  if (length != value.size()) return BadNumber(name, 24, "length", length, value.size());
  const uint64_t expected = SealOf(key, store, generation, file.substr(0, kSealOffset), value);
  if (SiteIsOn("meta.check") && seal != expected) {
    return Bad(name, kSealOffset,
               "the seal does not match: damaged bytes, or another key's or generation's value");
  }
  return MetaRecord{store, MetaValue{std::string(value), generation}};
}

}  // namespace partita
