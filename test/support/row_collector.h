#pragma once
#include "engine/shard.h"
#include "test/support/store_model.h"

namespace partita {

// Takes all rows of a scan.
class RowCollector final : public RowSink {
 public:
  explicit RowCollector(StoreModel::Rows* rows) : rows_(rows) {}
  Verdict Add(std::string_view user_key, Version version, std::string_view content) override {
    rows_->emplace(user_key, StoreModel::Row{version, std::string(content)});
    return Verdict::kTaken;
  }

 private:
  StoreModel::Rows* rows_;
};

}  // namespace partita
