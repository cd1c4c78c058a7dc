"""Raw requests about addresses, methods, headers, payloads, conditions, queries: what no SDK sends."""
import json
import re
import unittest

from raw_case import (EXTRAS, HOST, JSON, PORT, PREFIX, RawCase, ask, entity, fresh_table_name, main, table_sas)
from raw_client import ACCOUNT


class Styles(RawCase):
    section = "2.1"

    def test_host_style(self):
        """The account may stand in the host"""
        self.insert("p", "host", a=1)
        answer = ask("GET", entity(self.table, "p", "host"), prefix="", host=ACCOUNT + ".table.example.net")
        self.assertEqual((200, 1), (answer.status, answer.json.get("a")), answer)

    def test_host_style_secondary(self):
        """The secondary host reads"""
        self.insert("p", "second", a=1)
        answer = ask("GET", entity(self.table, "p", "second"), prefix="", host=ACCOUNT + "-secondary.table.example.net")
        self.assertEqual(200, answer.status, answer)

    def test_path_secondary(self):
        """The secondary path reads, and refuses writes"""
        self.insert("p", "path", a=1)
        secondary = PREFIX + "-secondary"
        self.assertEqual(200, ask("GET", entity(self.table, "p", "path"), prefix=secondary).status)
        self.assertEqual(403, ask("POST", "/" + self.table, {"PartitionKey": "p", "RowKey": "no"},
                                  prefix=secondary).status)

    def test_unknown_account(self):
        """An unknown account is 403 AuthenticationFailed, as a wrong signature is"""
        answer = ask("GET", "/Tables", prefix="/nosuchaccount", account="nosuchaccount")
        self.refused(403, "AuthenticationFailed", answer)


class Addresses(RawCase):
    section = "2.2"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls("test_encoded").insert("a", "b", v=1)

    def found(self, resource):
        answer = ask("GET", resource)
        self.assertEqual(200, answer.status, answer)
        return answer.json

    def test_encoded(self):
        """The whole segment may be percent-encoded"""
        self.assertEqual(1, self.found("/%s%%28PartitionKey%%3D%%27a%%27%%2CRowKey%%3D%%27b%%27%%29" % self.table)["v"])

    def test_order(self):
        """The keys may stand in either order, with a space behind the comma"""
        self.assertEqual(1, self.found("/%s(RowKey='b',%%20PartitionKey='a')" % self.table)["v"])

    def test_case(self):
        """The table's name is matched ignoring case"""
        self.assertEqual(1, self.found(entity(self.table.upper(), "a", "b"))["v"])

    def test_plus(self):
        """A plus in an address is a plus"""
        self.insert("x+y", "1")
        self.assertEqual("x+y", self.found("/%s(PartitionKey='x+y',RowKey='1')" % self.table)["PartitionKey"])

    def test_bad_quote(self):
        """A lone quote inside a key is 400 InvalidInput"""
        self.refused(400, "InvalidInput", ask("GET", "/%s(PartitionKey='o'neil',RowKey='b')" % self.table))

    def test_slash(self):
        """A slash in a key is 400 InvalidInput, another forbidden character OutOfRangeInput"""
        self.refused(400, "InvalidInput", ask("GET", "/%s(PartitionKey='a%%2Fb',RowKey='b')" % self.table))
        self.refused(400, "OutOfRangeInput", ask("GET", "/%s(PartitionKey='a%%23b',RowKey='b')" % self.table))

    def test_utf8(self):
        """Bytes that are no UTF-8 are 400"""
        self.assertEqual(400, ask("GET", "/%s(PartitionKey='%%ff',RowKey='b')" % self.table).status)

    def test_partition(self):
        """One key alone is a query of that partition"""
        self.assertEqual(["b"], [e["RowKey"] for e in self.found("/%s(PartitionKey='a')" % self.table)["value"]])

    def test_table(self):
        """One table is found by its quoted name, encoded or not"""
        self.assertEqual(self.table, self.found("/Tables('%s')" % self.table)["TableName"])
        self.assertEqual(self.table, self.found("/Tables(%%27%s%%27)" % self.table)["TableName"])
        self.refused(404, "ResourceNotFound", ask("GET", "/Tables('%s')" % fresh_table_name("missing")))


class Parameters(RawCase):
    section = "2.3"

    def test_format(self):
        """$format wins over Accept"""
        answer = ask("GET", "/Tables?$format=application/json;odata=nometadata", headers={"Accept": "application/atom+xml"})
        self.assertEqual((200, False), (answer.status, "odata.metadata" in answer.json))

    def test_encoded_name(self):
        """$filter may come as %24filter, with plus for space"""
        answer = ask("GET", "/Tables?%%24filter=TableName+eq+'%s'" % self.table)
        self.assertEqual([self.table], [t["TableName"] for t in answer.json["value"]])

    def test_unknown(self):
        """Unknown parameters are ignored"""
        self.assertEqual(200, ask("GET", "/Tables?If-Match=&nothing=1").status)

    def test_timeout(self):
        """A timeout that is no number is 400 InvalidQueryParameterValue"""
        self.refused(400, "InvalidQueryParameterValue", ask("GET", "/Tables?timeout=soon"))
        self.assertEqual(200, ask("GET", "/Tables?timeout=20").status)

    def test_unsupported(self):
        """$orderby, $skip, $inlinecount and $expand are 501 NotImplemented"""
        for name in ("$orderby=a", "$skip=1", "$inlinecount=allpages", "$expand=a"):
            self.refused(501, "NotImplemented", ask("GET", "/%s()?%s" % (self.table, name)))

    def test_comp(self):
        """An unknown comp is 400 InvalidQueryParameterValue"""
        self.refused(400, "InvalidQueryParameterValue", ask("GET", "/?restype=service&comp=nothing"))


class Methods(RawCase):
    section = "3"

    def test_tunnel(self):
        """POST with X-HTTP-Method merges, replaces and deletes"""
        self.insert("p", "tunnel", a=1, b=1)
        at = entity(self.table, "p", "tunnel")
        self.assertEqual(204, ask("POST", at, {"b": 2}, headers={"X-HTTP-Method": "MERGE", "If-Match": "*"}).status)
        self.assertEqual((1, 2), (lambda e: (e["a"], e["b"]))(self.get("p", "tunnel").json))
        self.assertEqual(204, ask("POST", at, {"c": 3}, headers={"X-HTTP-Method": "put"}).status)
        self.assertNotIn("a", self.get("p", "tunnel").json)
        self.assertEqual(204, ask("POST", at, headers={"X-HTTP-Method": "DELETE", "If-Match": "*",
                                                       "Content-Length": "0"}).status)
        self.assertEqual(404, self.get("p", "tunnel").status)

    def test_tunnel_table(self):
        """POST with X-HTTP-Method: DELETE deletes a table"""
        name = fresh_table_name()
        ask("POST", "/Tables", {"TableName": name})
        self.assertEqual(204, ask("POST", "/Tables('%s')" % name, headers={"X-HTTP-Method": "DELETE",
                                                                           "Content-Length": "0"}).status)
        self.assertEqual(404, ask("GET", "/Tables('%s')" % name).status)

    def test_tunnel_misused(self):
        """X-HTTP-Method on another method, twice, or of an unknown value is 400"""
        at = entity(self.table, "p", "r")
        self.refused(400, "XMethodNotUsingPost", ask("PUT", at, {}, headers={"X-HTTP-Method": "MERGE"}))
        self.refused(400, "XMethodIncorrectValue", ask("POST", at, {}, headers={"X-HTTP-Method": "FETCH"}))
        self.refused(400, "XMethodIncorrectCount", ask("POST", at, {}, headers={
            "X-HTTP-Method": "MERGE", "x-http-method": "PUT"}))

    def test_merge(self):
        """The verb MERGE is understood"""
        self.insert("p", "merge", a=1)
        self.assertEqual(204, ask("MERGE", entity(self.table, "p", "merge"), {"b": 2}).status)
        self.assertEqual(2, self.get("p", "merge").json["b"])

    def test_method(self):
        """A verb that a resource does not have is 405, and so is one that HTTP does not have"""
        self.refused(405, "MethodNotAllowed", ask("PUT", "/Tables", {"TableName": "x"}))
        self.assertEqual(405, ask("FROBNICATE", "/Tables").status)

    def test_insert_parentheses(self):
        """An insert may be posted to t() as well"""
        self.assertEqual(201, ask("POST", "/%s()" % self.table, {"PartitionKey": "p", "RowKey": "paren"}).status)


class RequestHeaders(RawCase):
    section = "4.1"

    def test_version(self):
        """An old or malformed version is 400 InvalidHeaderValue; none means the newest"""
        for version in ("2009-09-19", "yesterday"):
            self.refused(400, "InvalidHeaderValue", ask("GET", "/Tables", version=version))
        self.assertEqual(200, ask("GET", "/Tables", version=None).status)

    def test_if_none_match(self):
        """If-None-Match on a write is 400 InvalidInput"""
        self.refused(400, "InvalidInput", ask("PUT", entity(self.table, "p", "r"), {}, headers={"If-None-Match": "*"}))

    def test_data_service_version(self):
        """The forms of DataServiceVersion that clients send are taken, also low ones"""
        for value in ("3.0", "3.0;", "3.0;NetFx", "1.0", "2.0;NetFx"):
            answer = ask("GET", "/Tables", headers={"DataServiceVersion": value, "MaxDataServiceVersion": value})
            self.assertEqual(200, answer.status, value)


class ResponseHeaders(RawCase):
    section = "4.2"

    def test_common(self):
        """Every answer has an id of its own, the version asked for, a date, and echoes the client's id"""
        ids = set()
        for _ in range(3):
            answer = ask("GET", "/Tables", headers={"x-ms-client-request-id": "mine-1"})
            self.assertEqual("mine-1", answer.header("x-ms-client-request-id"))
            self.assertEqual("2019-02-02", answer.header("x-ms-version"))
            self.assertRegex(answer.header("Date"), r"^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$")
            self.assertRegex(answer.header("x-ms-request-id"), r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
            ids.add(answer.header("x-ms-request-id"))
        self.assertEqual(3, len(ids))

    def test_data(self):
        """Data answers say no-cache and nosniff, and no DataServiceVersion"""
        answer = self.insert("p", "headers")
        self.assertEqual(("no-cache", "nosniff", None),
                         (answer.header("Cache-Control"), answer.header("X-Content-Type-Options"),
                          answer.header("DataServiceVersion")))

    def test_insert(self):
        """An insert answers 201 with body, Location and ETag; under Prefer 204 without body and with an echo"""
        answer = self.insert("o'neil", "a b+c")
        url = "http://%s:%d%s/%s(PartitionKey='o''neil',RowKey='a%%20b%%2Bc')" % (HOST, PORT, PREFIX, self.table)
        self.assertEqual((url, None), (answer.header("Location"), answer.header("Preference-Applied")))
        self.assertEqual(answer.header("ETag"), answer.json["odata.etag"])
        quiet = ask("POST", "/" + self.table, {"PartitionKey": "p", "RowKey": "quiet"},
                    headers={"Prefer": "return-no-content"})
        self.assertEqual((204, b"", "return-no-content"), (quiet.status, quiet.body, quiet.header("Preference-Applied")))
        self.assertEqual(quiet.header("Location"), quiet.header("DataServiceId"))
        self.assertTrue(quiet.header("ETag"))

    def test_preference_on_failure(self):
        """Preference-Applied stands on a 409 as well"""
        self.insert("p", "again")
        answer = ask("POST", "/" + self.table, {"PartitionKey": "p", "RowKey": "again"},
                     headers={"Prefer": "return-no-content"})
        self.assertEqual((409, "return-no-content"), (answer.status, answer.header("Preference-Applied")))

    def test_delete(self):
        """A delete has no ETag, an update has one"""
        self.insert("p", "etag")
        at = entity(self.table, "p", "etag")
        self.assertTrue(ask("PUT", at, {"a": 1}).header("ETag"))
        self.assertIsNone(ask("DELETE", at, headers={"If-Match": "*"}).header("ETag"))

    def test_early(self):
        """Errors found before the data is asked are not marked no-cache"""
        for resource in ("/bad-name()", "/%s()" % fresh_table_name("missing"), "/%s()?$filter=a%%20b" % self.table):
            answer = ask("GET", resource)
            self.assertEqual((None, "nosniff"), (answer.header("Cache-Control"), answer.header("X-Content-Type-Options")),
                             resource)


class Formats(RawCase):
    section = "5"

    def test_levels(self):
        """Each level of metadata holds what it should, and the Content-Type says which it is"""
        self.insert("p", "level", d=1.5, l="5", **{"l@odata.type": "Edm.Int64"})
        at = lambda level: self.get("p", "level", headers={"Accept": "application/json;odata=%smetadata" % level})
        for level in ("no", "minimal", "full"):
            self.assertEqual(JSON % level, at(level).header("Content-Type"))
        self.assertEqual({"PartitionKey", "RowKey", "Timestamp", "d", "l"}, set(at("no").json))
        minimal = at("minimal").json
        self.assertEqual({"PartitionKey", "RowKey", "Timestamp", "d", "l", "l@odata.type", "odata.etag", "odata.metadata"},
                         set(minimal))
        base = "http://%s:%d%s/" % (HOST, PORT, PREFIX)
        self.assertEqual(base + "$metadata#%s/@Element" % self.table, minimal["odata.metadata"])
        full = at("full").json
        self.assertEqual((ACCOUNT + "." + self.table, entity(self.table, "p", "level")[1:],
                          base + entity(self.table, "p", "level")[1:], "Edm.DateTime"),
                         (full["odata.type"], full["odata.editLink"], full["odata.id"], full["Timestamp@odata.type"]))

    def test_accept(self):
        """Anything that can be JSON is JSON; Atom alone, or text/html, is 415"""
        for accept in ("*/*", "application/json", None, "text/html, application/json"):
            answer = ask("GET", "/Tables", headers={"Accept": accept})
            self.assertEqual((200, JSON % "minimal"), (answer.status, answer.header("Content-Type")), accept)
        for accept in ("application/atom+xml", "text/html"):
            self.assertEqual(415, ask("GET", "/Tables", headers={"Accept": accept}).status, accept)

    def test_atom_body(self):
        """A body in Atom is 415"""
        answer = ask("POST", "/" + self.table, "<entry/>", headers={"Content-Type": "application/atom+xml"})
        self.assertEqual(415, answer.status)

    def test_metadata_urls(self):
        """odata.metadata names the table, and the selection"""
        self.insert("p", "metadata", a=1)
        base = "http://%s:%d%s/$metadata#" % (HOST, PORT, PREFIX)
        told = lambda resource: ask("GET", resource).json["odata.metadata"]
        self.assertEqual(base + "Tables", told("/Tables"))
        self.assertEqual(base + self.table, told("/%s()" % self.table))
        self.assertEqual(base + self.table + "&$select=a,b", told("/%s()?$select=a,b" % self.table))
        self.assertEqual(base + self.table + "/@Element&$select=a", told(entity(self.table, "p", "metadata") + "?$select=a"))


class Bodies(RawCase):
    section = "5.5"

    def post(self, body, **options):
        return ask("POST", "/" + self.table, body, **options)

    def test_bad(self):
        """What is no single JSON object is 400 InvalidInput"""
        for body in ("", "[]", "5", "{", '{"PartitionKey":"p","RowKey":"x"} more', '{"PartitionKey":"p","RowKey":"x",}',
                     '{"PartitionKey":"p","RowKey":"x","a":{"b":1}}', '{"PartitionKey":"p","RowKey":"x","a":[1]}',
                     '{"PartitionKey":5,"RowKey":"x"}', '{"PartitionKey":"p","RowKey":"x","a":"1","a@odata.type":"Edm.Odd"}'):
            self.refused(400, "InvalidInput", self.post(body))

    def test_bom(self):
        """A byte order mark is tolerated"""
        self.assertEqual(201, self.post(b'\xef\xbb\xbf{"PartitionKey":"p","RowKey":"bom"}').status)

    def test_twice(self):
        """A property that stands twice is 400 DuplicatePropertiesSpecified"""
        self.refused(400, "DuplicatePropertiesSpecified", self.post('{"PartitionKey":"p","RowKey":"x","a":1,"a":2}'))

    def test_annotations(self):
        """An annotation may stand before or behind its property; needless ones are ignored"""
        body = ('{"odata.etag":"x","PartitionKey":"p","RowKey":"notes","a@odata.type":"Edm.Int64","a":"5","b":"7",'
                '"b@odata.type":"Edm.Int64","b@odata.type@odata.type":"x","gone@odata.type":"Edm.Guid",'
                '"PartitionKey@odata.type":"Edm.String","Timestamp":null}')
        answer = self.post(body)
        self.assertEqual((201, "5", "7"), (answer.status, answer.json.get("a"), answer.json.get("b")), answer)
        self.assertNotIn("gone", answer.json)

    def test_keys_needed(self):
        """An insert without a key, or with a null one, is 400 PropertiesNeedValue"""
        self.refused(400, "PropertiesNeedValue", self.post({"PartitionKey": "p"}))
        self.refused(400, "PropertiesNeedValue", self.post({"PartitionKey": "p", "RowKey": None}))

    def test_keys_differ(self):
        """Keys in the body of an update that differ from the address are 400 InvalidInput"""
        self.refused(400, "InvalidInput", ask("PUT", entity(self.table, "p", "1"), {"PartitionKey": "q", "RowKey": "1"}))

    def test_surrogate(self):
        """A lone surrogate is 400 InvalidInput"""
        self.refused(400, "InvalidInput", self.post('{"PartitionKey":"p","RowKey":"\\ud800"}'))

    def test_depth(self):
        """Deep nesting is 400, and the connection lives"""
        self.assertEqual(400, self.post('{"PartitionKey":"p","RowKey":"x","a":' + "[" * 100000 + "]" * 100000 + "}").status)

    def test_no_content_type(self):
        """A body without Content-Type is not held against the client"""
        self.assertIn(self.post({"PartitionKey": "p", "RowKey": "typeless"}, headers={"Content-Type": None}).status, (201, 400))


class Values(RawCase):
    section = "6"

    def stored(self, text, kind=None):
        """The rendering of one property, or the code of its refusal."""
        note = ',"v@odata.type":"%s"' % kind if kind else ""
        body = '{"PartitionKey":"p","RowKey":"%s","v":%s%s}' % (fresh_table_name("v"), text, note)
        answer = ask("POST", "/" + self.table, body)
        if answer.status != 201:
            return answer.code
        found = re.search(r'(?:"v@odata.type":"Edm\.(\w+)",)?"v":("(?:[^"\\]|\\.)*"|[^,}]*)', answer.text)
        return "%s %s" % (found.group(1) or "-", found.group(2))

    def test_inference(self):
        """Numbers are Int32 without point and within range, else Double, which always shows a point"""
        for text, expected in (("5", "- 5"), ("-2147483648", "- -2147483648"), ("2147483648", "- 2147483648.0"),
                               ("5.0", "- 5.0"), ("1e2", "- 100.0"), ("true", "- true"), ('"x"', '- "x"')):
            self.assertEqual(expected, self.stored(text), text)

    def test_string_forms(self):
        """Every annotated type is taken from a string"""
        for text, kind, expected in (
                ('"32"', "Edm.Int32", "- 32"), ('"true"', "Edm.Boolean", "- true"), ('"3.0"', "Edm.Double", "- 3.0"),
                ('"9007199254740993"', "Edm.Int64", 'Int64 "9007199254740993"'), ('"NaN"', "Edm.Double", 'Double "NaN"'),
                ('"-Infinity"', "Edm.Double", 'Double "-Infinity"'), ('"AAEC"', "Edm.Binary", 'Binary "AAEC"'),
                ('"6F9619FF-8B86-D011-B42D-00C04FC964FF"', "Edm.Guid", 'Guid "6f9619ff-8b86-d011-b42d-00c04fc964ff"'),
                ('"2024-05-06T09:08:09.1230000+02:00"', "Edm.DateTime", 'DateTime "2024-05-06T07:08:09.123Z"')):
            self.assertEqual(expected, self.stored(text, kind), text)

    def test_refused(self):
        """Text that is not of its type is 400"""
        for text, kind in (('"x"', "Edm.Int32"), ('"2147483648"', "Edm.Int32"), ('"x"', "Edm.Int64"), ('"1.5"', "Edm.Int64"),
                           ('"x"', "Edm.Guid"), ('"x"', "Edm.DateTime"), ('"!"', "Edm.Binary"), ("1e999", None)):
            self.assertEqual("InvalidInput", self.stored(text, kind), (text, kind))

    def test_early_date(self):
        """A date before 1601 is 400 OutOfRangeInput; both ends of the range are legal"""
        self.assertEqual("OutOfRangeInput", self.stored('"1600-12-31T23:59:59Z"', "Edm.DateTime"))
        for text in ("1601-01-01T00:00:00Z", "9999-12-31T23:59:59.9999999Z"):
            self.assertEqual('DateTime "%s"' % text, self.stored('"%s"' % text, "Edm.DateTime"))


class Names(RawCase):
    section = "7"

    def test_table_names(self):
        """Bad table names are told by length and by characters, on every verb; deleting one is 404"""
        for name, code in (("ab", "OutOfRangeInput"), ("a" * 64, "OutOfRangeInput"), ("a-b", "InvalidResourceName"),
                           ("1abc", "InvalidResourceName"), ("tables", "InvalidInput")):
            self.refused(400, code, ask("POST", "/Tables", {"TableName": name}))
        self.refused(400, "InvalidResourceName", ask("GET", "/a-b()"))
        self.refused(400, "OutOfRangeInput", ask("POST", "/ab", {"PartitionKey": "p", "RowKey": "r"}))
        self.refused(404, "ResourceNotFound", ask("DELETE", "/Tables('a-b')"))

    def test_property_names(self):
        """Names that are no identifiers are PropertyNameInvalid, long ones PropertyNameTooLong"""
        for name, code in (("a-b", "PropertyNameInvalid"), ("1a", "PropertyNameInvalid"), ("", "PropertyNameInvalid"),
                           ("n" * 256, "PropertyNameTooLong")):
            self.refused(400, code, ask("POST", "/" + self.table, {"PartitionKey": "p", "RowKey": "x", name: 1}))
        answer = self.insert("p", "names", **{"_a": 1, "\u00fcber": 2, "n" * 255: 3, "A": 4, "a": 5})
        self.assertEqual((4, 5), (answer.json["A"], answer.json["a"]))


class Conditions(RawCase):
    section = "9.3"

    def put(self, row, tag):
        return ask("PUT", entity(self.table, "p", row), {}, headers={"If-Match": tag})

    def test_malformed(self):
        """A malformed tag is 400 InvalidInput, an unknown one 412, on a missing row 404"""
        self.insert("p", "there")
        for tag in ('"strong"', "bare", 'W/"a", W/"b"', ""):
            self.refused(400, "InvalidInput", self.put("there", tag))
        self.refused(412, "UpdateConditionNotSatisfied", self.put("there", 'W/"wrong"'))
        self.refused(404, "ResourceNotFound", self.put("missing", 'W/"wrong"'))
        self.refused(404, "ResourceNotFound", self.put("missing", "*"))

    def test_delete_needs_tag(self):
        """A delete without If-Match is 400"""
        self.insert("p", "kept")
        self.assertEqual(400, ask("DELETE", entity(self.table, "p", "kept")).status)
        self.assertEqual(200, self.get("p", "kept").status)

    def test_missing_table(self):
        """On a missing table every condition is 404 TableNotFound"""
        answer = ask("PUT", entity(fresh_table_name("missing"), "p", "r"), {}, headers={"If-Match": "*"})
        self.refused(404, "TableNotFound", answer)


class Queries(RawCase):
    section = "11"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        one = cls("test_top")
        for i in range(6):
            one.insert("q", str(i), n=i)

    def test_top(self):
        """$top bounds the page; 0 is an empty page, what is no number from 0 to 1,000 is 400"""
        page = ask("GET", "/%s()?$top=2" % self.table)
        self.assertEqual(["0", "1"], [e["RowKey"] for e in page.json["value"]])
        self.assertTrue(page.header("x-ms-continuation-NextPartitionKey"))
        self.assertTrue(page.header("x-ms-continuation-NextRowKey"))
        self.assertEqual([], ask("GET", "/%s()?$top=0" % self.table).json["value"])
        for top in ("-1", "1001", "many"):
            self.refused(400, "InvalidInput", ask("GET", "/%s()?$top=%s" % (self.table, top)))

    def test_tokens(self):
        """A token resumes, encoded or not; a malformed one is 400; the last page has none"""
        first = ask("GET", "/%s()?$top=4" % self.table)
        partition = first.header("x-ms-continuation-NextPartitionKey")
        row = first.header("x-ms-continuation-NextRowKey")
        for pk, rk in ((partition, row), (partition.replace("!", "%21"), row.replace("!", "%21"))):
            rest = ask("GET", "/%s()?NextPartitionKey=%s&NextRowKey=%s" % (self.table, pk, rk))
            self.assertEqual(["4", "5"], [e["RowKey"] for e in rest.json["value"]])
            self.assertIsNone(rest.header("x-ms-continuation-NextPartitionKey"))
        start = ask("GET", "/%s()?NextPartitionKey=%s" % (self.table, partition))
        self.assertEqual(6, len(start.json["value"]))
        self.refused(400, "InvalidInput", ask("GET", "/%s()?NextPartitionKey=rubbish" % self.table))

    def test_blank(self):
        """A blank filter and a blank selection are none"""
        answer = ask("GET", "/%s()?$filter=&$select=" % self.table)
        self.assertEqual((200, 6), (answer.status, len(answer.json["value"])))

    def test_bare(self):
        """GET on the table without parentheses queries it"""
        self.assertEqual(6, len(ask("GET", "/" + self.table).json["value"]))

    def test_depth(self):
        """A filter of great depth or length is refused, not suffered"""
        for text in ("not%20" * 5000 + "n", "(" * 5000 + "n%20eq%201" + ")" * 5000):
            answer = ask("GET", "/%s()?$filter=%s" % (self.table, text))
            self.assertIn(answer.status, (400, 414), answer)
        self.assertEqual(200, ask("GET", "/%s()?$filter=n%%20eq%%201" % self.table).status)

    def test_positions(self):
        """A syntax error says where the parser stopped"""
        answer = ask("GET", "/%s()?$filter=aaa%%20bbb%%20ccc" % self.table)
        self.assertEqual("Syntax error at position 7 in 'aaa bbb ccc'.", answer.message)

    @unittest.skipUnless(EXTRAS == "partita", "the peer does not explain")
    def test_explain(self):
        """Who sends x-partita-explain is told plan and cost in headers; the body is the same, others are told nothing"""
        target = "/%s()?$filter=PartitionKey%%20eq%%20'q'%%20and%%20RowKey%%20ge%%20'2'%%20and%%20n%%20lt%%204" % self.table
        plain = ask("GET", target)
        told = ask("GET", target, headers={"x-partita-explain": "true"})
        self.assertEqual((200, plain.body), (told.status, told.body))
        self.assertEqual("row-range", told.header("x-partita-plan"))
        self.assertEqual("PartitionKey eq 'q' and RowKey ge '2'", told.header("x-partita-bounds"))
        self.assertEqual("n lt 4", told.header("x-partita-residual"))
        self.assertRegex(told.header("x-partita-cost"),
                         r"^scanned=4, returned=2, density=0.500, blocks-read=\d+, blocks-skipped=\d+, "
                         r"files-skipped=\d+, bytes-read=\d+, microseconds=\d+$")
        self.assertFalse([name for name, _ in plain.headers if name.lower().startswith("x-partita")])


class Errors(RawCase):
    section = "13"

    def test_json(self):
        """An error of the data layer is JSON with code, message, request id and time"""
        answer = self.get("p", "missing")
        self.assertEqual(JSON % "minimal", answer.header("Content-Type"))
        told = answer.json["odata.error"]
        self.assertEqual(("ResourceNotFound", "en-US"), (told["code"], told["message"]["lang"]))
        self.assertRegex(told["message"]["value"],
                         r"^The specified resource does not exist\.\nRequestId:%s\nTime:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$"
                         % answer.header("x-ms-request-id"))

    def test_xml(self):
        """A failed signature is XML, with the code in a header"""
        answer = ask("GET", "/Tables", headers={"Authorization": "SharedKey %s:AAAA" % ACCOUNT})
        self.assertEqual((403, "AuthenticationFailed"), (answer.status, answer.header("x-ms-error-code")))
        self.assertTrue(answer.header("Content-Type").startswith("application/xml"))
        self.assertIn("<m:code>AuthenticationFailed</m:code>", answer.text)

    def test_too_large(self):
        """A body of more than 4 MiB is 413 RequestBodyTooLarge"""
        answer = ask("POST", "/" + self.table, b"{" + b" " * (4 << 20) + b"}")
        self.refused(413, "RequestBodyTooLarge", answer)


if __name__ == "__main__":
    main()
