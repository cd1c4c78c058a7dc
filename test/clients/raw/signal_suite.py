"""What signals do to a server under load: SIGHUP, then SIGTERM. Run last, by test/clients/run: it ends the server.

TABLE_SERVER_PID names the process, TABLE_ACCESS_LOG its log.
"""
import os
import signal
import ssl
import time

from raw_case import HOST, PREFIX, Connection, RawCase, ask, main, request_bytes

PID = int(os.environ["TABLE_SERVER_PID"])
LOG = os.environ["TABLE_ACCESS_LOG"]


def eventually(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


class Signals(RawCase):
    section = "signals"

    @classmethod
    def tearDownClass(cls):
        pass  # The server is gone by then.

    def admin(self, path):
        with Connection(HOST, int(os.environ["TABLE_ADMIN_PORT"])) as one:
            one.send(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path.encode())
            return one.read().status

    def certificate(self):
        context = ssl._create_unverified_context()
        with Connection(HOST, int(os.environ["TABLE_TLS_PORT"]), wrap=lambda raw: context.wrap_socket(raw)) as one:
            return one.socket.getpeercert(binary_form=True)

    def test_1_reload(self):
        """SIGHUP opens the access log anew and reads a renewed certificate, and no connection notices"""
        before = self.certificate()
        with Connection() as kept:
            self.assertEqual(200, ask("GET", "/Tables", connection=kept).status)
            os.rename(LOG, LOG + ".1")
            key, certificate = (os.path.join(os.path.dirname(os.environ["TABLE_TLS_CERT"]), n) for n in ("key.pem", "cert.pem"))
            os.rename(os.path.join(os.path.dirname(key), "next-key.pem"), key)
            os.rename(os.path.join(os.path.dirname(key), "next-cert.pem"), certificate)
            os.kill(PID, signal.SIGHUP)
            self.assertTrue(eventually(lambda: os.path.exists(LOG)))
            self.assertTrue(eventually(lambda: self.certificate() != before))
            self.assertEqual(200, ask("GET", "/Tables", connection=kept).status)
            self.assertTrue(eventually(lambda: " 200 " in open(LOG).read()))

    def test_2_stop(self):
        """SIGTERM lets a request in flight end, and meanwhile takes no more and says so on /readyz"""
        body = b'{"PartitionKey":"p","RowKey":"in flight"}'
        head = request_bytes("POST", PREFIX + "/" + self.table, b"",
                             headers={"Expect": "100-continue", "Content-Length": str(len(body))})
        with Connection() as one, Connection() as idle:
            self.assertEqual(200, ask("GET", "/Tables", connection=idle).status)
            one.send(head)
            self.assertEqual(100, one.read("POST").status)  # So the server knows of the request.
            self.assertEqual(200, self.admin("/readyz"))
            os.kill(PID, signal.SIGTERM)
            self.assertTrue(eventually(lambda: self.admin("/readyz") == 503))
            self.assertTrue(idle.is_closed())
            one.send(body)
            answer = one.read("POST")
            self.assertEqual(201, answer.status, answer)
            self.assertTrue(one.is_closed())


if __name__ == "__main__":
    main()
