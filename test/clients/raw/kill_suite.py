"""Kills a server of its own in the middle of writes, starts it again, and looks for everything that it answered.

TABLE_PROGRAM names the program, TABLE_IO the backend (empty: the default).
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import raw_client
from case_report import SectionCase, main
from raw_client import Connection, ask, entity

ROUNDS = 3
CLIENTS = 4


class Server:
    def __init__(self, directory):
        io = os.environ.get("TABLE_IO")
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [os.environ["TABLE_PROGRAM"], "serve", "--data", directory, "--memory", "128M", "--listen", "127.0.0.1:0",
             *(["--io", io] if io else [])], stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if line.startswith("READY"):
                raw_client.PORT = int(re.search(r":(\d+)", line.split()[1].split("//")[1]).group(1))
                break
        self.seconds = time.monotonic() - self.started

    def end(self, sign):
        self.process.send_signal(sign)
        code = self.process.wait(30)
        self.process.stdout.close()
        return code


class Killed(SectionCase):
    suite = "raw"
    section = "kill"

    def write_until_it_breaks(self, client, first, answered, wrong):
        """Inserts rows and, every tenth time, a transaction of five; notes what was answered, and what wrongly."""
        try:
            with Connection(port=raw_client.PORT) as one:
                for i in range(first, first + 100_000):
                    rows = ["%07d-%d" % (i, j) for j in range(5)] if i % 10 == 0 else ["%07d" % i]
                    if len(rows) == 1:
                        answer = ask("POST", "/kill", {"PartitionKey": client, "RowKey": rows[0], "n": i}, connection=one)
                        assert answer.status == 201, answer
                    else:
                        parts = "".join(
                            "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
                            "PUT %s HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{\"n\":%d}\r\n"
                            % (entity("kill", client, row), i) for row in rows)
                        body = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n" + parts + "--c--\r\n--b--\r\n"
                        answer = ask("POST", "/$batch", body, connection=one,
                                     headers={"Content-Type": "multipart/mixed; boundary=b"})
                        assert answer.text.count("HTTP/1.1 204") == 5, answer
                    answered.append((client, rows))
        except OSError:
            pass  # The server was killed.
        except Exception as error:  # An assertion too: in a thread it would be seen by nobody.
            wrong.append(repr(error))

    def rows_of(self, client):
        found, token = [], ""
        while True:
            answer = ask("GET", "/kill()?$filter=PartitionKey%%20eq%%20'%s'&$select=RowKey%s" % (client, token))
            self.assertEqual(200, answer.status, answer)
            found += [e["RowKey"] for e in answer.json["value"]]
            if answer.header("x-ms-continuation-NextPartitionKey") is None:
                return found
            token = "&NextPartitionKey=%s&NextRowKey=%s" % (answer.header("x-ms-continuation-NextPartitionKey"),
                                                            answer.header("x-ms-continuation-NextRowKey"))

    def test_kill(self):
        """A killed server serves everything that it answered, whole transactions only, a moment later"""
        answered, wrong = [], []
        with tempfile.TemporaryDirectory(prefix="partita-kill-") as directory:
            server = Server(directory + "/store")
            self.assertEqual(201, ask("POST", "/Tables", {"TableName": "kill"}).status)
            for round_number in range(ROUNDS):
                before = len(answered)
                writers = [threading.Thread(target=self.write_until_it_breaks, args=("c%d" % i, round_number * 1_000_000, answered, wrong))
                           for i in range(CLIENTS)]
                for writer in writers:
                    writer.start()
                while len(answered) < before + 200 and any(writer.is_alive() for writer in writers):
                    time.sleep(0.01)
                server.end(signal.SIGKILL)
                for writer in writers:
                    writer.join()
                self.assertEqual([], wrong)
                server = Server(directory + "/store")
                self.assertLess(server.seconds, 10)
                self.check(answered)
            self.assertEqual(0, server.end(signal.SIGTERM))

    def check(self, answered):
        for client in sorted({c for c, _ in answered}):
            found = self.rows_of(client)
            self.assertEqual(sorted(set(found)), found)
            there = set(found)
            lost = [row for c, rows in answered if c == client for row in rows if row not in there]
            self.assertEqual([], lost)
            by_transaction = {}
            for row in found:
                if "-" in row:
                    by_transaction.setdefault(row[:7], []).append(row)
            self.assertEqual({5}, {len(rows) for rows in by_transaction.values()} or {5})


if __name__ == "__main__":
    main()
