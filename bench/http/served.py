"""A `partita serve` of its own for the programs beside this, and what it tells of its memory."""
import os
import re
import socket
import subprocess
import sys
import threading
import urllib.request

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PROGRAM = os.path.join(ROOT, "build/release/bin/partita")
sys.path.insert(0, os.path.join(ROOT, "test", "clients", "raw"))


START_SECONDS_MAX = 300  # A store that was killed amid a load has logs to replay, on a slow disk.


def start(program, memory_mib, directory, environment=None):
    """The server, and the address of its figures. The endpoint is in the environment, for raw_client. Ends the program
    when there is no server within START_SECONDS_MAX."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        admin = "127.0.0.1:%d" % free.getsockname()[1]
    server = subprocess.Popen([program, "serve", "--data", directory + "/store", "--memory", "%dM" % memory_mib,
                               "--listen", "127.0.0.1:0", "--admin", admin],
                              stdout=subprocess.PIPE, text=True, env=environment)
    too_long = threading.Timer(START_SECONDS_MAX, server.kill)
    too_long.start()
    try:
        for line in server.stdout:
            if line.startswith("READY"):
                os.environ["TABLE_ENDPOINT"] = line.split()[1] + "/devstoreaccount1"
                return server, "http://" + admin
    finally:
        too_long.cancel()
    sys.exit("the server did not start")


def fixed_bytes(admin):
    """What README's limits allow a server beside its number and 5 % of it: for code, stacks, rings, mapped logs."""
    text = urllib.request.urlopen(admin + "/metrics", timeout=30).read().decode()
    return (24 + 10 * len(re.findall(r"^partita_shard_fenced\{", text, re.M))) << 20


class Sample:
    """What the server holds at one moment, in bytes; from the system, and from its own figures."""

    FIGURES = {"used": "heap_used_bytes", "held": "heap_held_bytes", "cache": "cache_bytes",
               "capacity": "cache_capacity_bytes", "buffers": "http_buffer_bytes"}

    def __init__(self, pid, admin):
        with open("/proc/%d/status" % pid) as file:
            status = file.read()
        self.resident, self.peak = (int(re.search(r"^%s:\s+(\d+) kB" % field, status, re.M).group(1)) << 10
                                    for field in ("VmRSS", "VmHWM"))
        text = urllib.request.urlopen(admin + "/metrics", timeout=30).read().decode()
        for name, figure in self.FIGURES.items():
            setattr(self, name, int(re.search(r"^partita_%s (\d+)$" % figure, text, re.M).group(1)))

    def __str__(self):
        return "MiB: %6.1f resident  %6.1f heap used  %6.1f held  %5.1f of %.1f cache" % tuple(
            bytes / 2**20 for bytes in (self.resident, self.used, self.held, self.cache, self.capacity))
