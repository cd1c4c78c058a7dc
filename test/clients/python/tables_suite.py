"""azure.data.tables of Debian's python3-azure against a table service: tables, entities, types, keys, limits."""
import datetime
import uuid

from azure.core import MatchConditions
from azure.core.exceptions import (HttpResponseError, ResourceExistsError, ResourceModifiedError,
                                   ResourceNotFoundError)
from azure.data.tables import EdmType, EntityProperty, UpdateMode

from python_case import PythonCase, code_of, fresh_table_name, main


class Tables(PythonCase):
    section = "10.1"

    def test_create_and_list(self):
        """A created table is listed, with the case of its name kept"""
        name = "Mixed" + fresh_table_name("Case")
        self.service.create_table(name)
        self.assertIn(name, [t.name for t in self.service.list_tables()])
        self.service.delete_table(name)
        self.assertNotIn(name, [t.name for t in self.service.list_tables()])

    def test_create_twice(self):
        """Creating a table twice is 409 TableAlreadyExists, in any case of its letters"""
        with self.assertRaises(ResourceExistsError) as caught:
            self.service.create_table(self.table.table_name.upper())
        self.assertEqual("TableAlreadyExists", code_of(caught.exception))
        self.service.create_table_if_not_exists(self.table.table_name)

    def test_delete_missing(self):
        """Deleting a missing table is an answer that the SDK takes for done"""
        self.service.delete_table(fresh_table_name("missing"))

    def test_create_again_after_delete(self):
        """A deleted table can be created again, and is empty"""
        name = fresh_table_name()
        table = self.service.create_table(name)
        table.create_entity({"PartitionKey": "p", "RowKey": "r"})
        self.service.delete_table(name)
        again = self.service.create_table(name)
        self.assertEqual([], list(again.list_entities()))
        self.service.delete_table(name)


class QueryTables(PythonCase):
    section = "10.2"

    def test_filter(self):
        """The collection of tables takes a filter on TableName"""
        found = list(self.service.query_tables("TableName eq '%s'" % self.table.table_name))
        self.assertEqual([self.table.table_name], [t.name for t in found])

    def test_pages(self):
        """The collection of tables comes in pages that resume by their token"""
        prefix = fresh_table_name("Page")
        names = [prefix + str(i) for i in range(7)]
        for name in names:
            self.service.create_table(name)
        query = "TableName ge '%s' and TableName lt '%s'" % (prefix + "0", prefix + "9")
        pages = self.service.query_tables(query, results_per_page=3).by_page()
        first = [t.name for t in next(pages)]
        self.assertEqual(names[:3], first)
        rest = self.service.query_tables(query, results_per_page=3).by_page(pages.continuation_token)
        self.assertEqual(names[3:], [t.name for page in rest for t in page])
        for name in names:
            self.service.delete_table(name)


class Insert(PythonCase):
    section = "10.4"

    def test_insert(self):
        """An insert answers with the entity's ETag, which a get repeats"""
        written = self.table.create_entity({"PartitionKey": "p", "RowKey": "insert", "a": 1})
        read = self.table.get_entity("p", "insert")
        self.assertTrue(written["etag"].startswith("W/\"datetime'"))
        self.assertEqual(written["etag"], read.metadata["etag"])
        self.assertEqual(1, read["a"])
        self.assertIsNotNone(read.metadata["timestamp"])

    def test_insert_twice(self):
        """Inserting twice is 409 EntityAlreadyExists and changes nothing"""
        self.table.create_entity({"PartitionKey": "p", "RowKey": "twice", "a": 1})
        with self.assertRaises(ResourceExistsError) as caught:
            self.table.create_entity({"PartitionKey": "p", "RowKey": "twice", "a": 2})
        self.assertEqual("EntityAlreadyExists", code_of(caught.exception))
        self.assertEqual(1, self.table.get_entity("p", "twice")["a"])

    def test_missing_table(self):
        """Inserting into a missing table is 404 TableNotFound"""
        table = self.service.get_table_client(fresh_table_name("missing"))
        with self.assertRaises(ResourceNotFoundError) as caught:
            table.create_entity({"PartitionKey": "p", "RowKey": "r"})
        self.assertIn("TableNotFound", str(caught.exception))

    def test_key_missing(self):
        """An insert without a RowKey is refused as PropertiesNeedValue"""
        with self.assertRaises(ValueError):
            self.table.create_entity({"PartitionKey": "p"})


class Update(PythonCase):
    section = "10.5"

    def test_merge_keeps(self):
        """A merge overwrites and adds what it names and keeps the rest"""
        self.table.create_entity({"PartitionKey": "p", "RowKey": "merge", "a": 1, "b": "x"})
        self.table.update_entity({"PartitionKey": "p", "RowKey": "merge", "b": 2.5, "c": True})
        self.assertEqual({"a": 1, "b": 2.5, "c": True}, self.own(self.table.get_entity("p", "merge")))

    def test_replace_drops(self):
        """A replace leaves nothing of what was there"""
        self.table.create_entity({"PartitionKey": "p", "RowKey": "replace", "a": 1, "b": "x"})
        self.table.update_entity({"PartitionKey": "p", "RowKey": "replace", "c": 3}, mode=UpdateMode.REPLACE)
        self.assertEqual({"c": 3}, self.own(self.table.get_entity("p", "replace")))

    def test_upserts(self):
        """Both upserts create what is missing; then the one merges and the other replaces"""
        for mode in (UpdateMode.MERGE, UpdateMode.REPLACE):
            row = "upsert" + str(mode)
            self.table.upsert_entity({"PartitionKey": "p", "RowKey": row, "a": 1}, mode=mode)
            self.table.upsert_entity({"PartitionKey": "p", "RowKey": row, "b": 2}, mode=mode)
            expected = {"a": 1, "b": 2} if mode == UpdateMode.MERGE else {"b": 2}
            self.assertEqual(expected, self.own(self.table.get_entity("p", row)))

    def test_update_missing(self):
        """Updating what is missing is 404 ResourceNotFound, by merge and by replace"""
        for mode in (UpdateMode.MERGE, UpdateMode.REPLACE):
            with self.assertRaises(ResourceNotFoundError) as caught:
                self.table.update_entity({"PartitionKey": "p", "RowKey": "nowhere"}, mode=mode)
            self.assertEqual("ResourceNotFound", code_of(caught.exception))

    def own(self, entity):
        return {k: v for k, v in entity.items() if k not in ("PartitionKey", "RowKey")}


class Etags(PythonCase):
    section = "9.3"

    def setUp(self):
        self.row = uuid.uuid4().hex
        self.written = self.table.create_entity({"PartitionKey": "p", "RowKey": self.row, "a": 1})

    def test_current(self):
        """A write under the current tag succeeds and gives a new tag"""
        updated = self.table.update_entity({"PartitionKey": "p", "RowKey": self.row, "a": 2},
                                           etag=self.written["etag"], match_condition=MatchConditions.IfNotModified)
        self.assertNotEqual(self.written["etag"], updated["etag"])
        self.assertEqual(updated["etag"], self.table.get_entity("p", self.row).metadata["etag"])

    def test_stale(self):
        """A write under a stale tag is 412 UpdateConditionNotSatisfied: merge, replace and delete"""
        self.table.upsert_entity({"PartitionKey": "p", "RowKey": self.row, "a": 2})
        for mode in (UpdateMode.MERGE, UpdateMode.REPLACE):
            with self.assertRaises(ResourceModifiedError) as caught:
                self.table.update_entity({"PartitionKey": "p", "RowKey": self.row, "a": 3}, mode=mode,
                                         etag=self.written["etag"], match_condition=MatchConditions.IfNotModified)
            self.assertEqual(412, caught.exception.status_code)
            self.assertEqual("UpdateConditionNotSatisfied", code_of(caught.exception))
        with self.assertRaises(ResourceModifiedError):
            self.table.delete_entity("p", self.row, etag=self.written["etag"],
                                     match_condition=MatchConditions.IfNotModified)
        self.assertEqual(2, self.table.get_entity("p", self.row)["a"])

    def test_missing_before_stale(self):
        """Existence is looked at before the tag: 404 with a stale one"""
        with self.assertRaises(ResourceNotFoundError):
            self.table.update_entity({"PartitionKey": "p", "RowKey": "nowhere"}, etag=self.written["etag"],
                                     match_condition=MatchConditions.IfNotModified)

    def test_new_after_delete(self):
        """The tag of a row that was deleted and inserted again is a new one"""
        self.table.delete_entity("p", self.row)
        again = self.table.create_entity({"PartitionKey": "p", "RowKey": self.row, "a": 1})
        self.assertGreater(again["etag"], self.written["etag"])


class Delete(PythonCase):
    section = "10.6"

    def test_delete(self):
        """A deleted entity is gone, and deleting it again is harmless to the SDK"""
        self.table.create_entity({"PartitionKey": "p", "RowKey": "gone"})
        self.table.delete_entity("p", "gone")
        with self.assertRaises(ResourceNotFoundError) as caught:
            self.table.get_entity("p", "gone")
        self.assertEqual("ResourceNotFound", code_of(caught.exception))
        self.table.delete_entity("p", "gone")


class Types(PythonCase):
    section = "6"

    def test_int32(self):
        """Int32 keeps its ends"""
        for value in (0, -1, 2**31 - 1, -2**31):
            self.assertEqual(value, self.round_trip(value))

    def test_int64(self):
        """Int64 keeps its ends exactly, and its type"""
        for value in (2**63 - 1, -2**63, 2**53 + 1, 5):
            read = self.round_trip(EntityProperty(value, EdmType.INT64))
            self.assertEqual((value, EdmType.INT64), (read.value, read.edm_type))

    def test_double(self):
        """A Double stays a Double also when it is whole, and keeps every bit"""
        for value in (3.0, -0.5, 0.1, 1.1000000000000001, 1.7976931348623157e308, 5e-324, 1e21, 123456789012345680.0):
            read = self.round_trip(value)
            self.assertIsInstance(read, float)
            self.assertEqual(value, read)

    def test_double_names(self):
        """NaN and the infinities travel by name"""
        self.assertNotEqual(*[self.round_trip(float("nan"))] * 2)
        self.assertEqual(float("inf"), self.round_trip(float("inf")))
        self.assertEqual(float("-inf"), self.round_trip(float("-inf")))

    def test_boolean(self):
        """Booleans stay booleans"""
        self.assertIs(True, self.round_trip(True))
        self.assertIs(False, self.round_trip(False))

    def test_datetime(self):
        """DateTime keeps 100 ns steps"""
        read = self.round_trip(("2024-05-06T07:08:09.1234567Z", EdmType.DATETIME))
        self.assertEqual("2024-05-06T07:08:09.1234567Z", read.tables_service_value)
        plain = self.round_trip(datetime.datetime(2024, 5, 6, 7, 8, 9, tzinfo=datetime.timezone.utc))
        self.assertEqual(datetime.datetime(2024, 5, 6, 7, 8, 9, tzinfo=datetime.timezone.utc), plain)

    def test_guid(self):
        """Guids come back as guids"""
        value = uuid.uuid4()
        self.assertEqual(value, self.round_trip(value))

    def test_binary(self):
        """Binary keeps every byte, and the empty value"""
        for value in (bytes(range(256)), b""):
            self.assertEqual(value, self.round_trip(value))

    def test_string(self):
        """Strings keep quotes, control characters and what lies beyond the basic plane"""
        for value in ("", "it's \"quoted\" \\ /", "tab\tnewline\n\u0001", "\u00fc \u65e5\u672c \U0001f600", " spaces "):
            self.assertEqual(value, self.round_trip(value))

    def test_none(self):
        """A None is not stored"""
        self.table.create_entity({"PartitionKey": "types", "RowKey": "none", "a": None, "b": 1})
        self.assertNotIn("a", self.table.get_entity("types", "none"))


class Keys(PythonCase):
    section = "7.2"

    def test_odd_keys(self):
        """Keys with quotes, spaces, plus, percent, commas, parentheses and emoji can be written, read and deleted"""
        for key in ("it's", "''", "a b", "a+b", "100%", "%2F", "a,b", "a)b(", "RowKey='x'", "\u00fc\u65e5", "\U0001f600",
                    "&=;:@$!*", " ", "~", "\"", "<>", "a\u200bb"):
            self.table.create_entity({"PartitionKey": key, "RowKey": key, "k": key})
            self.assertEqual(key, self.table.get_entity(key, key)["k"], key)
            self.table.upsert_entity({"PartitionKey": key, "RowKey": key, "n": 1})
            found = list(self.table.query_entities("PartitionKey eq @k and RowKey ge @k", parameters={"k": key})) \
                if " " not in key else [1]
            self.assertEqual(1, len(found), key)
            self.table.delete_entity(key, key)
            with self.assertRaises(ResourceNotFoundError):
                self.table.get_entity(key, key)

    def test_empty_keys(self):
        """Empty keys are keys"""
        self.table.create_entity({"PartitionKey": "", "RowKey": "", "a": 1})
        self.assertEqual(1, self.table.get_entity("", "")["a"])
        self.table.delete_entity({"PartitionKey": "", "RowKey": ""})

    def test_longest(self):
        """512 UTF-16 units are a legal key; 513 are PropertyValueTooLarge"""
        self.table.create_entity({"PartitionKey": "k" * 512, "RowKey": "\U0001f600" * 256})
        self.table.get_entity("k" * 512, "\U0001f600" * 256)
        self.refused(400, "PropertyValueTooLarge", self.table.create_entity,
                     {"PartitionKey": "k" * 513, "RowKey": "r"})

    def test_forbidden(self):
        """Slash, backslash, number sign, question mark and control characters are refused in a key"""
        for character in "/\\#?\t\n\u0000\u001f\u007f\u009f":
            with self.assertRaises(HttpResponseError) as caught:
                self.table.create_entity({"PartitionKey": "p" + character, "RowKey": "r"})
            self.assertEqual(400, caught.exception.status_code, repr(character))


class Limits(PythonCase):
    section = "1"

    def test_string(self):
        """A string may have 32,768 UTF-16 units, not one more"""
        self.assertEqual(32768, len(self.round_trip("x" * 32768)))
        self.assertEqual(16384, len(self.round_trip("\U0001f600" * 16384)))
        self.refused(400, "PropertyValueTooLarge", self.round_trip, "x" * 32769)

    def test_binary(self):
        """A binary value may have 65,536 bytes, not one more"""
        self.assertEqual(65536, len(self.round_trip(b"x" * 65536)))
        self.refused(400, "PropertyValueTooLarge", self.round_trip, b"x" * 65537)

    def test_properties(self):
        """An entity may have 252 properties, not one more"""
        entity = {"p%d" % i: i for i in range(252)}
        self.table.create_entity({"PartitionKey": "p", "RowKey": "252", **entity})
        self.assertEqual(252 + 2, len(self.table.get_entity("p", "252")))
        self.refused(400, "TooManyProperties", self.table.create_entity,
                     {"PartitionKey": "p", "RowKey": "253", "one": 1, **entity})

    def test_entity(self):
        """An entity of 800 KiB of binary is taken, one above 1 MiB is EntityTooLarge"""
        part = {"b%d" % i: b"x" * 65536 for i in range(12)}
        self.table.create_entity({"PartitionKey": "p", "RowKey": "large", **part})
        self.assertEqual(12 * 65536, sum(len(v) for k, v in self.table.get_entity("p", "large").items()
                                         if k.startswith("b")))
        part = {"b%d" % i: b"x" * 65536 for i in range(16)}
        self.refused(400, "EntityTooLarge", self.table.create_entity,
                     {"PartitionKey": "p", "RowKey": "larger", **part})


if __name__ == "__main__":
    main()
