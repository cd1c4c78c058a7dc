#include "bench/lab/example.h"

namespace partita::lab {

const char* const kExampleExperiment = R"(# Readings of devices: where should they lie?
#   partita lab check THIS      what is wrong with this file
#   partita lab explain THIS    what each operation would do on each layout
#   partita lab run THIS        and what it takes
name = "telemetry"
seed = 42         # The same seed gives the same records and operations, byte for byte.
repeats = 3       # Each layout is run so often, in turns with the others.

[data]
records = 20_000  # There before the operations begin.

[data.fields]     # What the application knows of a reading.
device = { dist = "zipf", n = 500, theta = 0.9, format = "dev-{:04}" }
ts = { dist = "clock", start = "2026-01-01T00:00:00Z", step = "2s" }
type = { dist = "weighted", values = { temp = 70, door = 25, alarm = 5 } }
value = { dist = "normal", mean = 21.0, sd = 3.0 }
note = { dist = "text", bytes = 100 }

[[op]]            # What it does. Weights say how often, against each other.
name = "ingest"
kind = "insert"
weight = 90

[[op]]
name = "latest"   # The ten latest readings of a device.
kind = "query"
weight = 9
where = { device = "@record" }    # As the record has it that the operation picks.
order = "ts desc"
limit = 10

[[op]]
name = "alarms"   # All alarms of the last ten minutes.
kind = "query"
weight = 1
where = { type = "alarm", ts = "last 10m" }

[[layout]]        # The day as partition: all writes go to one, and a device's readings are scattered in it.
name = "day"
pk = "{ts:%Y-%m-%d}"
rk = "{ts:%H%M%S.%f}_{device}"

[[layout]]        # A partition for each device, the latest first. Alarms are asked of the whole table, and what
                  # is scanned counts: it eats what the account may have.
name = "device-newest"
pk = "{device}"
rk = "{desc_ticks(ts)}"

[[layout]]        # The same, and each reading a second time, by type and hour.
name = "device-and-type"
pk = "{device}"
rk = "{desc_ticks(ts)}"
[[layout.copy]]
name = "by-type"
pk = "{type}-{ts:%Y%m%d%H}"
rk = "{ts:%M%S.%f}_{device}"

[arrival]         # An open loop: operations come when they are due, whether or not the last is done.
model = "poisson"
rate = 2500       # Operations a second; several rates are several runs: rate = [1000, 4000].
warmup = "2s"
duration = "2s"

[limits]
profile = "storage"   # 2,000 entities a second for a partition, 20,000 in all; "off" for none.

[goal]
throttled = 0.01      # A layout that refuses more does not win.

[[expect]]        # What must come out; else the run ends with exit code 1.
layout = "day"
op = "ingest"
metric = "throttled"
above = 0.1
[[expect]]
layout = "device-and-type"
op = "ingest"
metric = "throttled"
below = 0.01
)";

}  // namespace partita::lab
