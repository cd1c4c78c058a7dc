#include <algorithm>
#include <atomic>
#include <string>

#include "engine/base/deleted_keys.h"
#include "engine/base/executor.h"
#include "engine/base/site.h"
#include "engine/base/stored_value.h"
#include "sstable/index_record.h"
#include "sstable/table_reader.h"

// Verification of one table, in two walks:
// 1. The parts that stand alone: footer, properties, top index, filters, index blocks; all read past
//    every cache again, although Open has seen most of them. They lie at the end of the file, together.
// 2. All data blocks through a bypassing iterator, which proves each block's seal and inner order;
//    here come what lies between blocks, the index's claims, the filters, and the sums.

namespace partita {

namespace {

// Indexes and filters of a table of 32 MiB have less; of larger ones the rest is read part by part.
constexpr uint64_t kTailMax = 1u << 20;

}  // namespace

class TableVerifier {
 public:
  TableVerifier(const TableReader& table, TableVerifyReport* report, BlockTaker* warm,
                ReadAheadPool* read_ahead, const std::atomic<bool>* cancel)
      : table_(table), report_(*report), warm_(warm), read_ahead_(read_ahead), cancel_(cancel) {}

  Task<Status> Run() {
    const uint64_t tail_size = table_.object_->size() - table_.footer_.index_begin;
    tail_ = co_await table_.ReadTail(std::min(tail_size, kTailMax), ReadCaching::kPastCaches);
    PARTITA_CO_TRY(co_await VerifyFooter());
    PARTITA_CO_TRY(co_await VerifyPart(table_.footer_.properties, SealKind::kProperties));
    PARTITA_CO_TRY(co_await VerifyPart(table_.footer_.top_index, SealKind::kIndexBlock));
    for (PartHandle filter : {table_.footer_.key_filter, table_.footer_.partition_filter}) {
      if (filter.stored_size > 0) PARTITA_CO_TRY(co_await VerifyPart(filter, SealKind::kFilterBlock));
    }
    for (uint32_t i = 0; i < table_.top_index_.size(); ++i) {
      const PartHandle handle = IndexRecordHandle(table_.top_index_.value(i));
      PARTITA_CO_TRY(co_await VerifyIndexBlock(handle, i));
    }
    tail_ = TableReader::Tail();
    PARTITA_CO_TRY(co_await VerifyEntries());
    report_.bytes_read = table_.object_->size();  // The data blocks were read with their entries.
    co_return VerifySums();
  }

 private:
  Status CheckFooter() const {
    PARTITA_TRY(tail_.read);
    const std::string_view bytes = tail_.Bytes(FooterOffset(), kFooterSize);
    Footer footer;
    PARTITA_TRY(DecodeFooter(bytes, table_.object_->size(), table_.store_, table_.object_->id(), &footer));
    return footer == table_.footer_ ? Status() : Status::Corruption("footer differs from the one opened");
  }

  // Where it is bad, or one page of the tail was, its page is read again, alone; what is not there then is
  // read part by part.
  Task<Status> VerifyFooter() {
    const bool was_read = tail_.read.ok();
    report_.bytes_read += kPageSize;
    Status status = CheckFooter();
    if (status.ok()) co_return status;
    tail_ = co_await table_.ReadTail(kPageSize, ReadCaching::kPastCaches);
    status = CheckFooter();
    ReadFaults& faults = table_.cache_.faults();
    if (status.ok() && was_read) faults.transient.fetch_add(1);
    if (status.ok()) co_return status;
    if (status.code() == Code::kCorruption || status.code() == Code::kIoError)
      faults.damaged_parts.fetch_add(1);
    co_return table_.Damaged(status, FooterOffset(), SealKind::kFooter);
  }
  uint64_t FooterOffset() const { return table_.object_->size() - kFooterSize; }

  // What was not good at first may have been transient (F52).
  Task<Result<TableReader::StoredPart>> ReadAgain(PartHandle handle, SealKind kind, Code first) {
    const bool was_bad = first == Code::kCorruption || first == Code::kIoError;
    return table_.ReadPart(handle, kind, nullptr, nullptr, was_bad);
  }

  Task<Status> VerifyPart(PartHandle handle, SealKind kind) {
    Result<TableReader::StoredPart> part =
        co_await table_.ReadPartOnce(handle, kind, ReadCaching::kPastCaches, nullptr, &tail_);
    report_.bytes_read += handle.stored_size;
    if (!part.ok()) part = co_await ReadAgain(handle, kind, part.code());
    co_return part.status();
  }

  Task<Status> VerifyIndexBlock(PartHandle handle, uint32_t top_at) {
    Result<TableReader::StoredPart> part = co_await table_.ReadPartOnce(
        handle, SealKind::kIndexBlock, ReadCaching::kPastCaches, nullptr, &tail_);
    report_.bytes_read += handle.stored_size;
    if (!part.ok()) part = co_await ReadAgain(handle, SealKind::kIndexBlock, part.code());
    if (!part.ok()) co_return part.status();
    std::string content(handle.content_size, '\0');
    Status status = DecodePart(part->bytes, reinterpret_cast<uint8_t*>(content.data()));
    if (status.ok()) status = TableReader::ValidateIndex(content, table_.DataBlocks());
    if (status.ok()) {
      const DataBlock index(content);
      if (index.Key(index.size() - 1) != table_.top_index_.Key(top_at)) {
        status = Status::Corruption("last fence differs from the top index");
      }
      for (uint32_t i = 0; status.ok() && i < index.size(); ++i) {
        status = IndexRecordZones(index.value(i)).status();
      }
    }
    if (!status.ok()) co_return table_.Damaged(status, handle.offset, SealKind::kIndexBlock);
    ++report_.index_blocks;
    co_return Status();
  }

  Task<Status> VerifyEntries() {
    std::unique_ptr<TableIterator> it = table_.NewIterator(
        Direction::kForward,
        {.caching = IterCaching::kBypass, .lower = "", .upper = "", .read_ahead = read_ahead_});
    IterState state = it->SeekToFirst();
    while (true) {
      if (state == IterState::kNeedsIo) {
        PARTITA_CO_TRY(co_await it->Fetch());
        state = it->state();
        continue;
      }
      if (warm_ != nullptr && (state == IterState::kEnd || warm_->IsFull())) co_await warm_->Put();
      if (state == IterState::kEnd) co_return VerifyKeySum();
      if (it->AtBlockStart()) {
        PARTITA_CO_TRY(VerifyKeySum());
        const BlockSummary& block = it->CurrentBlock();
        place_ = table_.name() + ", offset " + std::to_string(it->block_key().offset) + ": ";
        PARTITA_CO_TRY(VerifyBlock(block));
        if (warm_ != nullptr && warm_->Wants(block.entry_count)) warm_->Take(*it);
      }
      PARTITA_CO_TRY(VerifyEntry(it->entry()));
      state = it->Next();
      if ((report_.entries & 255) != 0) continue;
      if (cancel_ != nullptr && cancel_->load(std::memory_order_relaxed))
        co_return Status::Cancelled("verification cancelled");
      co_await YieldIfDue();
    }
  }

  Status VerifyBlock(const BlockSummary& block) {
    ++report_.data_blocks;
    const bool first = report_.data_blocks == 1;
    if (!first && block.first_key <= fence_)
      return Status::Corruption(place_ + "a block begins below the fence before it");
    if (block.last_key > block.fence) return Status::Corruption(place_ + "a block reaches above its fence");
    if (first && block.first_key != table_.info().smallest)
      return Status::Corruption(place_ + "first key is not the smallest");
    fence_ = block.fence;
    last_key_ = block.last_key;
    return VerifyRecord(block);
  }

  // Scans pass over blocks by what the index says of them.
  Status VerifyRecord(const BlockSummary& block) {
    const ZoneMapView zones = IndexRecordZoneView(block.index_record);
    if (IndexRecordEntryCount(block.index_record) != block.entry_count || !zones.valid() ||
        zones.tombstones() != block.tombstone_count || zones.version_min() != block.version_min ||
        zones.version_max() != block.version_max) {
      return Status::Corruption(place_ + "the index contradicts a block");
    }
    key_sum_expected_ = IndexRecordKeySum(block.index_record);
    key_sum_ = 0;
    return Status();
  }

  // Of the block that ends.
  Status VerifyKeySum() const {
    if (!key_sum_expected_ || *key_sum_expected_ == key_sum_) return Status();
    return Status::Corruption(place_ + "the index has another sum of a block's keys");
  }

  Status VerifyEntry(const Entry& entry) {
    ++report_.entries;
    if (entry.kind == EntryKind::kTombstone) ++report_.tombstones;
    version_max_ = std::max(version_max_, entry.version);
    if (SiteIsOn("table.verify.value_check") && !StoredValueIntact(entry))
      return Status::Corruption(place_ + "a stored value fails its checksum (F51)");
    if (entry.user_key != entry_key_) {
      entry_key_.assign(entry.user_key);
      key_sum_ += KeySumTerm(entry_key_, key_sum_seed_);
    }
    const std::string_view partition = PartitionPrefixOrAll(entry.user_key);
    KeyHash hash;
    hash.key = Hash64(entry.user_key);
    bool denied = !table_.MayContainKey(hash);
    if (partition != partition_) {
      partition_ = partition;
      hash.partition = HashPartitionPrefix(partition);
      denied = denied || !table_.MayContainPartition(hash);
    }
    if (denied) return Status::Corruption(place_ + "a filter denies a key that the file holds (F45)");
    return Status();
  }

  Status VerifySums() const {
    const Footer& footer = table_.footer_;
    if (report_.entries != footer.entry_count || report_.tombstones != footer.tombstone_count) {
      return Status::Corruption(table_.name() + ": holds " + std::to_string(report_.entries) +
                                " entries, the footer says " + std::to_string(footer.entry_count) + " (F47)");
    }
    if (version_max_ > footer.version_max || last_key_ != table_.info().largest ||
        report_.data_blocks != table_.properties_.data_blocks ||
        report_.index_blocks != table_.properties_.index_blocks) {
      return Status::Corruption(table_.name() + ": properties that contradict the entries");
    }
    return Status();
  }

  const TableReader& table_;
  TableVerifyReport& report_;
  BlockTaker* warm_;
  ReadAheadPool* read_ahead_;
  const std::atomic<bool>* cancel_;
  TableReader::Tail tail_;
  std::string fence_;
  std::string last_key_;
  const uint64_t key_sum_seed_ = KeySumSeed(table_.store_);
  std::optional<uint64_t> key_sum_expected_;  // Of the block at hand; nothing where the index has none.
  uint64_t key_sum_ = 0;                      // Of its keys so far.
  std::string entry_key_;                     // Of the last entry.
  std::string partition_;                     // The same.
  std::string place_;                         // Of the block at hand, as messages begin.
  Version version_max_;
};

Task<Status> TableReader::Verify(TableVerifyReport* report, BlockTaker* warm, ReadAheadPool* read_ahead,
                                 const std::atomic<bool>* cancel) const {
  *report = TableVerifyReport();
  TableVerifier verifier(*this, report, warm, read_ahead, cancel);
  co_return co_await verifier.Run();
}

}  // namespace partita
