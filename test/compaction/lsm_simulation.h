#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "compaction/pacing.h"
#include "compaction/picker.h"

namespace partita {

// Levels of made-up files (keys are numbers, entries 1 KiB), on which plans are carried out with
// real merging, one job at a time, while flushes go on. Knows what each reader must see, so a wrong
// plan shows as a wrong answer.
class LsmSimulation {
 public:
  static constexpr uint64_t kEntryBytes = 1024;
  static std::string KeyText(uint32_t key) {
    char text[16];
    std::snprintf(text, sizeof text, "%08x", key);
    return text;
  }

  explicit LsmSimulation(PickerOptions options) : options_(options) {}

  // Puts `keys` (any order, repeats allowed) and flushes them.
  void Flush(const std::vector<uint32_t>& keys) {
    std::map<uint32_t, uint64_t> newest;
    for (uint32_t key : keys) newest[key] = ++version_;
    for (auto [key, version] : newest) truth_[key] = version;
    admitted_bytes_ += keys.size() * kEntryBytes;
    std::vector<Entry> entries(newest.begin(), newest.end());
    FlushCuts cuts(options_);
    cuts.Add(Shape());
    for (File& file : Cut(entries, cuts.Points())) {
      flushed_bytes_ += file.Bytes();
      levels_[0].insert(levels_[0].begin(), std::move(file));
    }
    SortLevel0();
  }

  // Starts the next job; false when there is none to do. REQUIRES: !job_runs().
  bool StartJob() {
    std::optional<CompactionPlan> plan = PickCompaction(Shape(), options_);
    if (!plan) return false;
    ExpectSane(*plan);
    ++jobs_by_reason_[plan->reason];
    moves_ += plan->trivial_move;
    const uint64_t work = plan->trivial_move ? 0 : plan->input_bytes;
    job_ = {*std::move(plan), work};
    return true;
  }

  // Does `work` bytes on the job, and ends it when it is done. Returns the work left over. REQUIRES:
  // job_runs().
  uint64_t Work(uint64_t work) {
    if (work < job_->work_left) {
      job_->work_left -= work;
      return 0;
    }
    work -= job_->work_left;
    FinishJob();
    return work;
  }

  // REQUIRES: job_runs().
  void FinishJob() {
    Apply(job_->plan);
    job_.reset();
  }

  bool job_runs() const { return job_.has_value(); }

  void RunUntilQuiet() {
    while (job_runs() || StartJob()) FinishJob();
  }

  LevelShape Shape() const {
    LevelShape shape;
    for (size_t level = 0; level < kLevels; ++level) {
      for (const File& file : levels_[level]) shape.levels[level].push_back(file.Shape());
    }
    return shape;
  }

  // Every key is found, newest first from the top, with its last version; levels are disjoint.
  void ExpectRightAnswers() const {
    std::map<uint32_t, uint64_t> seen;
    for (size_t level = 0; level < kLevels; ++level) {
      for (const File& file : levels_[level]) {
        for (auto [key, version] : file.entries) seen.emplace(key, version);
      }
      for (size_t i = 1; level > 0 && i < levels_[level].size(); ++i) {
        ASSERT_LT(levels_[level][i - 1].entries.back().first, levels_[level][i].entries.front().first)
            << "level " << level << " overlaps";
      }
    }
    ASSERT_EQ(seen, truth_);
  }

  double WriteAmplification() const {
    return static_cast<double>(flushed_bytes_ + merged_bytes_) / static_cast<double>(admitted_bytes_);
  }
  double SpaceAmplification() const {
    return static_cast<double>(Shape().TotalBytes()) / static_cast<double>(truth_.size() * kEntryBytes);
  }
  uint64_t moves() const { return moves_; }
  uint64_t merged_bytes() const { return merged_bytes_; }
  uint64_t jobs(PickReason reason) { return jobs_by_reason_[reason]; }
  size_t files(size_t level) const { return levels_[level].size(); }
  const PickerOptions& options() const { return options_; }

 private:
  using Entry = std::pair<uint32_t, uint64_t>;
  struct File {
    uint64_t id = 0;
    std::vector<Entry> entries;
    uint64_t version_max = 0;

    uint64_t Bytes() const { return entries.size() * kEntryBytes; }
    FileShape Shape() const {
      FileShape shape;
      shape.id = ObjectId(id);
      shape.span = {KeyText(entries.front().first), KeyText(entries.back().first) + '\0'};
      shape.size = Bytes();
      shape.entries = entries.size();
      shape.version_max = Version(version_max);
      shape.bottom_compression = true;
      return shape;
    }
  };
  struct Job {
    CompactionPlan plan;
    uint64_t work_left = 0;
  };

  std::vector<File> Cut(const std::vector<Entry>& entries, const std::vector<std::string>& cuts) {
    std::vector<File> files;
    std::vector<uint32_t> cut_keys;
    for (const std::string& cut : cuts)
      cut_keys.push_back(static_cast<uint32_t>(std::stoul(cut, nullptr, 16)));
    size_t next_cut = 0;
    for (const Entry& entry : entries) {
      bool cut = files.empty() || files.back().Bytes() >= options_.target_file_bytes;
      while (next_cut < cut_keys.size() && cut_keys[next_cut] <= entry.first) {
        cut = true;
        ++next_cut;
      }
      if (cut) files.push_back(File{++last_id_, {}, 0});
      files.back().entries.push_back(entry);
      files.back().version_max = std::max(files.back().version_max, entry.second);
    }
    return files;
  }

  void SortLevel0() {
    std::sort(levels_[0].begin(), levels_[0].end(),
              [](const File& a, const File& b) { return a.version_max > b.version_max; });
  }

  void ExpectSane(const CompactionPlan& plan) {
    ASSERT_FALSE(plan.inputs.empty());
    ASSERT_EQ(plan.inputs.front().level, plan.input_level);
    ASSERT_TRUE(plan.output_level == plan.input_level || plan.output_level > plan.input_level);
    for (const PlanInput& input : plan.inputs) {
      ASSERT_TRUE(input.level == plan.input_level || input.level == plan.output_level);
    }
  }

  void Apply(const CompactionPlan& plan) {
    std::vector<Entry> entries;
    std::vector<File> moved;
    for (const PlanInput& input : plan.inputs) {
      std::vector<File>& level = levels_[input.level];
      auto at =
          std::find_if(level.begin(), level.end(), [&](const File& f) { return f.id == input.id.value; });
      ASSERT_NE(at, level.end());
      entries.insert(entries.end(), at->entries.begin(), at->entries.end());
      moved.push_back(std::move(*at));
      level.erase(at);
    }
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    auto same_key = [](const Entry& a, const Entry& b) { return a.first == b.first; };
    entries.erase(std::unique(entries.begin(), entries.end(), same_key), entries.end());
    std::vector<File> made = plan.trivial_move ? std::move(moved) : Cut(entries, {});
    for (File& file : made) {
      if (!plan.trivial_move) merged_bytes_ += file.Bytes();
      levels_[plan.output_level].push_back(std::move(file));
    }
    if (plan.output_level == 0) return SortLevel0();
    std::sort(levels_[plan.output_level].begin(), levels_[plan.output_level].end(),
              [](const File& a, const File& b) { return a.entries.front() < b.entries.front(); });
  }

  PickerOptions options_;
  std::array<std::vector<File>, kLevels> levels_;
  std::optional<Job> job_;
  std::map<uint32_t, uint64_t> truth_;
  std::map<PickReason, uint64_t> jobs_by_reason_;
  uint64_t last_id_ = 0;
  uint64_t version_ = 0;
  uint64_t admitted_bytes_ = 0;
  uint64_t flushed_bytes_ = 0;
  uint64_t merged_bytes_ = 0;
  uint64_t moves_ = 0;
};

}  // namespace partita
