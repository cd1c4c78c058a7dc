"""Raw requests about HTTP itself, transactions, authentication, CORS, TLS and the admin address."""
import base64
import os
import re
import socket
import ssl
import unittest
import uuid

from raw_case import (EXTRAS, HOST, PORT, PREFIX, Connection, RawCase, account_sas, ask, entity, fresh_table_name,
                      http_date, main, request_bytes, table_sas)
from raw_client import ACCOUNT

ONLY_PARTITA = unittest.skipUnless(EXTRAS == "partita", "the peer has neither TLS here nor an admin address")


class Framing(RawCase):
    section = "4.1"

    def get_bytes(self, row, **options):
        return request_bytes("GET", PREFIX + entity(self.table, "p", row), **options)

    def test_pipeline(self):
        """Requests sent without waiting are answered in order"""
        for i in range(20):
            self.insert("p", "pipe%d" % i, n=i)
        with Connection() as one:
            one.send(b"".join(self.get_bytes("pipe%d" % i) for i in range(20)))
            self.assertEqual(list(range(20)), [one.read().json["n"] for _ in range(20)])

    def test_pipelined_writes(self):
        """A read pipelined behind a write sees it"""
        body = b'{"PartitionKey":"p","RowKey":"behind"}'
        with Connection() as one:
            one.send(request_bytes("POST", PREFIX + "/" + self.table, body) + self.get_bytes("behind"))
            self.assertEqual([201, 200], [one.read("POST").status, one.read().status])

    def test_byte_by_byte(self):
        """A request that comes in single bytes is understood"""
        self.insert("p", "slow")
        with Connection() as one:
            for byte in self.get_bytes("slow"):
                one.send(bytes([byte]))
            self.assertEqual(200, one.read().status)

    def test_chunked(self):
        """A chunked body is joined, extensions and trailers included"""
        body = b'{"PartitionKey":"p","RowKey":"chunked","a":1}'
        data = request_bytes("POST", PREFIX + "/" + self.table, b"", headers={"Transfer-Encoding": "chunked"})
        for i in range(0, len(body), 7):
            data += b"%x;x=y\r\n%s\r\n" % (len(body[i:i + 7]), body[i:i + 7])
        with Connection() as one:
            one.send(data + b"0\r\nX-Trailer: 1\r\n\r\n")
            self.assertEqual(201, one.read("POST").status)
        self.assertEqual(1, self.get("p", "chunked").json["a"])

    def test_expect(self):
        """Expect: 100-continue is answered before the body comes"""
        body = b'{"PartitionKey":"p","RowKey":"expect"}'
        data = request_bytes("POST", PREFIX + "/" + self.table, b"",
                             headers={"Expect": "100-continue", "Content-Length": str(len(body))})
        with Connection() as one:
            one.send(data)
            self.assertEqual(100, one.read("POST").status)
            one.send(body)
            self.assertEqual(201, one.read("POST").status)

    def framing_refused(self, data, *statuses):
        """The connection ends, after one of these answers if any; another one is served as ever."""
        with Connection() as one:
            one.send(data)
            self.assertIn(one.read("POST").status, statuses)
            self.assertTrue(one.is_closed())
        self.assertEqual(200, ask("GET", "/Tables").status)

    def test_both_lengths(self):
        """A request with Content-Length and chunked coding is refused, and the connection ends"""
        data = request_bytes("POST", PREFIX + "/" + self.table, b"5\r\nhello\r\n0\r\n\r\n",
                             headers={"Transfer-Encoding": "chunked", "Content-Length": "5"})
        self.framing_refused(data, 400)

    def test_two_lengths(self):
        """A request with two different lengths is refused, and the connection ends"""
        data = request_bytes("POST", PREFIX + "/" + self.table, b"hello",
                             headers={"Content-Length": "5", "content-length": "6"})
        self.framing_refused(data, 400)

    def test_rubbish(self):
        """Bytes that are no request are refused, and the connection ends"""
        self.framing_refused(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400)
        self.framing_refused(b"GET /\r\n\r\n", 400)
        self.framing_refused(b"GET / HTTP/1.1\r\nHost: x\r\nBad Header: 1\r\n\r\n", 400)

    def test_large_header(self):
        """Headers without end are refused, and so is an address without end"""
        self.framing_refused(b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * (1 << 20) + b"\r\n\r\n", 400, 413, 431)
        self.framing_refused(b"GET /" + b"x" * (1 << 20) + b" HTTP/1.1\r\nHost: x\r\n\r\n", 400, 414, 431)

    def test_no_length(self):
        """A write without any length is 411 MissingContentLengthHeader"""
        answer = ask("POST", "/" + self.table, headers={"Content-Type": "application/json"})
        self.assertEqual((411, "MissingContentLengthHeader"), (answer.status, answer.code), answer)

    def test_no_host(self):
        """A request without Host is 400"""
        with Connection() as one:
            one.send(b"GET /Tables HTTP/1.1\r\n\r\n")
            self.assertEqual(400, one.read().status)

    def test_close(self):
        """Connection: close is obeyed, and HTTP/1.0 closes by itself"""
        with Connection() as one:
            one.send(request_bytes("GET", PREFIX + "/Tables", headers={"Connection": "close"}))
            self.assertEqual(200, one.read().status)
            self.assertTrue(one.is_closed())
        with Connection() as one:
            one.send(request_bytes("GET", PREFIX + "/Tables").replace(b"HTTP/1.1", b"HTTP/1.0", 1))
            self.assertEqual(200, one.read().status)
            self.assertTrue(one.is_closed())

    def test_head(self):
        """HEAD is answered without a body, and the connection goes on"""
        with Connection() as one:
            head = request_bytes("HEAD", PREFIX + "/%s?comp=acl" % self.table)
            one.send(head + request_bytes("GET", PREFIX + "/Tables"))
            self.assertEqual(200, one.read("HEAD").status)
            self.assertEqual(200, one.read("GET").status)

    def test_half_sent(self):
        """A client that leaves in the middle of a request harms nobody"""
        whole = request_bytes("POST", PREFIX + "/" + self.table, b'{"PartitionKey":"p","RowKey":"half"}')
        for size in (1, 20, len(whole) // 2, len(whole) - 1):
            with Connection() as one:
                one.send(whole[:size])
        self.assertEqual(404, self.get("p", "half").status)
        self.assertEqual(200, ask("GET", "/Tables").status)

    def test_not_reading(self):
        """A client that asks much and reads nothing harms nobody"""
        self.insert("p", "blob", **{"b%d" % i: "x" * 30000 for i in range(10)})
        with Connection() as one:
            one.socket.settimeout(2)
            try:
                one.send(self.get_bytes("blob") * 200)
            except socket.timeout:
                pass  # The server stopped reading: as it should, once it cannot send.
            self.assertEqual(200, ask("GET", "/Tables").status)


class Batches(RawCase):
    section = "12"

    def batch(self, parts, eol="\r\n", closing=True, content_type=None, **options):
        """Sends parts, each a list of lines, as one changeset."""
        lines = ["--batch_a1", "Content-Type: multipart/mixed; boundary=changeset_b2", ""]
        for part in parts:
            lines += ["--changeset_b2", "Content-Type: application/http", "Content-Transfer-Encoding: binary", "", *part]
        lines += ["--changeset_b2--"]
        if closing:
            lines += ["--batch_a1--", ""]
        body = eol.join(lines).encode()
        kind = content_type or "multipart/mixed; boundary=batch_a1"
        return ask("POST", "/$batch", body, headers={"Content-Type": kind}, **options)

    def post(self, row, url="/%s", *headers, partition="b", body=None):
        return ["POST %s HTTP/1.1" % (url % self.table), "Content-Type: application/json", "Prefer: return-no-content",
                *headers, "", body or '{"PartitionKey":"%s","RowKey":"%s"}' % (partition, row)]

    def statuses(self, answer):
        self.assertEqual(202, answer.status, answer)
        return [int(s) for s in re.findall(r"^HTTP/1\.1 (\d+)", answer.text, re.M)]

    def failure(self, answer):
        self.assertEqual(1, len(self.statuses(answer)), answer)
        return (self.statuses(answer)[0], answer.code, answer.message)

    def test_form(self):
        """The answer has the boundaries and the lines that clients look for"""
        answer = self.batch([self.post("form1"), self.post("form2")])
        self.assertEqual([204, 204], self.statuses(answer))
        self.assertRegex(answer.header("Content-Type"), r"^multipart/mixed; ?boundary=batchresponse_[0-9a-f-]{36}$")
        self.assertRegex(answer.text, r"(?s)^--batchresponse_\S+\r\nContent-Type: multipart/mixed; "
                                      r"boundary=changesetresponse_\S+\r\n\r\n--changesetresponse_\S+\r\n"
                                      r"Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
                                      r"HTTP/1\.1 204 No Content\r\n")
        self.assertEqual(2, len(re.findall(r"^ETag: W/", answer.text, re.M)))
        self.assertEqual(2, len(re.findall(r"^DataServiceVersion: 3\.0;", answer.text, re.M)))
        self.assertTrue(answer.text.rstrip().endswith("--"))

    def test_line_feeds(self):
        """Bare line feeds and a missing end are tolerated"""
        answer = self.batch([self.post("lf")], eol="\n", closing=False)
        self.assertEqual([204], self.statuses(answer))
        self.assertEqual(200, self.get("b", "lf").status)

    def test_delete_without_blank(self):
        """A delete whose headers end without an empty line is understood"""
        self.insert("b", "blankless")
        part = ["DELETE http://%s:%d%s HTTP/1.1" % (HOST, PORT, PREFIX + entity(self.table, "b", "blankless")), "If-Match: *"]
        self.assertEqual([204], self.statuses(self.batch([part], eol="\n")))
        self.assertEqual(404, self.get("b", "blankless").status)

    def test_urls(self):
        """Inner addresses may be absolute, of another host, with or without account"""
        urls = ("http://other.example%s/%%s" % PREFIX, PREFIX + "/%s", "https://acct.table.example/%s", "/%s?$format=application/json")
        answer = self.batch([self.post("url%d" % i, url) for i, url in enumerate(urls)])
        self.assertEqual([204] * 4, self.statuses(answer))

    def test_content_id(self):
        """A Content-ID among the inner headers comes back"""
        answer = self.batch([self.post("id", "/%s", "Content-ID: 7")])
        self.assertIn("Content-ID: 7\r\n", answer.text)

    def test_tunnel(self):
        """Inside a batch POST may be a merge, too"""
        self.insert("b", "tunnel", a=1)
        part = ["POST %s HTTP/1.1" % entity(self.table, "b", "tunnel"), "X-HTTP-Method: MERGE", "If-Match: *",
                "Content-Type: application/json", "", '{"b":2}']
        self.assertEqual([204], self.statuses(self.batch([part])))
        self.assertEqual((1, 2), (lambda e: (e["a"], e["b"]))(self.get("b", "tunnel").json))

    def test_insert_with_body(self):
        """An insert without Prefer gives its entity back in its part"""
        part = ["POST /%s HTTP/1.1" % self.table, "Content-Type: application/json", "Accept: application/json;odata=nometadata",
                "", '{"PartitionKey":"b","RowKey":"body","a":1}']
        answer = self.batch([part])
        self.assertEqual([201], self.statuses(answer))
        self.assertIn('"a":1', answer.text)

    def test_two_partitions(self):
        """A batch over two partitions fails at the first operation that differs, applying nothing"""
        answer = self.batch([self.post("one"), self.post("two", partition="c")])
        self.assertEqual((400, "CommandsInBatchActOnDifferentPartitions",
                          "1:All commands in a batch must operate on same entity group."), self.failure(answer))
        self.assertEqual(404, self.get("b", "one").status)

    def test_duplicate(self):
        """A row that stands twice is InvalidDuplicateRow with its index"""
        told = self.failure(self.batch([self.post("dup"), self.post("dup")]))
        self.assertEqual((400, "InvalidDuplicateRow"), told[:2])
        self.assertTrue(told[2].startswith("1:The batch request contains multiple changes with same row key."))

    def test_conflict(self):
        """A conflict is one part with the error, its index before the message, and nothing is applied"""
        self.insert("b", "there")
        told = self.failure(self.batch([self.post("new1"), self.post("new2"), self.post("there")]))
        self.assertEqual((409, "EntityAlreadyExists", "2:The specified entity already exists."), told)
        self.assertEqual(404, self.get("b", "new1").status)

    def test_bad_part(self):
        """A part whose entity breaks a rule fails the batch at its index"""
        told = self.failure(self.batch([self.post("ok"), self.post("bad", body='{"PartitionKey":"b","RowKey":"bad","a-b":1}')]))
        self.assertEqual((400, "PropertyNameInvalid"), told[:2])
        self.assertTrue(told[2].startswith("1:"))

    def test_unreadable(self):
        """What is no multipart is a plain 400 InvalidInput"""
        answer = ask("POST", "/$batch", b"rubbish", headers={"Content-Type": "multipart/mixed; boundary=x"})
        self.refused(400, "InvalidInput", answer)
        self.assertEqual(400, ask("POST", "/$batch", b"rubbish", headers={"Content-Type": "multipart/mixed"}).status)

    def test_query(self):
        """A batch of one query answers with it"""
        self.insert("b", "query", a=1)
        body = "\r\n".join(["--batch_a1", "Content-Type: application/http", "Content-Transfer-Encoding: binary", "",
                            "GET %s HTTP/1.1" % entity(self.table, "b", "query"), "Accept: application/json;odata=nometadata",
                            "", "", "--batch_a1--", ""]).encode()
        answer = ask("POST", "/$batch", body, headers={"Content-Type": "multipart/mixed; boundary=batch_a1"})
        self.assertEqual([200], self.statuses(answer))
        self.assertIn('"a":1', answer.text)

    def test_signature(self):
        """A batch with a bad signature is one plain 403"""
        answer = self.batch([self.post("bad")], key=base64.b64encode(b"other").decode())
        self.refused(403, "AuthenticationFailed", answer)

    def test_sas(self):
        """The rights of a token hold for each part of a batch"""
        query = "?" + table_sas(self.table, sp="a", spk="b", epk="b")
        send = lambda parts: self.send_with(query, parts)
        self.assertEqual([204], self.statuses(send([self.post("sas1")])))
        self.assertEqual(403, send([["DELETE %s HTTP/1.1" % entity(self.table, "b", "sas1"), "If-Match: *", ""]]).status)
        self.assertEqual(403, send([self.post("sas2", partition="c")]).status)

    def send_with(self, query, parts):
        lines = ["--batch_a1", "Content-Type: multipart/mixed; boundary=changeset_b2", ""]
        for part in parts:
            lines += ["--changeset_b2", "Content-Type: application/http", "Content-Transfer-Encoding: binary", "", *part]
        body = "\r\n".join(lines + ["--changeset_b2--", "--batch_a1--", ""]).encode()
        return ask("POST", "/$batch" + query, body, headers={"Content-Type": "multipart/mixed; boundary=batch_a1"}, auth=None)


class Authentication(RawCase):
    section = "14"

    def test_schemes(self):
        """SharedKey and SharedKeyLite are taken, with x-ms-date or Date, which the former wins"""
        for scheme in ("SharedKey", "SharedKeyLite"):
            self.assertEqual(200, ask("GET", "/Tables", auth=scheme).status)
            self.assertEqual(200, ask("GET", "/Tables", auth=scheme, headers={"Date": http_date()}).status)
            both = {"Date": "Thu, 01 Jan 1970 00:00:00 GMT", "x-ms-date": http_date()}
            self.assertEqual(200, ask("GET", "/Tables", auth=scheme, headers=both).status)

    def test_signed_content(self):
        """SharedKey covers method, Content-MD5 and Content-Type"""
        md5 = {"Content-MD5": base64.b64encode(uuid.uuid4().bytes).decode(), "Content-Type": "application/json;odata=verbose-not"}
        data = request_bytes("GET", PREFIX + "/Tables", headers=md5, auth="SharedKey")
        for found, other in ((b"GET /", b"PUT /"), (b"odata=verbose-not", b"odata=verbose")):
            with Connection() as one:
                one.send(data.replace(found, other, 1))
                self.assertEqual(403, one.read().status)

    def test_clock(self):
        """A date 16 minutes off is 403, 14 minutes off is taken"""
        for minutes in (-16, 16):
            self.refused(403, "AuthenticationFailed", ask("GET", "/Tables", date=http_date(minutes * 60)))
        for minutes in (-14, 14):
            self.assertEqual(200, ask("GET", "/Tables", date=http_date(minutes * 60)).status)

    def test_malformed(self):
        """A malformed Authorization is 400 InvalidAuthenticationInfo"""
        for value in ("SharedKey", "SharedKey nocolon", "Digest a:b"):
            self.refused(400, "InvalidAuthenticationInfo", ask("GET", "/Tables", headers={"Authorization": value}))

    def test_anonymous(self):
        """Nobody's request is 403 in old versions and 401 with a challenge in new ones"""
        self.refused(403, "AuthenticationFailed", ask("GET", "/Tables", auth=None))
        answer = ask("GET", "/Tables", auth=None, version="2020-12-06")
        self.refused(401, "InvalidAuthenticationInfo", answer)
        self.assertTrue(answer.header("WWW-Authenticate").startswith("Bearer authorization_uri="))

    def by_token(self, query, resource=None, method="GET", body=None, **options):
        resource = resource or "/%s()" % self.table
        return ask(method, resource + "?" + query, body, auth=None, **options)

    def test_token_forms(self):
        """Tokens of every version are taken, with ranges, protocols and addresses that fit"""
        self.insert("p", "token")
        for fields in ({}, {"sv": "2013-08-15", "resource": "/%s/%s" % (ACCOUNT, self.table.lower())},
                       {"sv": "2015-04-05", "spr": "https,http", "sip": "127.0.0.1"}, {"sip": "127.0.0.0-127.0.0.255"},
                       {"sv": "2020-12-06", "se": "2099-01-01"}, {"spk": "p", "epk": "p", "srk": "t", "erk": "u"}):
            answer = self.by_token(table_sas(self.table, **fields))
            found = [e["RowKey"] for e in answer.json["value"] if e["PartitionKey"] == "p"] if answer.status == 200 else answer
            self.assertEqual(["token"], found, fields)

    def test_token_refused(self):
        """Tokens that do not fit are refused, each with its code"""
        for fields, code in (({"se": "2001-01-01T00:00:00Z"}, "AuthenticationFailed"), ({"st": "2098-01-01"}, "AuthenticationFailed"),
                             ({"sp": "a"}, "AuthorizationPermissionMismatch"), ({"sip": "10.0.0.1"}, "AuthorizationSourceIPMismatch"),
                             ({"spr": "https"}, "AuthorizationProtocolMismatch"), ({"si": "nobody", "sp": None, "se": None}, "AuthenticationFailed"),
                             ({"key": base64.b64encode(b"other").decode()}, "AuthenticationFailed")):
            self.refused(403, code, self.by_token(table_sas(self.table, **fields)))
        query = table_sas(self.table)
        self.refused(403, "AuthenticationFailed", self.by_token(query.replace("sp=r", "sp=raud")))

    def test_range_of_point(self):
        """A point read outside the range of a token is 404, a write 403"""
        self.insert("out", "1")
        query = table_sas(self.table, sp="raud", spk="in", epk="in")
        self.assertEqual(404, self.by_token(query, entity(self.table, "out", "1")).status)
        self.refused(403, "AuthorizationFailure", self.by_token(
            query, entity(self.table, "out", "2"), "PUT", {"a": 1}))

    def test_range_of_pages(self):
        """A filter or a continuation cannot lead out of the range of a token"""
        self.insert("zz", "1")
        query = table_sas(self.table, spk="in", epk="in")
        filtered = self.by_token(query + "&$filter=PartitionKey%20eq%20'zz'%20or%20PartitionKey%20ne%20''")
        self.assertEqual([], [e["PartitionKey"] for e in filtered.json["value"] if e["PartitionKey"] != "in"])
        beyond = self.by_token(query + "&NextPartitionKey=%s&NextRowKey=%s" % ("1!4!eno-", "1!4!MQ--"))
        self.assertTrue(beyond.status == 400 or beyond.json["value"] == [], beyond)

    def test_account_token(self):
        """An account token's service, type and rights are each looked at"""
        self.assertEqual(200, self.by_token(account_sas(), "/Tables").status)
        self.assertEqual(200, self.by_token(account_sas(sv="2020-12-06"), "/Tables").status)
        self.refused(403, "AuthorizationServiceMismatch", self.by_token(account_sas(ss="b"), "/Tables"))
        self.refused(403, "AuthorizationResourceTypeMismatch", self.by_token(account_sas(srt="o"), "/Tables"))
        self.refused(403, "AuthorizationPermissionMismatch", self.by_token(account_sas(sp="r"), "/Tables"))
        self.assertEqual(404, self.by_token(account_sas() + "&comp=acl", "/" + self.table).status)


class Cors(RawCase):
    section = "16.3"

    def setUp(self):
        rules = ("<AllowedOrigins>https://a.example</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods>"
                 "<AllowedHeaders>x-ms-*</AllowedHeaders><ExposedHeaders>x-ms-version</ExposedHeaders>"
                 "<MaxAgeInSeconds>60</MaxAgeInSeconds>")
        self.set("<CorsRule>%s</CorsRule>" % rules)

    def tearDown(self):
        self.set("")

    def set(self, rules):
        body = "<StorageServiceProperties><Cors>%s</Cors></StorageServiceProperties>" % rules
        answer = ask("PUT", "/?restype=service&comp=properties", body, headers={"Content-Type": "application/xml"})
        self.assertEqual(202, answer.status, answer)

    def preflight(self, **headers):
        headers = {n.replace("_", "-"): v for n, v in headers.items()}
        return ask("OPTIONS", "/" + self.table, headers=headers, auth=None)

    def test_preflight(self):
        """A preflight that fits is answered with what is allowed; others are 403, incomplete ones 400"""
        answer = self.preflight(Origin="https://a.example", Access_Control_Request_Method="PUT",
                                Access_Control_Request_Headers="x-ms-date")
        self.assertEqual((200, "https://a.example", "60"),
                         (answer.status, answer.header("Access-Control-Allow-Origin"), answer.header("Access-Control-Max-Age")))
        self.assertEqual(403, self.preflight(Origin="https://b.example", Access_Control_Request_Method="PUT").status)
        self.assertEqual(403, self.preflight(Origin="https://a.example", Access_Control_Request_Method="DELETE").status)
        self.assertEqual(400, self.preflight(Access_Control_Request_Method="PUT").status)

    def test_actual(self):
        """An actual request from an allowed origin is marked, any other is answered unmarked"""
        marked = ask("GET", "/Tables", headers={"Origin": "https://a.example"})
        self.assertEqual((200, "https://a.example"), (marked.status, marked.header("Access-Control-Allow-Origin")))
        plain = ask("GET", "/Tables", headers={"Origin": "https://b.example"})
        self.assertEqual((200, None), (plain.status, plain.header("Access-Control-Allow-Origin")))


@ONLY_PARTITA
class Accounts(RawCase):
    section = "2.1 accounts"

    def test_apart(self):
        """Two accounts see nothing of each other, by key and by token"""
        other, key = os.environ["TABLE_SECOND_ACCOUNT"], os.environ["TABLE_SECOND_KEY"]
        as_other = lambda method, resource, body=None, **o: ask(method, resource, body, prefix="/" + other, account=other, key=key, **o)
        self.assertNotIn(self.table, as_other("GET", "/Tables").text)
        self.assertEqual(201, as_other("POST", "/Tables", {"TableName": self.table}).status)
        self.insert("p", "mine")
        self.assertEqual(404, as_other("GET", entity(self.table, "p", "mine")).status)
        self.refused(403, "AuthenticationFailed", ask("GET", "/Tables", account=other, key=key))
        stolen = ask("GET", "/%s()?%s" % (self.table, table_sas(self.table)), prefix="/" + other, auth=None)
        self.refused(403, "AuthenticationFailed", stolen)
        self.assertEqual(204, as_other("DELETE", "/Tables('%s')" % self.table).status)
        self.assertEqual(200, self.get("p", "mine").status)


@ONLY_PARTITA
class Tls(RawCase):
    section = "TLS"

    def connect(self, **limits):
        context = ssl.create_default_context(cafile=os.environ["TABLE_TLS_CERT"])
        for name, value in limits.items():
            setattr(context, name, value)
        return Connection(HOST, int(os.environ["TABLE_TLS_PORT"]),
                          wrap=lambda raw: context.wrap_socket(raw, server_hostname="localhost"))

    def test_versions(self):
        """TLS 1.2 and 1.3 are spoken, and tokens for https alone are taken"""
        self.insert("p", "tls")
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            with self.connect(minimum_version=version, maximum_version=version) as one:
                answer = ask("GET", "/%s()?%s" % (self.table, table_sas(self.table, spr="https")), auth=None, connection=one)
                self.assertEqual(200, answer.status, answer)
                body = {"PartitionKey": "p", "RowKey": str(version), "big": "x" * 30000}
                made = ask("POST", "/" + self.table, body, connection=one)
                self.assertTrue(made.header("Location").startswith("https://"), made)
                self.assertEqual(200, ask("GET", entity(self.table, "p", str(version)), connection=one).status)

    def test_old(self):
        """Versions before 1.2 are refused"""
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            self.connect(minimum_version=ssl.TLSVersion.TLSv1, maximum_version=ssl.TLSVersion.TLSv1_1)

    def test_plain(self):
        """Plain HTTP on the TLS port ends that connection and harms no other"""
        with Connection(HOST, int(os.environ["TABLE_TLS_PORT"])) as one:
            one.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            try:
                one.read()
            except (ConnectionError, ValueError, IndexError):
                pass
        with self.connect() as one:
            self.assertEqual(200, ask("GET", "/Tables", connection=one).status)


@ONLY_PARTITA
class Admin(RawCase):
    section = "admin"

    def page(self, path, host="localhost"):
        with Connection(HOST, int(os.environ["TABLE_ADMIN_PORT"])) as one:
            one.send(b"GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (path.encode(), host.encode()))
            return one.read()

    def test_health(self):
        """/healthz and /readyz say yes, and nothing else is there"""
        self.assertEqual((200, 200, 404), tuple(self.page(p).status for p in ("/healthz", "/readyz", "/Tables")))

    def test_names(self):
        """It answers to addresses and localhost, not to names that a web page may point at it"""
        hosts = ("127.0.0.1:10002", "[::1]", "LOCALHOST:1", "table.example")
        self.assertEqual([200, 200, 200, 403], [self.page("/healthz", host).status for host in hosts])

    def test_metrics(self):
        """/metrics counts requests by operation and class of status"""
        def count(labels):
            return int(re.search(r"^partita_http_requests_total\{%s\} (\d+)$" % labels, self.page("/metrics").text, re.M).group(1))
        hits, misses = 'operation="GetEntity",status="2xx"', 'operation="GetEntity",status="4xx"'
        before = count(hits), count(misses)
        self.insert("p", "metrics")
        self.get("p", "metrics")
        self.get("p", "missing")
        self.assertEqual((1, 1), (count(hits) - before[0], count(misses) - before[1]))
        for line in self.page("/metrics").text.splitlines():
            self.assertRegex(line, r"^(# (HELP|TYPE) partita_\w+ .+|partita_\w+(\{[^}]*\})? [0-9.e+-]+)$")


if __name__ == "__main__":
    main()
