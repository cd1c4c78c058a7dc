"""What the raw suites share: a table of their own."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from case_report import ACCOUNT, EXTRAS, KEY, SectionCase, fresh_table_name, main
from raw_client import (HOST, PORT, PREFIX, Connection, account_sas, ask, entity, http_date, quoted, request_bytes,
                        table_sas)

JSON = "application/json;odata=%smetadata;streaming=true;charset=utf-8"


class RawCase(SectionCase):
    suite = "raw"

    @classmethod
    def setUpClass(cls):
        cls.table = fresh_table_name("r")
        made = ask("POST", "/Tables", {"TableName": cls.table})
        assert made.status == 201, made

    @classmethod
    def tearDownClass(cls):
        ask("DELETE", "/Tables('%s')" % cls.table)

    def insert(self, partition, row, **properties):
        answer = ask("POST", "/" + self.table, {"PartitionKey": partition, "RowKey": row, **properties})
        self.assertEqual(201, answer.status, answer)
        return answer

    def get(self, partition, row, query="", **options):
        return ask("GET", entity(self.table, partition, row) + query, **options)

    def refused(self, status, code, answer):
        self.assertEqual((status, code), (answer.status, answer.code), answer)
        return answer
