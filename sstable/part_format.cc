#include "sstable/part_format.h"

#include <lz4.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <climits>
#include <cstdio>

#include "engine/base/assert.h"
#include "engine/base/coding.h"
#include "engine/base/site.h"

namespace partita {

namespace {

constinit thread_local bool has_ended = false;

// A decompressor is some 95 KiB and costs more to make than to use. Null: there is no memory for one, or this
// thread has ended, but for what else of it ends later.
ZSTD_DCtx* DecompressorOfThisThread() {
  struct Holder {
    ZSTD_DCtx* context = ZSTD_createDCtx();
    ~Holder() {
      ZSTD_freeDCtx(context);
      has_ended = true;
    }
  };
  thread_local Holder holder;
  return has_ended ? nullptr : holder.context;
}

}  // namespace

std::string_view PartEncoder::Encode(SealKind kind, std::string_view content) {
  PARTITA_ASSERT(!content.empty());
  PARTITA_ASSERT(content.size() <= kPartContentMax);
  static_assert(kPartContentMax <= LZ4_MAX_INPUT_SIZE);
  Codec codec = Codec::kStored;
  size_t payload_size = content.size();
  if (codec_ == Codec::kLz4) {
    const int size = static_cast<int>(content.size()), room = LZ4_compressBound(size);
    part_.resize(kPartHeaderSize + static_cast<size_t>(room));
    const int made = LZ4_compress_default(content.data(), part_.data() + kPartHeaderSize, size, room);
    PARTITA_ASSERT(made > 0);  // There is room for any content.
    // Gains below 12 % do not pay for decompressing at every read.
    if (static_cast<size_t>(made) < content.size() - content.size() / 8) {
      codec = codec_;
      payload_size = static_cast<size_t>(made);
    }
  }
  part_.resize(kPartHeaderSize + payload_size);
  if (codec == Codec::kStored) content.copy(part_.data() + kPartHeaderSize, content.size());
  StoreLe64(part_.data(), 0);
  StoreLe32(part_.data() + 8, static_cast<uint32_t>(part_.size()));
  StoreLe32(part_.data() + 12, static_cast<uint32_t>(content.size()));
  StoreLe32(part_.data() + 16, 0);
  part_[20] = static_cast<char>(kPartFormat);
  part_[21] = static_cast<char>(kind);
  part_[22] = static_cast<char>(codec);
  part_[23] = 0;
  return std::string_view(part_);
}

Status CheckPart(std::string_view part, const PartHandle& handle, const Identity& identity) {
  if (part.size() < kPartHeaderSize || part.size() != handle.stored_size) {
    return Status::Corruption("part of " + std::to_string(part.size()) + " bytes, expected " +
                              std::to_string(handle.stored_size));
  }
  const uint64_t seal = LoadLe64(part.data());
  const uint64_t expected = PartContentHash(part) ^ identity.Mix();
  if (SiteIsOn("table.part.check") && seal != expected) {
    char text[96];
    std::snprintf(text, sizeof text, "bad seal: found %016llx, expected %016llx",
                  static_cast<unsigned long long>(seal), static_cast<unsigned long long>(expected));
    return Status::Corruption(text);
  }
  if (static_cast<uint8_t>(part[20]) != kPartFormat) {
    return Status::Unsupported("part format " + std::to_string(static_cast<uint8_t>(part[20])) +
                               ", this program reads " + std::to_string(kPartFormat));
  }
  if (LoadLe32(part.data() + 16) != 0 || static_cast<uint8_t>(part[22]) > static_cast<uint8_t>(Codec::kLz4)) {
    return Status::Unsupported("part with an unknown codec or dictionary");
  }
  if (LoadLe32(part.data() + 8) != handle.stored_size || LoadLe32(part.data() + 12) != handle.content_size) {
    return Status::Corruption("part whose sizes differ from its reference");
  }
  if (static_cast<uint8_t>(part[21]) != static_cast<uint8_t>(identity.kind) || part[23] != 0) {
    return Status::Corruption("part of kind " + std::to_string(static_cast<uint8_t>(part[21])) +
                              ", expected " + std::to_string(static_cast<int>(identity.kind)));
  }
  if (handle.content_size == 0 || handle.content_size > kPartContentMax) {
    return Status::Corruption("part whose content has " + std::to_string(handle.content_size) + " bytes");
  }
  return Status();
}

namespace {

Status DecodeZstd(std::string_view payload, uint8_t* content, size_t content_size) {
  ZSTD_DCtx* context = DecompressorOfThisThread();
  const size_t size =
      context == nullptr
          ? ZSTD_decompress(content, content_size, payload.data(), payload.size())
          : ZSTD_decompressDCtx(context, content, content_size, payload.data(), payload.size());
  if (ZSTD_getErrorCode(size) == ZSTD_error_memory_allocation)
    return Status::ResourceExhausted("no memory for a zstd decompressor");
  if (ZSTD_isError(size)) return Status::Corruption(std::string("zstd: ") + ZSTD_getErrorName(size));
  if (size != content_size) return Status::Corruption("part that decompresses to another size");
  return Status();
}

}  // namespace

Status DecodePart(std::string_view part, uint8_t* content) {
  const size_t content_size = LoadLe32(part.data() + 12);
  const std::string_view payload = part.substr(kPartHeaderSize);
  switch (static_cast<Codec>(part[22])) {
    case Codec::kStored:
      if (payload.size() != content_size)
        return Status::Corruption("stored part of another size than its content");
      payload.copy(reinterpret_cast<char*>(content), payload.size());
      return Status();
    case Codec::kZstd:
      return DecodeZstd(payload, content, content_size);
    case Codec::kLz4:
      break;
  }
  // The writer stores what does not shrink, so both sizes fit an int from here on.
  static_assert(kPartContentMax <= INT_MAX);
  if (payload.size() >= content_size) return Status::Corruption("lz4: the part is larger than its content");
  const int made = LZ4_decompress_safe(payload.data(), reinterpret_cast<char*>(content),
                                       static_cast<int>(payload.size()), static_cast<int>(content_size));
  if (made < 0 || static_cast<size_t>(made) != content_size)
    return Status::Corruption("lz4: the part does not decompress to its size");
  return Status();
}

bool DecodeFront(std::string_view part, size_t size, uint8_t* content) {
  const auto codec = static_cast<Codec>(part[22]);
  const size_t content_size = LoadLe32(part.data() + 12);
  const std::string_view payload = part.substr(kPartHeaderSize);
  if (codec == Codec::kStored && payload.size() == content_size)
    return payload.copy(reinterpret_cast<char*>(content), size) == size;
  if (codec != Codec::kLz4 || payload.size() >= content_size) return false;
  const int made = LZ4_decompress_safe_partial(payload.data(), reinterpret_cast<char*>(content),
                                               static_cast<int>(payload.size()), static_cast<int>(size),
                                               static_cast<int>(size));
  return made == static_cast<int>(size);
}

}  // namespace partita
