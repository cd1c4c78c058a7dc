"""A small HTTP client that signs for itself and sends what no SDK would: every byte is under control.

With TABLE_EXTRAS=partita the environment also names what only partita has here (test/clients/run sets it):

  TABLE_TLS_PORT       a port that speaks TLS, with the certificate in TABLE_TLS_CERT
  TABLE_ADMIN_PORT     the admin address
  TABLE_SECOND_ACCOUNT, TABLE_SECOND_KEY   another account of the same server
"""
import base64
import datetime
import email.utils
import hashlib
import hmac
import json
import os
import re
import socket
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from case_report import ACCOUNT, ENDPOINT, KEY

PARTS = urllib.parse.urlsplit(ENDPOINT)
HOST, PORT = PARTS.hostname, PARTS.port
PREFIX = PARTS.path  # "/ACCOUNT"
VERSION = "2019-02-02"


class Response:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers  # Pairs, in order.
        self.body = body

    def header(self, name):
        found = [v for n, v in self.headers if n.lower() == name.lower()]
        return found[0] if found else None

    @property
    def text(self):
        return self.body.decode("utf-8-sig")

    @property
    def json(self):
        return json.loads(self.text)

    @property
    def code(self):
        """The error code, from a JSON or an XML body."""
        found = re.search(r'"code"\s*:\s*"(\w+)"|<(?:m:)?code>(\w+)<|<Code>(\w+)<', self.text)
        return next((g for g in found.groups() if g), None) if found else None

    @property
    def message(self):
        found = re.search(r'"value"\s*:\s*"((?:[^"\\]|\\.)*)"', self.text)
        return json.loads('"' + found.group(1) + '"').split("\n")[0] if found else None

    def __repr__(self):
        return "%d %s %s" % (self.status, self.headers, self.body[:400])


class Connection:
    """One connection; answers are read in order."""

    def __init__(self, host=HOST, port=None, wrap=None, timeout=20):
        self.socket = socket.create_connection((host, port or PORT), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if wrap:
            self.socket = wrap(self.socket)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def _more(self):
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError("the server closed the connection")
        self.buffer += data

    def _line(self):
        while b"\r\n" not in self.buffer:
            self._more()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line.decode("latin-1")

    def _take(self, size):
        while len(self.buffer) < size:
            self._more()
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def read(self, method="GET"):
        """Reads one answer, interim ones among them."""
        status = int(self._line().split(" ")[1])
        headers = []
        while True:
            line = self._line()
            if not line:
                break
            name, value = line.split(":", 1)
            headers.append((name, value.strip()))
        lower = {n.lower(): v for n, v in headers}
        body = b""
        if method == "HEAD" or status in (204, 304) or 100 <= status < 200:
            pass
        elif lower.get("transfer-encoding", "").lower() == "chunked":
            while True:
                size = int(self._line().split(";")[0], 16)
                body += self._take(size)
                self._line()
                if size == 0:
                    break
        elif "content-length" in lower:
            body = self._take(int(lower["content-length"]))
        else:
            while True:
                data = self.socket.recv(65536)
                if not data:
                    break
                self.buffer += data
            body, self.buffer = self.buffer, b""
        return Response(status, headers, body)

    def is_closed(self):
        """Waits for the end of the stream; false if anything else comes."""
        try:
            return self.buffer == b"" and self.socket.recv(1) == b""
        except (ConnectionError, socket.timeout) as error:
            return isinstance(error, ConnectionError)


def http_date(offset_seconds=0):
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=offset_seconds)
    return email.utils.format_datetime(at, usegmt=True)


def hmac_text(key, text):
    return base64.b64encode(hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()).decode()


def signature(method, target, headers, scheme="SharedKey", account=ACCOUNT, key=KEY):
    """The Authorization header's value: spec 14.1 to 14.3."""
    lower = {n.lower(): v for n, v in headers}
    path, _, query = target.partition("?")
    resource = "/" + account + path
    comp = [v for n, v in urllib.parse.parse_qsl(query, keep_blank_values=True) if n == "comp"]
    if comp:
        resource += "?comp=" + comp[0]
    date = lower.get("x-ms-date", lower.get("date", ""))
    if scheme == "SharedKeyLite":
        text = date + "\n" + resource
    else:
        text = "\n".join([method, lower.get("content-md5", ""), lower.get("content-type", ""), date, resource])
    return "%s %s:%s" % (scheme, account, hmac_text(key, text))


def request_bytes(method, target, body=None, headers=(), host=None, auth="SharedKeyLite", date=None, framing=True,
                  account=ACCOUNT, key=KEY, version=VERSION):
    """A request as it goes over the wire. `headers` override what is made here; a value of None leaves one out."""
    given = dict(headers)
    lower = {n.lower() for n in given}
    lines = [("Host", host or "%s:%d" % (HOST, PORT))]
    if version and "x-ms-version" not in lower:
        lines.append(("x-ms-version", version))
    if auth and "x-ms-date" not in lower and "date" not in lower:
        lines.append(("x-ms-date", date or http_date()))
    if "accept" not in lower:
        lines.append(("Accept", "application/json;odata=minimalmetadata"))
    if body is not None and "content-type" not in lower:
        lines.append(("Content-Type", "application/json"))
    if framing and body is not None and not lower & {"content-length", "transfer-encoding"}:
        lines.append(("Content-Length", str(len(body))))
    lines += [(n, v) for n, v in given.items() if v is not None]
    if auth and "authorization" not in lower:
        lines.append(("Authorization", signature(method, target, lines, auth, account, key)))
    head = "%s %s HTTP/1.1\r\n" % (method, target) + "".join("%s: %s\r\n" % pair for pair in lines) + "\r\n"
    return head.encode("utf-8") + (body or b"")


def ask(method, resource, body=None, prefix=PREFIX, connection=None, **options):
    """Sends one request below the account and returns the answer."""
    if isinstance(body, (dict, list)):
        body = json.dumps(body).encode()
    elif isinstance(body, str):
        body = body.encode()
    data = request_bytes(method, prefix + resource, body, **options)
    if connection:
        connection.send(data)
        return connection.read(method)
    with Connection() as one:
        one.send(data)
        return one.read(method)


def quoted(text):
    """A key as it stands in an address."""
    return "'" + urllib.parse.quote(text.replace("'", "''"), safe="") + "'"


def entity(table, partition, row):
    return "/%s(PartitionKey=%s,RowKey=%s)" % (table, quoted(partition), quoted(row))


def table_sas(table, account=ACCOUNT, key=KEY, resource=None, **fields):
    """The query of a table's token: spec 14.4. Fields are those of the token; sv, sp, se have defaults."""
    fields = {"sv": VERSION, "tn": table, "sp": "r", "se": "2099-01-01T00:00:00Z", **fields}
    get = lambda name: fields.get(name) or ""
    first = [get("sp"), get("st"), get("se"), resource or "/table/%s/%s" % (account, table.lower()), get("si")]
    middle = [get("sip"), get("spr")] if fields["sv"] >= "2015-04-05" else []
    last = [fields["sv"], get("spk"), get("srk"), get("epk"), get("erk")]
    fields["sig"] = hmac_text(key, "\n".join(first + middle + last))
    return urllib.parse.urlencode({n: v for n, v in fields.items() if v is not None}, quote_via=urllib.parse.quote)


def account_sas(account=ACCOUNT, key=KEY, **fields):
    """The query of an account's token: spec 14.5."""
    fields = {"sv": VERSION, "ss": "t", "srt": "sco", "sp": "rwdlacu", "se": "2099-01-01T00:00:00Z", **fields}
    get = lambda name: fields.get(name) or ""
    lines = [account] + [get(n) for n in ("sp", "ss", "srt", "st", "se", "sip", "spr", "sv")]
    if fields["sv"] >= "2020-12-06":
        lines.append(get("ses"))
    fields["sig"] = hmac_text(key, "\n".join(lines) + "\n")
    return urllib.parse.urlencode({n: v for n, v in fields.items() if v is not None}, quote_via=urllib.parse.quote)
