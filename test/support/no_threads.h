#pragma once
#include <gtest/gtest.h>
#include <pthread.h>

namespace partita {

// While one lives the system refuses new threads, as where a control group or a user has all that he may: the
// stack of each would be larger than any address space.
class NoThreads {
 public:
  NoThreads() {
    EXPECT_EQ(pthread_getattr_default_np(&before_), 0);
    pthread_attr_t endless;
    EXPECT_EQ(pthread_getattr_default_np(&endless), 0);
    EXPECT_EQ(pthread_attr_setstacksize(&endless, size_t{1} << 60), 0);
    EXPECT_EQ(pthread_setattr_default_np(&endless), 0);
    pthread_attr_destroy(&endless);
  }
  ~NoThreads() {
    EXPECT_EQ(pthread_setattr_default_np(&before_), 0);
    pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_;
};

}  // namespace partita
