"""azure.data.tables of Debian's python3-azure against a table service: filters, selections, pages, transactions."""
import datetime
import uuid

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.data.tables import (EdmType, EntityProperty, RequestTooLargeError, TableTransactionError, UpdateMode)

from python_case import PythonCase, code_of, main


class Filters(PythonCase):
    section = "11.3"
    GUID = uuid.UUID("6f9619ff-8b86-d011-b42d-00c04fc964ff")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        utc = datetime.timezone.utc
        rows = [
            {"RowKey": "1", "s": "apple", "i": 5, "l": EntityProperty(2**40, EdmType.INT64), "d": 1.5, "b": True,
             "t": datetime.datetime(2024, 5, 6, tzinfo=utc), "g": cls.GUID, "x": b"\x01\x02"},
            {"RowKey": "2", "s": "it's", "i": -7, "l": EntityProperty(5, EdmType.INT64), "d": 5.0, "b": False,
             "t": datetime.datetime(2025, 5, 6, tzinfo=utc), "g": uuid.UUID(int=0), "x": b"\x01"},
            {"RowKey": "3", "s": "Banana", "i": 100},
            {"RowKey": "4", "s": 5, "i": "5"},
            {"RowKey": "5"},
        ]
        cls.table.submit_transaction([("create", dict(row, PartitionKey="f")) for row in rows])
        cls.table.create_entity({"PartitionKey": "g", "RowKey": "1", "s": "apple", "i": 5})

    def rows(self, query, partition="f", **parameters):
        found = self.table.query_entities("PartitionKey eq '%s' and ( %s )" % (partition, query), parameters=parameters)
        return "".join(e["RowKey"] for e in found)

    def test_strings(self):
        """Strings compare by code unit, capitals first, quotes doubled"""
        self.assertEqual("1", self.rows("s eq 'apple'"))
        self.assertEqual("2", self.rows("s eq 'it''s'"))
        self.assertEqual("12", self.rows("s gt 'Z'"))
        self.assertEqual("3", self.rows("s ge 'B' and s le 'C'"))

    def test_every_type(self):
        """Each type is found by its own literal"""
        self.assertEqual("1", self.rows("i eq 5"))
        self.assertEqual("1", self.rows("l eq 1099511627776L"))
        self.assertEqual("1", self.rows("d eq 1.5"))
        self.assertEqual("1", self.rows("b eq true"))
        self.assertEqual("1", self.rows("t lt datetime'2024-06-01T00:00:00Z'"))
        self.assertEqual("1", self.rows("g eq guid'%s'" % self.GUID))
        self.assertEqual("1", self.rows("x eq X'0102'"))
        self.assertEqual("1", self.rows("x eq binary'0102'"))

    def test_parameters(self):
        """Filters written by the SDK from parameters find what they name"""
        self.assertEqual("1", self.rows("s eq @v and i eq @i", v="apple", i=5))
        self.assertEqual("1", self.rows("g eq @v", v=self.GUID))
        self.assertEqual("1", self.rows("x eq @v", v=b"\x01\x02"))
        self.assertEqual("2", self.rows("t gt @v", v=datetime.datetime(2025, 1, 1, tzinfo=datetime.timezone.utc)))
        self.assertEqual("1", self.rows("l eq @v", v=2**40))

    def test_missing(self):
        """A missing property makes every comparison false, ne too, and not turns it true"""
        self.assertEqual("", self.rows("d ne 1.5 and RowKey ge '3'"))
        self.assertEqual("2", self.rows("d ne 1.5"))
        self.assertEqual("345", self.rows("not (d ge 0.0)"))

    def test_mismatch(self):
        """A constant of another type counts as greater: eq and ge are false, ne, lt and le true"""
        self.assertEqual("", self.rows("RowKey eq '4' and s eq '5'"))
        self.assertEqual("", self.rows("RowKey eq '4' and i eq 5"))
        self.assertEqual("4", self.rows("RowKey eq '4' and s ne '5'"))
        self.assertEqual("4", self.rows("RowKey eq '4' and s lt '0'"))

    def test_widening(self):
        """A number widens to the property's type, never the other way round"""
        self.assertEqual("2", self.rows("l eq 5"))
        self.assertEqual("2", self.rows("d eq 5"))
        self.assertEqual("", self.rows("i eq 5L"))
        self.assertEqual("", self.rows("i eq 5.0"))

    def test_logic(self):
        """and binds before or, not before both, parentheses before all"""
        self.assertEqual("12", self.rows("i eq 5 or i eq -7 and s eq 'it''s'"))
        self.assertEqual("2", self.rows("(i eq 5 or i eq -7) and s eq 'it''s'"))
        self.assertEqual("2", self.rows("not (i eq 5) and b eq false"))
        self.assertEqual("1", self.rows("b"))

    def test_constant_left(self):
        """The constant may stand on the left"""
        self.assertEqual("3", self.rows("5 lt i and s eq 'Banana'"))

    def test_long(self):
        """A chain of a hundred comparisons is run"""
        query = " or ".join("RowKey eq '%d'" % i for i in range(100))
        self.assertEqual("12345", self.rows(query))

    def test_timestamp(self):
        """Timestamp can be compared with"""
        self.assertEqual("12345", self.rows("Timestamp gt datetime'2020-01-01T00:00:00Z'"))
        self.assertEqual("", self.rows("Timestamp lt datetime'2020-01-01T00:00:00Z'"))

    def test_across_partitions(self):
        """A filter without keys searches all partitions, in the order of keys"""
        found = self.table.query_entities("s eq 'apple'")
        self.assertEqual([("f", "1"), ("g", "1")], [(e["PartitionKey"], e["RowKey"]) for e in found])


class RefusedFilters(PythonCase):
    section = "11.1"

    def ask(self, query):
        return list(self.table.query_entities(query))

    def test_null(self):
        """A comparison with null is 400 InvalidInput"""
        self.refused(400, "InvalidInput", self.ask, "p eq null")

    def test_syntax(self):
        """Filters that cannot be read are 400 InvalidInput"""
        for query in ("aaa bbb ccc", "p eq", "(p eq 1", "p eq 'x", "p eq datetime'yesterday'", "p eq guid'1'", "p == 1"):
            self.refused(400, "InvalidInput", self.ask, query)

    def test_functions(self):
        """Functions parse and are not run: 501 NotImplemented"""
        for query in ("startswith(p,'a')", "length(p) eq 1", "a eq b"):
            self.refused(501, "NotImplemented", self.ask, query)


class Select(PythonCase):
    section = "11.4"

    def test_select(self):
        """Only what is selected comes, and a property that is not there as null"""
        self.table.create_entity({"PartitionKey": "p", "RowKey": "select", "a": 1, "b": 2})
        read = self.table.get_entity("p", "select", select=["a", "nothing"])
        self.assertEqual({"a": 1, "nothing": None}, dict(read))
        found = list(self.table.query_entities("RowKey eq 'select'", select=["b", "RowKey"]))
        self.assertEqual([{"b": 2, "RowKey": "select"}], [dict(e) for e in found])
        self.assertTrue(found[0].metadata["etag"])


class Pages(PythonCase):
    section = "11.7"
    COUNT = 2300

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for first in range(0, cls.COUNT, 100):
            cls.table.submit_transaction(
                [("create", {"PartitionKey": "pages", "RowKey": "%05d" % i, "n": i}) for i in range(first, first + 100)])

    def test_all(self):
        """A query of 2,300 entities comes in pages of 1,000, each entity once and in order"""
        pages = [[e["n"] for e in page] for page in self.table.list_entities().by_page()]
        self.assertEqual([1000, 1000, 300], [len(page) for page in pages][:3])
        self.assertEqual(list(range(self.COUNT)), [n for page in pages for n in page])

    def test_resume(self):
        """A token resumes a query where its page ended, also in another client"""
        query = "PartitionKey eq 'pages' and n ge 100"
        pages = self.table.query_entities(query, results_per_page=7).by_page()
        first = [e["n"] for e in next(pages)]
        token = pages.continuation_token
        self.table.delete_entity("pages", "00107")
        rest = self.table.query_entities(query, results_per_page=1000).by_page(token)
        self.assertEqual(list(range(100, 107)), first)
        self.assertEqual(list(range(108, 1108)), [e["n"] for e in next(rest)])
        self.table.create_entity({"PartitionKey": "pages", "RowKey": "00107", "n": 107})

    def test_row_range(self):
        """A range of rows within a partition is exact at both ends"""
        found = self.table.query_entities("PartitionKey eq 'pages' and RowKey ge '00100' and RowKey lt '00200'")
        self.assertEqual(list(range(100, 200)), [e["n"] for e in found])

    def test_residual(self):
        """A filter on a property finds all that match across many pages of scanning"""
        found = self.table.query_entities("PartitionKey eq 'pages' and (n lt 3 or n gt 2296)")
        self.assertEqual([0, 1, 2, 2297, 2298, 2299], [e["n"] for e in found])


class Transactions(PythonCase):
    section = "12"

    def test_hundred(self):
        """A hundred inserts are one transaction with a tag for each"""
        answers = self.table.submit_transaction(
            [("create", {"PartitionKey": "hundred", "RowKey": "%03d" % i, "n": i}) for i in range(100)])
        self.assertEqual(100, len(answers))
        self.assertEqual(answers[5]["etag"], self.table.get_entity("hundred", "005").metadata["etag"])
        self.assertEqual(100, len(list(self.table.query_entities("PartitionKey eq 'hundred'"))))

    def test_every_operation(self):
        """One transaction may hold every kind of write"""
        for row in ("update", "replace", "delete", "tagged"):
            self.table.create_entity({"PartitionKey": "mixed", "RowKey": row, "a": 1})
        tag = self.table.get_entity("mixed", "tagged").metadata["etag"]
        answers = self.table.submit_transaction([
            ("create", {"PartitionKey": "mixed", "RowKey": "create", "a": 1}),
            ("update", {"PartitionKey": "mixed", "RowKey": "update", "b": 2}),
            ("update", {"PartitionKey": "mixed", "RowKey": "replace", "b": 2}, {"mode": UpdateMode.REPLACE}),
            ("update", {"PartitionKey": "mixed", "RowKey": "tagged", "b": 2},
             {"etag": tag, "match_condition": MatchConditions.IfNotModified}),
            ("upsert", {"PartitionKey": "mixed", "RowKey": "upsert", "b": 2}),
            ("upsert", {"PartitionKey": "mixed", "RowKey": "it's odd+", "b": 2}, {"mode": UpdateMode.REPLACE}),
            ("delete", {"PartitionKey": "mixed", "RowKey": "delete"}),
        ])
        self.assertEqual(7, len(answers))
        found = {e["RowKey"]: {k: v for k, v in e.items() if k in "ab"}
                 for e in self.table.query_entities("PartitionKey eq 'mixed'")}
        self.assertEqual({"create": {"a": 1}, "update": {"a": 1, "b": 2}, "replace": {"b": 2}, "tagged": {"a": 1, "b": 2},
                          "upsert": {"b": 2}, "it's odd+": {"b": 2}}, found)

    def failing(self, operations):
        with self.assertRaises(TableTransactionError) as caught:
            self.table.submit_transaction(operations)
        return caught.exception

    def test_atomic(self):
        """A transaction with one conflict applies nothing and names the operation"""
        self.table.create_entity({"PartitionKey": "atomic", "RowKey": "there", "a": 1})
        error = self.failing([("create", {"PartitionKey": "atomic", "RowKey": "new"}),
                              ("create", {"PartitionKey": "atomic", "RowKey": "there", "a": 2})])
        self.assertEqual((409, 1), (error.status_code, error.index))
        self.assertEqual("EntityAlreadyExists", code_of(error))
        self.assertEqual([1], [e.get("a") for e in self.table.query_entities("PartitionKey eq 'atomic'")])

    def test_missing(self):
        """An update of a missing row fails the transaction with 404 at its index"""
        error = self.failing([("upsert", {"PartitionKey": "miss", "RowKey": "1"}),
                              ("upsert", {"PartitionKey": "miss", "RowKey": "2"}),
                              ("update", {"PartitionKey": "miss", "RowKey": "nowhere"})])
        self.assertEqual((404, 2, "ResourceNotFound"), (error.status_code, error.index, code_of(error)))
        self.assertEqual([], list(self.table.query_entities("PartitionKey eq 'miss'")))

    def test_duplicate(self):
        """A row that stands twice in a transaction is 400 InvalidDuplicateRow"""
        error = self.failing([("upsert", {"PartitionKey": "dup", "RowKey": "1"}),
                              ("upsert", {"PartitionKey": "dup", "RowKey": "1"})])
        self.assertEqual((400, 1, "InvalidDuplicateRow"), (error.status_code, error.index, code_of(error)))

    def test_too_many(self):
        """A hundred and one operations are refused"""
        error = self.failing([("upsert", {"PartitionKey": "many", "RowKey": str(i)}) for i in range(101)])
        self.assertEqual((400, "InvalidInput"), (error.status_code, code_of(error)))

    def test_too_large(self):
        """A transaction of more than 4 MiB is 413"""
        with self.assertRaises((RequestTooLargeError, HttpResponseError)) as caught:
            self.table.submit_transaction(
                [("upsert", {"PartitionKey": "large", "RowKey": str(i), "x": "x" * 30000, "y": "x" * 30000})
                 for i in range(90)])
        self.assertEqual(413, caught.exception.status_code)


if __name__ == "__main__":
    main()
