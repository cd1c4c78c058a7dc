"""Debian's azure-cli against a table service: az storage table, entity, cors, logging, metrics.

az takes seconds to start, so all commands but one run inside this process, through the same entry that the
program az calls.
"""
import io
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# Before az reads them: a configuration of its own, and nothing sent anywhere.
SCRATCH = tempfile.TemporaryDirectory(prefix="partita-az-")
os.environ.update(AZURE_CONFIG_DIR=SCRATCH.name, AZURE_CORE_COLLECT_TELEMETRY="0", AZURE_CORE_NO_COLOR="1",
                  AZURE_CORE_ONLY_SHOW_ERRORS="1")

from azure.cli.core import get_default_cli

from case_report import CONNECTION_STRING, ENDPOINT, SectionCase, fresh_table_name, main

CLI = get_default_cli()


class AzError(Exception):
    pass


class AzCase(SectionCase):
    suite = "azure-cli"

    def az(self, *words, connection=CONNECTION_STRING):
        """Runs `az storage WORDS...` and returns what it printed, from JSON."""
        out = io.StringIO()
        arguments = ["storage", *words, "--connection-string", connection, "--output", "json"]
        try:
            code = CLI.invoke(arguments, out_file=out)
        except SystemExit as stop:
            code = stop.code
        if code != 0:
            raise AzError(str(CLI.result.error if CLI.result else code))
        text = out.getvalue().strip()
        return json.loads(text) if text else None

    def entity(self, *words):
        return self.az("entity", *words, "--table-name", self.table)

    @classmethod
    def setUpClass(cls):
        cls.table = fresh_table_name("az")
        cls("az").az("table", "create", "--name", cls.table)

    @classmethod
    def tearDownClass(cls):
        cls("az").az("table", "delete", "--name", cls.table)


class Tables(AzCase):
    section = "10.1"

    def test_life(self):
        """A table is created, exists, is listed, is not created twice when told so, is deleted, and is gone"""
        name = fresh_table_name("life")
        self.assertEqual({"created": True}, self.az("table", "create", "--name", name))
        self.assertEqual({"exists": True}, self.az("table", "exists", "--name", name))
        self.assertIn(name, [t["name"] for t in self.az("table", "list")])
        self.az("table", "create", "--name", name)  # az says created here too: it asks for nothing else.
        with self.assertRaises(AzError):
            self.az("table", "create", "--name", name, "--fail-on-exist")
        self.assertEqual({"deleted": True}, self.az("table", "delete", "--name", name))
        self.assertEqual({"exists": False}, self.az("table", "exists", "--name", name))

    def test_program(self):
        """The program az itself answers the same"""
        run = subprocess.run(["az", "storage", "table", "exists", "--name", self.table, "--connection-string",
                              CONNECTION_STRING], capture_output=True, timeout=60, check=True)
        self.assertEqual({"exists": True}, json.loads(run.stdout))


class Entities(AzCase):
    section = "10.4"

    def test_life(self):
        """An entity is inserted with types, shown, merged, replaced and deleted"""
        self.entity("insert", "--entity", "PartitionKey=p", "RowKey=life", "s=text", "i=5", "i@odata.type=Edm.Int32",
                    "l=1099511627776", "l@odata.type=Edm.Int64", "b=true", "b@odata.type=Edm.Boolean",
                    "d=2.5", "d@odata.type=Edm.Double")
        keys = ("--partition-key", "p", "--row-key", "life")
        shown = self.entity("show", *keys)
        self.assertEqual("text", shown["s"])
        self.entity("merge", "--entity", "PartitionKey=p", "RowKey=life", "added=1")
        self.assertEqual(("text", "1"), (lambda e: (e["s"], str(e["added"])))(self.entity("show", *keys)))
        self.entity("replace", "--entity", "PartitionKey=p", "RowKey=life", "only=1")
        self.assertNotIn("s", self.entity("show", *keys))
        self.entity("delete", *keys)
        with self.assertRaises(AzError):
            self.entity("show", *keys)

    def test_if_exists(self):
        """Inserting what exists fails, merges or replaces, as it is told"""
        at = ("insert", "--entity", "PartitionKey=p", "RowKey=there")
        self.entity(*at, "a=1")
        with self.assertRaises(AzError):
            self.entity(*at, "a=2", "--if-exists", "fail")
        self.entity(*at, "b=2", "--if-exists", "merge")
        keys = ("--partition-key", "p", "--row-key", "there")
        self.assertEqual({"a", "b"}, set(self.entity("show", *keys)) & {"a", "b"})
        self.entity(*at, "b=3", "--if-exists", "replace")
        self.assertEqual({"b"}, set(self.entity("show", *keys)) & {"a", "b"})


class Queries(AzCase):
    section = "11"

    def test_query(self):
        """A query takes a filter, a selection and a number of results, and goes on by its marker"""
        for i in range(5):
            self.entity("insert", "--entity", "PartitionKey=q", "RowKey=%d" % i, "n=%d" % i, "n@odata.type=Edm.Int32",
                        "other=x")
        found = self.entity("query", "--filter", "PartitionKey eq 'q' and n ge 2", "--select", "n", "RowKey")
        self.assertEqual([2, 3, 4], [e["n"] for e in found["items"]])
        self.assertNotIn("other", found["items"][0])
        first = self.entity("query", "--filter", "PartitionKey eq 'q'", "--num-results", "2")
        self.assertEqual(["0", "1"], [e["RowKey"] for e in first["items"]])
        marker = ["%s=%s" % pair for pair in first["nextMarker"].items()]
        rest = self.entity("query", "--filter", "PartitionKey eq 'q'", "--num-results", "2", "--marker", *marker)
        self.assertEqual(["2", "3"], [e["RowKey"] for e in rest["items"]])


class Policies(AzCase):
    section = "15"

    def test_policies(self):
        """A stored policy is created, shown, changed, listed and deleted"""
        policy = lambda *words: self.az("table", "policy", *words, "--table-name", self.table)
        policy("create", "--name", "readers", "--permissions", "r", "--expiry", "2030-01-01T00:00Z")
        self.assertEqual("r", policy("show", "--name", "readers")["permission"])
        policy("update", "--name", "readers", "--permissions", "ra")
        self.assertEqual("ra", policy("show", "--name", "readers")["permission"])
        self.assertEqual(["readers"], list(policy("list")))
        policy("delete", "--name", "readers")
        self.assertEqual({}, policy("list") or {})


class Sas(AzCase):
    section = "14.4"

    def test_token(self):
        """A token that az makes reads, and cannot write"""
        self.entity("insert", "--entity", "PartitionKey=p", "RowKey=sas", "a=1")
        token = self.az("table", "generate-sas", "--name", self.table, "--permissions", "r", "--expiry",
                        "2035-01-01T00:00Z")
        by_token = "TableEndpoint=%s;SharedAccessSignature=%s" % (ENDPOINT, token)
        shown = self.az("entity", "show", "--table-name", self.table, "--partition-key", "p", "--row-key", "sas",
                        connection=by_token)
        self.assertEqual("1", str(shown["a"]))
        with self.assertRaises(AzError):
            self.az("entity", "delete", "--table-name", self.table, "--partition-key", "p", "--row-key", "sas",
                    connection=by_token)


class Properties(AzCase):
    section = "16"

    def test_cors(self):
        """CORS rules are added, listed and cleared"""
        self.az("cors", "clear", "--services", "t")
        self.az("cors", "add", "--services", "t", "--origins", "https://example.com", "--methods", "GET", "PUT",
                "--max-age", "60")
        rules = self.az("cors", "list", "--services", "t")
        self.assertEqual([("https://example.com", 60)], [(r["AllowedOrigins"], r["MaxAgeInSeconds"]) for r in rules])
        self.az("cors", "clear", "--services", "t")
        self.assertEqual([], self.az("cors", "list", "--services", "t"))

    def test_logging(self):
        """Logging and metrics settings are changed and shown"""
        self.az("logging", "update", "--services", "t", "--log", "rw", "--retention", "7", "--version", "1.0")
        shown = self.az("logging", "show", "--services", "t")["table"]
        self.assertEqual((True, True, False, 7), (shown["read"], shown["write"], shown["delete"],
                                                  shown["retentionPolicy"]["days"]))
        self.az("logging", "off", "--services", "t")
        self.az("metrics", "update", "--services", "t", "--hour", "true", "--api", "true", "--retention", "7")
        self.assertTrue(self.az("metrics", "show", "--services", "t")["table"]["hour"]["enabled"])

    def test_stats(self):
        """Statistics are shown"""
        self.assertEqual("live", self.az("table", "stats")["geoReplication"]["status"])


if __name__ == "__main__":
    main()
