#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/continuation.h"
#include "engine/batch_record.h"
#include "engine/catalog.h"
#include "engine/io/meta_format.h"
#include "engine/manifest.h"

// What is read below a seal (catalog, manifest, batch records) and what a client brings
// (continuations): no bytes crash, hang or eat memory (F77), and what was read is written the same.

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void ReadBatch(std::string_view bytes) {
  partita::Result<partita::BatchRecordReader> reader = partita::BatchRecordReader::Open(bytes);
  if (!reader.ok()) return;
  Require(reader->header().operations <= bytes.size());
  partita::Entry entry;
  size_t total = 0;
  while (reader->Next(&entry)) total += entry.user_key.size() + entry.value.size();
  Require(total <= bytes.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (partita::Result<partita::Catalog> catalog = partita::DecodeCatalog(bytes); catalog.ok()) {
    Require(partita::DecodeCatalog(partita::EncodeCatalog(*catalog)).ok());
  }
  if (partita::Result<partita::Manifest> manifest = partita::DecodeManifest(bytes); manifest.ok()) {
    Require(partita::DecodeManifest(partita::EncodeManifest(*manifest)).ok());
  }
  if (partita::DecodeMeta("catalog", "meta/catalog", bytes).ok()) Require(size > 0);
  ReadBatch(bytes);
  if (partita::Result<partita::Continuation> from = partita::DecodeContinuation(bytes); from.ok()) {
    Require(partita::DecodeContinuation(partita::EncodeContinuation(*from)).ok());
  }
  return 0;
}
