#include "engine/hazard.h"

#include <gtest/gtest.h>
#include <immintrin.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

// A reader that takes an object, and a reclaimer that takes it out of use: one of them sees the other. On
// x86-64 nothing but the reclaimer's barrier orders the reader's store before its load; and where the kernel
// has no membarrier, nothing but the reader's fence.

namespace partita {
namespace {

constexpr uint32_t kRounds = 20'000;
constexpr int kTriesMax = 30;
constexpr std::chrono::seconds kTryingMax{5};  // On a busy machine the two threads rarely run at once.

// Lines that lie in no cache: a store to one takes a while, and all later ones stand behind it.
struct Lines {
  void Write(uint32_t value) {
    for (Line& line : lines) line.value.store(value, std::memory_order_relaxed);
  }
  void Evict() {
    for (Line& line : lines) _mm_clflush(&line);
  }
  struct alignas(64) Line {
    std::atomic<uint32_t> value{0};
  };
  std::array<Line, 32> lines;
};

// Ends when both threads have come to round `round`.
class Meeting {
 public:
  void Meet(uint32_t round) {
    arrived_.fetch_add(1, std::memory_order_acq_rel);
    for (uint32_t spins = 0; arrived_.load(std::memory_order_acquire) < 2 * round; ++spins) {
      if (spins > 2000) std::this_thread::yield();
    }
  }

 private:
  alignas(64) std::atomic<uint32_t> arrived_{0};
};

// Sometimes more, sometimes less: up to some tenths of a microsecond.
void WaitALittle(uint32_t round) {
  for (uint32_t i = 0; i < round * 8 % 2048; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
}

// How often, in kRounds, what the reader holds is not seen by the reclaimer.
uint32_t FreedInUse() {
  int object = 0;
  int next = 0;
  Meeting begin, end;
  Lines busy;
  alignas(64) std::atomic<const void*> current{&object};
  bool reader_took_it = false;
  bool reclaimer_saw_it = false;
  uint32_t freed_in_use = 0;
  std::thread reader([&] {
    std::atomic<const void*>* slot = HazardSlots::Slot();
    for (uint32_t round = 1; round <= kRounds; ++round) {
      begin.Meet(round);
      busy.Write(round);
      slot->store(&object, std::memory_order_relaxed);
      HazardSlots::LightBarrier();
      reader_took_it = current.load(std::memory_order_acquire) == &object;
      end.Meet(2 * round - 1);
      slot->store(nullptr, std::memory_order_release);
      end.Meet(2 * round);
    }
  });
  for (uint32_t round = 1; round <= kRounds; ++round) {
    busy.Evict();
    begin.Meet(round);
    WaitALittle(round);
    current.exchange(&next, std::memory_order_acq_rel);
    HazardSlots::HeavyBarrier();
    reclaimer_saw_it = HazardSlots::Holds(&object);
    end.Meet(2 * round - 1);
    if (reader_took_it && !reclaimer_saw_it) ++freed_in_use;
    current.store(&object, std::memory_order_relaxed);
    end.Meet(2 * round);
  }
  reader.join();
  return freed_in_use;
}

// 0 unless some try finds it otherwise.
uint32_t FreedInUseInManyTries() {
  const auto until = std::chrono::steady_clock::now() + kTryingMax;
  uint32_t freed = 0;
  for (int i = 0; i < kTriesMax && freed == 0 && std::chrono::steady_clock::now() < until; ++i) {
    freed = FreedInUse();
  }
  return freed;
}

// From here on this process has a kernel without membarrier, and so has what it executes.
bool ForbidMembarrier() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(filter), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Made before the thread's slot, so it ends after it.
struct LooksAtItsEnd {
  bool* has_slot = nullptr;
  ~LooksAtItsEnd() {
    if (has_slot != nullptr) *has_slot = HazardSlots::Slot() != nullptr;
  }
};

TEST(HazardSlotsTest, WhoReadsAtTheEndOfAThreadHasNoSlotOfAnother) {
  bool had = false, has = true;
  std::thread([&] {
    thread_local LooksAtItsEnd last;
    last.has_slot = &has;
    had = HazardSlots::Slot() != nullptr;
  }).join();
  EXPECT_TRUE(had);
  EXPECT_FALSE(has);
}

TEST(HazardSlotsTest, AReaderKeepsWhatItStillSeesInUse) { EXPECT_EQ(FreedInUseInManyTries(), 0u); }

// Which barrier is used is decided once in a process, so this one starts another.
TEST(HazardSlotsTest, AReaderKeepsWhatItStillSeesInUseWithoutMembarrier) {
  constexpr const char* kInChild = "PARTITA_TEST_WITHOUT_MEMBARRIER";
  constexpr int kForbiddenHere = 77, kPassedThere = 78;
  if (getenv(kInChild) != nullptr) {
    ASSERT_EQ(syscall(SYS_membarrier, 0, 0, 0), -1);
    EXPECT_EQ(FreedInUseInManyTries(), 0u);
    if (!HasFailure()) _exit(kPassedThere);
    return;
  }
  const std::string filter =
      std::string("--gtest_filter=*.") + testing::UnitTest::GetInstance()->current_test_info()->name();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!ForbidMembarrier()) _exit(kForbiddenHere);
    setenv(kInChild, "1", 1);
    unsetenv("GTEST_TOTAL_SHARDS");  // The only test there is no other part's.
    unsetenv("GTEST_SHARD_INDEX");
    execl("/proc/self/exe", "test_engine", filter.c_str(), nullptr);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kForbiddenHere) GTEST_SKIP() << "seccomp filters are forbidden here";
  EXPECT_EQ(WEXITSTATUS(status), kPassedThere);
}

}  // namespace
}  // namespace partita
