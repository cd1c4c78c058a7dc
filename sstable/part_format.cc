#include "sstable/part_format.h"

// For ZSTD_c_literalCompressionMode: a number that a later library may refuse, or take for something else.
// What it makes can be read whatever it does.
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include <cstdio>

#include "engine/base/assert.h"
#include "engine/base/coding.h"
#include "engine/base/site.h"

namespace partita {

namespace {

// At level 1 zstd looks for matches in every place, which is 2.2 of the 3.6 us that a KiB of bench/load's
// rows takes, while most of what is gained there is the shorter code for literals (numbers and binary data as
// text). Looking in two places of five they shrink 1.62 times instead of 1.68, in 2.5 us. Contents that
// shrink to less than half live by their matches, and would lose a tenth: they are looked through closely.
constexpr int kFastStep = 4;
constexpr size_t kShrinkToLookClosely = 2;
// What has been looked through closely decides for so many that follow, as the others do not say how they
// would have shrunk.
constexpr uint32_t kSteppedMax = 15;
// Smaller contents say nothing of those that follow, and to larger ones those in front say nothing, which are
// of other rows: they are always looked through closely.
constexpr size_t kSteppedSizeMin = 4 << 10;
constexpr size_t kSteppedSizeMax = 64 << 10;

ZSTD_DCtx* DecompressorOfThisThread() {
  // A decompressor is some 95 KiB and costs more to make than to use.
  struct Holder {
    ZSTD_DCtx* context = ZSTD_createDCtx();
    ~Holder() { ZSTD_freeDCtx(context); }
  };
  thread_local Holder holder;
  return holder.context;
}

}  // namespace

PartEncoder::PartEncoder(Compression compression) : compression_(compression) {
  if (compression_.codec != Codec::kZstd) return;
  context_ = ZSTD_createCCtx();
  if (context_ == nullptr) return;
  (void)ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, compression_.level);
  if (compression_.level != 1) return;
  // Else zstd would leave literals as they are whenever it steps faster.
  const size_t set = ZSTD_CCtx_setParameter(context_, ZSTD_c_literalCompressionMode, ZSTD_ps_enable);
  may_step_faster_ = ZSTD_isError(set) == 0;
}

PartEncoder::~PartEncoder() { ZSTD_freeCCtx(context_); }

// Into `room` bytes, which suffice for any content; returns zstd's result.
size_t PartEncoder::Compress(std::string_view content, char* to, size_t room) {
  const bool typical = content.size() >= kSteppedSizeMin && content.size() <= kSteppedSizeMax;
  const bool faster = typical && stepped_left_ > 0;
  if (faster != steps_faster_) {
    (void)ZSTD_CCtx_setParameter(context_, ZSTD_c_targetLength, faster ? kFastStep : 0);
    steps_faster_ = faster;
  }
  const size_t size = ZSTD_compress2(context_, to, room, content.data(), content.size());
  if (!typical || !may_step_faster_ || ZSTD_isError(size)) return size;
  if (faster) {
    --stepped_left_;
  } else {
    stepped_left_ = size > content.size() / kShrinkToLookClosely ? kSteppedMax : 0;
  }
  return size;
}

Result<std::string_view> PartEncoder::Encode(SealKind kind, std::string_view content) {
  PARTITA_ASSERT(!content.empty());
  PARTITA_ASSERT(content.size() <= kPartContentMax);
  Codec codec = Codec::kStored;
  size_t payload_size = content.size();
  if (compression_.codec == Codec::kZstd) {
    if (context_ == nullptr) return Status::ResourceExhausted("no memory for a zstd compressor");
    part_.resize(kPartHeaderSize + ZSTD_compressBound(content.size()));
    const size_t compressed =
        Compress(content, part_.data() + kPartHeaderSize, part_.size() - kPartHeaderSize);
    if (ZSTD_isError(compressed)) {
      return Status::ResourceExhausted(std::string("zstd: ") + ZSTD_getErrorName(compressed));
    }
    // Gains below 12 % do not pay for decompressing at every read.
    if (compressed < content.size() - content.size() / 8) {
      codec = Codec::kZstd;
      payload_size = compressed;
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
  if (LoadLe32(part.data() + 16) != 0 ||
      static_cast<uint8_t>(part[22]) > static_cast<uint8_t>(Codec::kZstd)) {
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

Status DecodePart(std::string_view part, uint8_t* content) {
  const size_t content_size = LoadLe32(part.data() + 12);
  std::string_view payload = part.substr(kPartHeaderSize);
  if (static_cast<Codec>(part[22]) == Codec::kStored) {
    if (payload.size() != content_size)
      return Status::Corruption("stored part of another size than its content");
    payload.copy(reinterpret_cast<char*>(content), payload.size());
    return Status();
  }
  ZSTD_DCtx* context = DecompressorOfThisThread();
  if (context == nullptr) return Status::ResourceExhausted("no memory for a zstd decompressor");
  size_t size = ZSTD_decompressDCtx(context, content, content_size, payload.data(), payload.size());
  if (ZSTD_isError(size)) return Status::Corruption(std::string("zstd: ") + ZSTD_getErrorName(size));
  if (size != content_size) return Status::Corruption("part that decompresses to another size");
  return Status();
}

}  // namespace partita
