// What operations do to a SimDisk: the part of SimDevice that knows no time.
#include <algorithm>

#include "engine/base/assert.h"
#include "engine/io/sim_device.h"

namespace partita {

bool SimDevice::Apply(SimOperation& operation) {
  if (operation.faulty && operation.effect == SimEffect::kSlow) operation.value = 0;
  if (operation.faulty && operation.effect == SimEffect::kError) {
    ApplyFault(operation);
    return true;
  }
  const bool lost = operation.faulty && operation.effect == SimEffect::kLost;
  switch (operation.op) {
    case SimOp::kRead:
    case SimOp::kWrite:
      return ApplyTransfer(operation);
    case SimOp::kFlush:
      // Covers what had ended when it began, no more.
      if (!lost) operation.inode->Flush(operation.covered);
      return true;
    case SimOp::kFlushDirectory:
      if (!disk_.names_.HasDirectory(operation.path)) {
        operation.status = Failure(operation, Code::kNotFound, "no such directory");
      } else if (!lost) {
        disk_.names_.Flush(operation.path, operation.covered);
      }
      return true;
    case SimOp::kSize:
      operation.value = operation.inode->size();
      return true;
    case SimOp::kDropCache:
      operation.inode->DropCache();
      return true;
    case SimOp::kList:
      List(operation);
      return true;
    case SimOp::kExists:
      operation.value =
          disk_.names_.Find(operation.path) != nullptr || disk_.names_.HasDirectory(operation.path) ? 1 : 0;
      return true;
    case SimOp::kFreeBytes:
      operation.value = disk_.free_bytes();
      return true;
    case SimOp::kLock:
      ApplyLock(operation);
      return true;
    default:
      ApplyNames(operation);
      return true;
  }
}

// The value is who stands in the way, or 0.
void SimDevice::ApplyLock(SimOperation& operation) {
  const bool shared = operation.mode == OpenMode::kRead;
  operation.value = disk_.lock_holder_;
  if (operation.value == 0 && !shared && !disk_.lock_readers_.empty()) {
    operation.value = *disk_.lock_readers_.begin();
  }
  if (operation.value != 0) return;
  if (shared) {
    disk_.lock_readers_.insert(process_);
  } else {
    disk_.lock_holder_ = process_;
  }
}

bool SimDevice::ApplyTransfer(SimOperation& operation) {
  const bool is_write = operation.op == SimOp::kWrite;
  const bool misplaced = operation.faulty && operation.effect == SimEffect::kMisplaced;
  const bool lost = operation.faulty && operation.effect == SimEffect::kLost;
  if (misplaced || lost) {
    disk_.lacking_.emplace(operation.path);
    // The device loses bytes; the file system keeps the length that it has given the file.
    const uint64_t end = operation.offset + operation.size;
    if (end > operation.inode->size() && end <= kSimFileSizeMax)
      operation.inode->Truncate(end, ++disk_.sequence_);
  }
  if (lost) return true;
  if (misplaced) {
    WriteMisplaced(operation);
    return true;
  }
  if (operation.faulty && operation.effect == SimEffect::kRot && operation.done == 0) RotStored(operation);

  const bool by_reads = !is_write && operation.reads.size() > 1;
  const uint64_t total = by_reads ? operation.reads.size() : operation.size;
  uint64_t end = total;
  if (--operation.pieces_left > 0) {
    end = scheduler_.random().Between(operation.done, total);
    if (operation.direct && !by_reads) end = AlignDown(end, kSimSectorSize);
  }
  if (is_write) {
    if (end > operation.done) WritePart(operation, operation.done, end);
  } else if (by_reads) {
    for (uint64_t i = operation.done; i < end; ++i) {
      const FileRead& read = operation.reads[i];
      const size_t count = operation.inode->Read(read.offset, read.buffer);
      operation.value += count;
      if (count < read.buffer.size())
        operation.status = Failure(operation, Code::kIoError, "read past the end");
    }
  } else {
    ReadPart(operation, operation.done, end);
  }
  operation.done = std::max(operation.done, end);
  if (operation.done < total && operation.status.ok()) return false;
  if (operation.faulty && operation.effect == SimEffect::kRotOnce) RotAnswer(operation);
  return true;
}

void SimDevice::ReadPart(SimOperation& operation, uint64_t begin, uint64_t end) {
  if (operation.reads.empty()) return;
  const FileRead& read = operation.reads[0];
  const size_t count = operation.inode->Read(read.offset + begin, read.buffer.subspan(begin, end - begin));
  operation.value += count;
  if (operation.exact && count < end - begin) {
    operation.status = Failure(operation, Code::kIoError, "read past the end");
  }
}

void SimDevice::WritePart(SimOperation& operation, uint64_t begin, uint64_t end) {
  SimInode& inode = *operation.inode;
  if (operation.offset + end > kSimFileSizeMax) {
    operation.status = Failure(operation, Code::kIoError, "beyond the largest file size");
    return;
  }
  const auto fits = [&] {
    return end <= begin ||
           inode.PagesToAllocate(operation.offset + begin, end - begin) * kPageSize <= disk_.free_bytes();
  };
  if (!fits()) {
    operation.status = Failure(operation, Code::kNoSpace, "no space left");
    // As much as there is room for has been written when a write fails so.
    while (!fits()) {
      const uint64_t cut = AlignDown(operation.offset + end - 1, kPageSize);
      end = cut > operation.offset + begin ? cut - operation.offset : begin;
    }
    if (end == begin) return;
  }
  inode.Write(operation.offset + begin, operation.bytes.subspan(begin, end - begin), ++disk_.sequence_);
}

// An operation that answers with an error, and what it may have done all the same.
void SimDevice::ApplyFault(SimOperation& operation) {
  SimRandom& random = scheduler_.random();
  if (operation.op == SimOp::kWrite && random.Chance(0.5)) {
    uint64_t end = random.Chance(0.5) ? operation.size : random.Below(operation.size + 1);
    if (operation.direct) end = AlignDown(end, kSimSectorSize);
    if (end > 0) WritePart(operation, 0, end);
  }
  if (operation.op == SimOp::kFlush) operation.inode->FailFlush(operation.covered, random);
  operation.status = Failure(operation, operation.fault_code, "injected fault");
}

void SimDevice::WriteMisplaced(SimOperation& operation) {
  SimRandom& random = scheduler_.random();
  SimInode* target = operation.inode;
  uint64_t offset = operation.offset;
  const auto& files = disk_.names_.files();
  if (files.size() > 1 && random.Chance(0.5)) {
    auto file = files.begin();
    std::advance(file, static_cast<ptrdiff_t>(random.Below(files.size())));
    if (file->second.get() != operation.inode && file->second->size() > 0) target = file->second.get();
  }
  if (target == operation.inode) {
    // Another page of the same file, itself excluded.
    const uint64_t pages = AlignUp(target->size(), kPageSize) / kPageSize + 1;
    const uint64_t page = offset / kPageSize;
    const uint64_t shift = pages > 1 ? 1 + random.Below(pages - 1) : 1;
    offset = (page + shift) % std::max<uint64_t>(pages, 2) * kPageSize + offset % kPageSize;
    if (offset == operation.offset) offset += kPageSize;
  } else {
    offset = AlignDown(random.Below(target->size()), kPageSize);
  }
  // A drive that misdirects changes sectors, never a file's size.
  if (offset >= target->size()) return;
  const uint64_t count = std::min<uint64_t>(operation.bytes.size(), target->size() - offset);
  target->Write(offset, operation.bytes.first(count), ++disk_.sequence_);
  disk_.NoteStruck(target);
}

void SimDevice::RotStored(const SimOperation& operation) {
  SimRandom& random = scheduler_.random();
  const FileRead& read = operation.reads[random.Below(operation.reads.size())];
  if (read.offset >= operation.inode->size() || read.buffer.empty()) return;
  const uint64_t count = std::min<uint64_t>(read.buffer.size(), operation.inode->size() - read.offset);
  operation.inode->FlipBit(read.offset + random.Below(count), static_cast<uint32_t>(random.Below(8)));
  disk_.NoteStruck(operation.inode);
}

void SimDevice::RotAnswer(const SimOperation& operation) {
  SimRandom& random = scheduler_.random();
  const FileRead& read = operation.reads[random.Below(operation.reads.size())];
  if (read.offset >= operation.inode->size() || read.buffer.empty()) return;
  const uint64_t count = std::min<uint64_t>(read.buffer.size(), operation.inode->size() - read.offset);
  read.buffer[random.Below(count)] ^= static_cast<uint8_t>(1u << random.Below(8));
}

void SimDevice::ApplyNames(SimOperation& operation) {
  SimNames& names = disk_.names_;
  const auto need = [&](bool condition, Code code, std::string_view what) {
    if (!condition) operation.status = Failure(operation, code, what);
    return condition;
  };
  switch (operation.op) {
    case SimOp::kOpen:
      Open(operation);
      return;
    case SimOp::kTruncate:
      if (need(operation.size <= kSimFileSizeMax, Code::kIoError, "beyond the largest file size")) {
        operation.inode->Truncate(operation.size, ++disk_.sequence_);
      }
      return;
    case SimOp::kAllocate:
      if (need(operation.inode->PagesToAllocate(0, operation.size) * kPageSize <= disk_.free_bytes(),
               Code::kNoSpace, "no space left")) {
        operation.inode->SetAside(operation.size, ++disk_.sequence_);
      }
      return;
    case SimOp::kRemove:
      if (need(names.Find(operation.path) != nullptr, Code::kNotFound, "no such file")) {
        names.Remove(operation.path, ++disk_.sequence_);
      }
      return;
    case SimOp::kRename:
      Rename(operation);
      return;
    case SimOp::kLink:
      operation.opened = names.Find(operation.path);
      if (need(operation.opened != nullptr, Code::kNotFound, "no such file") &&
          need(names.HasDirectory(SimParentOf(operation.to)), Code::kNotFound, "no such directory") &&
          need(names.IsFree(operation.to), Code::kAlreadyExists, "exists")) {
        names.Link(operation.to, operation.opened, ++disk_.sequence_);
      }
      return;
    case SimOp::kCreateDirectory:
      if (names.HasDirectory(operation.path)) return;
      if (need(names.HasDirectory(SimParentOf(operation.path)), Code::kNotFound, "no such directory") &&
          need(names.Find(operation.path) == nullptr, Code::kAlreadyExists, "is a file")) {
        names.CreateDirectory(operation.path, ++disk_.sequence_);
      }
      return;
    default:
      PARTITA_ASSERT(false);  // Apply handles all others.
  }
}

void SimDevice::Rename(SimOperation& operation) {
  SimNames& names = disk_.names_;
  const bool is_directory = !operation.path.empty() && names.HasDirectory(operation.path);
  if (!is_directory && names.Find(operation.path) == nullptr) {
    operation.status = Failure(operation, Code::kNotFound, "no such file");
  } else if (!names.HasDirectory(SimParentOf(operation.to))) {
    operation.status = Failure(operation, Code::kNotFound, "no such directory");
  } else if (names.HasDirectory(operation.to)) {
    operation.status = Failure(operation, Code::kIoError, "is a directory");
  } else if (!is_directory) {
    names.Rename(operation.path, operation.to, ++disk_.sequence_);
  } else if (names.Find(operation.to) != nullptr) {
    operation.status = Failure(operation, Code::kIoError, "is no directory");
  } else {
    names.RenameDirectory(operation.path, operation.to, ++disk_.sequence_);
  }
}

void SimDevice::Open(SimOperation& operation) {
  SimNames& names = disk_.names_;
  operation.opened = names.Find(operation.path);
  const bool exists = operation.opened != nullptr;
  const bool creates = operation.mode == OpenMode::kCreate || operation.mode == OpenMode::kCreateOrOpen;
  if (exists && operation.mode == OpenMode::kCreate) {
    operation.status = Failure(operation, Code::kAlreadyExists, "exists");
  } else if (!exists && names.HasDirectory(operation.path)) {
    operation.status = Failure(operation, Code::kIoError, "is a directory");
  } else if (!exists && (!creates || !names.HasDirectory(SimParentOf(operation.path)))) {
    operation.status = Failure(operation, Code::kNotFound, creates ? "no such directory" : "no such file");
  } else if (!exists) {
    operation.opened = disk_.NewInode();
    names.Create(operation.path, operation.opened, ++disk_.sequence_);
  }
}

void SimDevice::List(SimOperation& operation) {
  if (!disk_.names_.HasDirectory(operation.path)) {
    operation.status = Failure(operation, Code::kNotFound, "no such directory");
    return;
  }
  const std::string prefix = operation.path.empty() ? std::string() : std::string(operation.path) + "/";
  const auto& files = disk_.names_.files();
  for (auto file = files.lower_bound(prefix); file != files.end() && file->first.starts_with(prefix);
       ++file) {
    const std::string_view name = std::string_view(file->first).substr(prefix.size());
    if (name.find('/') == std::string_view::npos) {
      operation.entries.push_back({std::string(name), file->second->size()});
    }
  }
}

}  // namespace partita
