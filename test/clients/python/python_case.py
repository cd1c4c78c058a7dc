"""What the Python suites share: a service client, a table of their own, and how a refusal is looked at."""
import os
import re
import sys
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableServiceClient

from case_report import ACCOUNT, CONNECTION_STRING, ENDPOINT, KEY, SectionCase, fresh_table_name, main

def code_of(error):
    """The code in the body of an answer, JSON or XML; the SDK does not always pass it on."""
    found = re.search(r'"code"\s*:\s*"(\w+)"|<(?:m:)?code>(\w+)<', error.response.text())
    return (found.group(1) or found.group(2)) if found else None


class PythonCase(SectionCase):
    suite = "python"

    @classmethod
    def setUpClass(cls):
        cls.service = TableServiceClient.from_connection_string(CONNECTION_STRING)
        cls.table = cls.service.create_table(fresh_table_name())

    @classmethod
    def tearDownClass(cls):
        cls.table.delete_table()
        cls.service.close()

    def refused(self, status, code, call, *args, **kwargs):
        """Expects the call to be refused with a status and a code, and returns the error."""
        with self.assertRaises(HttpResponseError) as caught:
            call(*args, **kwargs)
        self.assertEqual(status, caught.exception.status_code)
        self.assertEqual(code, code_of(caught.exception))
        return caught.exception

    def round_trip(self, value):
        row = uuid.uuid4().hex
        self.table.create_entity({"PartitionKey": "types", "RowKey": row, "value": value})
        return self.table.get_entity("types", row)["value"]
