#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "test/power/load.h"

namespace partita {

// All notes of a recording, and so what a store must hold after a loss of power at any moment of it.
class Ledger {
 public:
  void Add(const Note& note);

  using Numbers = std::array<uint32_t, kWriters>;
  // What each writer may find in a store: at least, at most.
  struct Bounds {
    Numbers at_least{}, at_most{};
  };
  // After a loss of power at `cut`, and after the death of the process alone.
  Bounds BoundsAt(uint64_t cut) const;
  Bounds BoundsNow() const { return {acknowledged_, begun_}; }

  uint64_t refused() const { return refused_; }
  uint64_t given_up() const { return given_up_; }
  uint64_t transactions() const { return transactions_; }  // Acknowledged ones.
  uint64_t backups() const { return backups_; }            // Complete ones.

  // Something had been acknowledged at level power when the disk had `cut` entries: there is a store.
  bool StoreExists(uint64_t cut) const;

  // "" if the store holds what it must after a loss of power at `cut`, else what is wrong.
  std::string Check(Store& store, uint64_t cut) const;

  // The keeper's backups that a loss of power at `cut` may have left; those it must have left.
  struct Backup {
    uint32_t number = 0;
    bool must = false;
  };
  std::vector<Backup> BackupsAt(uint64_t cut) const;
  // "" if a store made of that backup holds what had been acknowledged when it began, and nothing from after
  // it.
  std::string CheckBackup(Store& store, uint32_t number) const;

  // Of a store on a disk that fails to read: each partition holds what it must or is refused, which is
  // counted.
  std::string CheckWhatIsRead(Store& store, uint64_t cut, uint64_t* refused) const;

  Status Save(const std::string& path) const;
  static Result<Ledger> Load(const std::string& path);

 private:
  std::string CheckPartition(const PartitionState& state, const Bounds& bounds, uint32_t writer) const;
  std::string CheckOrder(const Numbers& found, uint64_t cut) const;
  std::string CheckKeeperTables(const Store& store, uint64_t cut) const;

  std::vector<Note> notes_;
  Numbers acknowledged_{}, begun_{};
  uint64_t refused_ = 0, given_up_ = 0, transactions_ = 0, backups_ = 0;
};

}  // namespace partita
