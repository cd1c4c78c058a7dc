"""azure.data.tables under a throughput target: its own back-off, as it comes, finds the rate and loses nothing.

test/clients/run gives the table `Throttled` 50 entities a second for each partition, so a burst of 100.
"""
import threading
import time
import unittest

from azure.core.exceptions import HttpResponseError, ResourceExistsError

from python_case import PythonCase, code_of, main
from case_report import EXTRAS

RATE = 50
BURST = 2 * RATE


@unittest.skipUnless(EXTRAS == "partita", "only partita has targets to set")
class Throttle(PythonCase):
    section = "17"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.throttled = cls.service.get_table_client("Throttled")
        try:
            cls.throttled.create_table()
        except ResourceExistsError:
            pass

    @classmethod
    def tearDownClass(cls):
        cls.throttled.delete_table()
        super().tearDownClass()

    def test_converges(self):
        """Four threads that write without a pause come to the target rate by the SDK's back-off alone"""
        begin = time.monotonic()
        written, last, failed = [0], [begin], []

        def write(name):
            batch = 0
            while time.monotonic() < begin + 10:
                rows = [("upsert", {"PartitionKey": "hot", "RowKey": "%s-%d-%d" % (name, batch, i)}) for i in range(20)]
                try:
                    self.throttled.submit_transaction(rows)
                except HttpResponseError as error:  # After three attempts: the next call tries again.
                    if error.status_code != 503:
                        failed.append(error)
                    continue
                batch += 1
                with lock:
                    written[0] += len(rows)
                    last[0] = time.monotonic()

        lock = threading.Lock()
        threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], failed)
        possible = BURST + RATE * (last[0] - begin)
        print("   %d entities in %.1f s: %.1f %% of what the target lets through"
              % (written[0], last[0] - begin, 100 * written[0] / possible), flush=True)
        self.assertLessEqual(written[0], possible + 20)
        self.assertGreaterEqual(written[0], 0.9 * possible)
        time.sleep(BURST / RATE)
        # Nothing was lost, nothing was applied twice or in part; pages end early and go on.
        found = [entity["RowKey"] for entity in self.throttled.list_entities(select=["RowKey"])]
        self.assertEqual(written[0], len(found))
        self.assertEqual(len(found), len(set(found)))

    def test_refusal(self):
        """Without retries the refusal is 503 ServerBusy, with the wait in seconds and in milliseconds"""
        client = self.service.get_table_client("Throttled")
        rows = [("upsert", {"PartitionKey": "refused", "RowKey": str(i)}) for i in range(25)]
        with self.assertRaises(HttpResponseError) as caught:
            for _ in range(20):
                client.submit_transaction(rows, retry_total=0)
        self.assertEqual(503, caught.exception.status_code)
        self.assertEqual("ServerBusy", code_of(caught.exception))
        headers = caught.exception.response.headers
        milliseconds = int(headers["x-ms-retry-after-ms"])
        self.assertTrue(0 < milliseconds <= 1500, milliseconds)
        self.assertEqual(-(-milliseconds // 1000), int(headers["Retry-After"]))


if __name__ == "__main__":
    main()
