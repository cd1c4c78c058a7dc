#pragma once
#include <gtest/gtest.h>

#include <string>

#include "bench/lab/experiment_file.h"

namespace partita::lab {

// People by their ids, with a list of those of each city.
inline constexpr const char* kListedLayout = R"(
[[layout]]
name = "listed"
pk = "all"
rk = "{id}"
[[layout.copy]]
name = "cities"
table = "LabCities"
pk = "{city}"
rk = "list"
list = "id"
)";

// Readings of devices, asked for the latest of a device and for alarms. `layouts` and what may follow are
// added.
inline std::string ReadingsText(const std::string& layouts, const std::string& seed = "42") {
  return R"(name = "readings"
seed = )" +
         seed + R"(
repeats = 3
[data]
records = 2000
[data.fields]
device = { dist = "zipf", n = 100, theta = 0.9, format = "dev-{:03}" }
ts = { dist = "clock", start = "2026-01-01T00:00:00Z", step = "10s" }
type = { dist = "weighted", values = { temp = 70, door = 25, alarm = 5 } }
value = { dist = "normal", mean = 21.0, sd = 3.0 }
hour = { dist = "uniform", n = 24 }
[[op]]
name = "ingest"
kind = "insert"
weight = 8
batch = 5
[[op]]
name = "latest"
kind = "query"
where = { device = "@record" }
order = "ts desc"
limit = 10
[[op]]
name = "read"
kind = "get"
[arrival]
model = "constant"
rate = 1000
warmup = "100ms"
duration = "400ms"
clients = 8
)" + layouts;
}

inline constexpr const char* kDeviceLayout = R"(
[[layout]]
name = "device"
pk = "{device}"
rk = "{desc_ticks(ts)}"
)";

// Twenty records of 16,076 bytes, 16 units each, in one partition, and 1,000 operations a second of one kind.
inline std::string LargeRecordsText(const std::string& op) {
  return R"(name = "large"
[data]
records = 20
[data.fields]
id = { dist = "sequence" }
n = { dist = "uniform", n = 10 }
note = { dist = "text", bytes = 8000 }
[[layout]]
name = "one"
pk = "all"
rk = "{id:04}"
[arrival]
rate = 1000
[limits]
profile = "storage"
[[op]]
name = "op"
)" + op;
}

// Gets of 20,000 records; one operation in a hundred inserts a hundred more. `own` is for the layout.
inline std::string RareBatchesText(const std::string& arrival, const std::string& own = "") {
  return R"(name = "rare"
[data]
records = 20_000
[data.fields]
id = { dist = "sequence" }
[[op]]
name = "get"
kind = "get"
weight = 99
[[op]]
name = "add"
kind = "insert"
batch = 100
[[layout]]
name = "l"
pk = "{id:08}"
rk = ""
)" + own +
         "[arrival]\n" + arrival;
}

// The same, run once: where there is nothing to compare.
inline std::string Once(std::string text) {
  return text.replace(text.find("repeats = 3"), 11, "repeats = 1");
}

// On a store that is soon made and gone.
inline std::string Small(const std::string& text, const std::string& target = "") {
  return text + "[target]\nmemory = \"64M\"\nshards = 1\n" + target;
}
inline void MakeSmall(Experiment* experiment) {
  experiment->memory_bytes = 64u << 20;
  experiment->shards = 1;
}

inline Experiment ParseSound(const std::string& text) {
  ExperimentFile file = ParseExperiment(text, "test.toml");
  EXPECT_EQ(FindingsText("test.toml", file.findings), "");
  return std::move(file.experiment);
}

}  // namespace partita::lab
