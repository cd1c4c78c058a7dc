"""azure.data.tables of Debian's python3-azure against a table service: keys, tokens, policies, service properties."""
import base64
import datetime

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ResourceNotFoundError
from azure.data.tables import (AccountSasPermissions, ResourceTypes, TableAccessPolicy, TableAnalyticsLogging,
                               TableClient, TableCorsRule, TableMetrics, TableRetentionPolicy, TableSasPermissions,
                               TableServiceClient, generate_account_sas, generate_table_sas)

from python_case import ACCOUNT, ENDPOINT, KEY, PythonCase, code_of, fresh_table_name, main

CREDENTIAL = AzureNamedKeyCredential(ACCOUNT, KEY)


def soon(**delta):
    return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(**delta)


class Keys(PythonCase):
    section = "14.1"

    def test_wrong_key(self):
        """A request signed with another key is 403 AuthenticationFailed"""
        other = AzureNamedKeyCredential(ACCOUNT, base64.b64encode(b"another key").decode())
        table = TableClient(ENDPOINT, self.table.table_name, credential=other)
        with self.assertRaises(ClientAuthenticationError) as caught:
            table.get_entity("p", "r")
        self.assertEqual((403, "AuthenticationFailed"), (caught.exception.status_code, code_of(caught.exception)))

    def test_before_existence(self):
        """A bad signature on a missing table is 403, not 404"""
        other = AzureNamedKeyCredential(ACCOUNT, base64.b64encode(b"another key").decode())
        with self.assertRaises(ClientAuthenticationError):
            list(TableClient(ENDPOINT, fresh_table_name("missing"), credential=other).list_entities())


class TableSas(PythonCase):
    section = "14.4"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for partition in ("a", "b", "c", "d"):
            cls.table.submit_transaction(
                [("create", {"PartitionKey": partition, "RowKey": str(i), "n": i}) for i in range(4)])

    def client(self, **fields):
        fields.setdefault("expiry", soon(hours=1))
        name = fields.pop("name", self.table.table_name)
        token = generate_table_sas(CREDENTIAL, name, **fields)
        return TableClient(ENDPOINT, self.table.table_name, credential=AzureSasCredential(token))

    def keys(self, client, query=None):
        found = client.query_entities(query) if query else client.list_entities()
        return "".join(e["PartitionKey"] + e["RowKey"] for e in found)

    def test_read(self):
        """A token for reading reads, and is refused every write"""
        client = self.client(permission=TableSasPermissions(read=True))
        self.assertEqual(1, client.get_entity("a", "1")["n"])
        self.assertEqual(32, len(self.keys(client)))
        for call in (lambda: client.create_entity({"PartitionKey": "z", "RowKey": "z"}),
                     lambda: client.upsert_entity({"PartitionKey": "z", "RowKey": "z"}),
                     lambda: client.update_entity({"PartitionKey": "a", "RowKey": "1"}),
                     lambda: client.delete_entity("a", "1")):
            with self.assertRaises(HttpResponseError) as caught:
                call()
            self.assertEqual((403, "AuthorizationPermissionMismatch"),
                             (caught.exception.status_code, code_of(caught.exception)))

    def test_write(self):
        """A token for writing writes, also in transactions, and cannot read"""
        client = self.client(permission=TableSasPermissions(add=True, update=True, delete=True))
        client.upsert_entity({"PartitionKey": "w", "RowKey": "1", "n": 1})
        client.submit_transaction([("create", {"PartitionKey": "w", "RowKey": "2"}),
                                   ("update", {"PartitionKey": "w", "RowKey": "1", "n": 2})])
        client.delete_entity("w", "1")
        client.delete_entity("w", "2")
        with self.assertRaises(HttpResponseError) as caught:
            client.get_entity("a", "1")
        self.assertEqual(403, caught.exception.status_code)

    def test_range(self):
        """A token with a key range shows only what lies in it, both ends included"""
        client = self.client(permission=TableSasPermissions(read=True), start_pk="b", start_rk="2", end_pk="c", end_rk="1")
        self.assertEqual("b2b3c0c1", self.keys(client))
        self.assertEqual("b2b3", self.keys(client, "PartitionKey eq 'b'"))
        self.assertEqual("", self.keys(client, "PartitionKey eq 'a'"))
        self.assertEqual(2, client.get_entity("b", "2")["n"])
        with self.assertRaises(ResourceNotFoundError):
            client.get_entity("b", "1")

    def test_range_writes(self):
        """A write outside the key range is 403 AuthorizationFailure, alone and in a transaction"""
        client = self.client(permission="raud", start_pk="b", end_pk="b")
        client.upsert_entity({"PartitionKey": "b", "RowKey": "new"})
        client.delete_entity("b", "new")
        for call in (lambda: client.upsert_entity({"PartitionKey": "c", "RowKey": "new"}),
                     lambda: client.submit_transaction([("upsert", {"PartitionKey": "c", "RowKey": "new"})])):
            with self.assertRaises(HttpResponseError) as caught:
                call()
            self.assertEqual(403, caught.exception.status_code)
        with self.assertRaises(ResourceNotFoundError):
            self.table.get_entity("c", "new")

    def test_times(self):
        """A token that has expired, or is not valid yet, is 403 AuthenticationFailed"""
        for fields in ({"expiry": soon(hours=-1)}, {"start": soon(hours=1), "expiry": soon(hours=2)}):
            with self.assertRaises(ClientAuthenticationError) as caught:
                self.client(permission="r", **fields).get_entity("a", "1")
            self.assertEqual((403, "AuthenticationFailed"), (caught.exception.status_code, code_of(caught.exception)))

    def test_other_table(self):
        """A token for one table opens no other"""
        with self.assertRaises(HttpResponseError) as caught:
            self.client(permission="r", name="other").get_entity("a", "1")
        self.assertEqual(403, caught.exception.status_code)

    def test_case(self):
        """A token may name the table in any case of its letters"""
        self.assertEqual(1, self.client(permission="r", name=self.table.table_name.upper()).get_entity("a", "1")["n"])

    def test_tables_out_of_reach(self):
        """A table's token does not reach the collection of tables, its ACL or the service properties"""
        token = generate_table_sas(CREDENTIAL, self.table.table_name, permission="raud", expiry=soon(hours=1))
        service = TableServiceClient(ENDPOINT, credential=AzureSasCredential(token))
        for call in (lambda: list(service.list_tables()), service.get_service_properties,
                     lambda: service.create_table(fresh_table_name())):
            with self.assertRaises(HttpResponseError) as caught:
                call()
            self.assertEqual(403, caught.exception.status_code)


class AccountSas(PythonCase):
    section = "14.5"

    def granted(self, types, permission, **fields):
        token = generate_account_sas(CREDENTIAL, types, permission, fields.pop("expiry", soon(hours=1)), **fields)
        return TableServiceClient(ENDPOINT, credential=AzureSasCredential(token))

    def test_all(self):
        """An account token with every right writes, reads, deletes and sees the service properties"""
        service = self.granted(ResourceTypes(service=True, object=True),
                               AccountSasPermissions(read=True, write=True, delete=True, list=True, add=True, create=True,
                                                     update=True, process=True))
        table = service.get_table_client(self.table.table_name)
        table.upsert_entity({"PartitionKey": "p", "RowKey": "r", "n": 1})
        self.assertEqual(1, table.get_entity("p", "r")["n"])
        table.delete_entity("p", "r")
        service.get_service_properties()

    def test_resource_type(self):
        """A token for entities is refused the collection of tables: AuthorizationResourceTypeMismatch"""
        service = self.granted(ResourceTypes(object=True), AccountSasPermissions(read=True, list=True))
        self.assertEqual([], list(service.get_table_client(self.table.table_name).list_entities()))
        with self.assertRaises(HttpResponseError) as caught:
            list(service.list_tables())
        self.assertEqual((403, "AuthorizationResourceTypeMismatch"),
                         (caught.exception.status_code, code_of(caught.exception)))

    def test_permission(self):
        """A token without the right for an operation is AuthorizationPermissionMismatch"""
        service = self.granted(ResourceTypes(object=True), AccountSasPermissions(read=True))
        with self.assertRaises(HttpResponseError) as caught:
            service.get_table_client(self.table.table_name).create_entity({"PartitionKey": "p", "RowKey": "r"})
        self.assertEqual((403, "AuthorizationPermissionMismatch"),
                         (caught.exception.status_code, code_of(caught.exception)))


class Policies(PythonCase):
    section = "15"

    def test_set_and_get(self):
        """Stored policies come back, with and without their fields, and can be cleared"""
        expiry = datetime.datetime(2030, 1, 1, tzinfo=datetime.timezone.utc)
        self.table.set_table_access_policy(
            {"readers": TableAccessPolicy(permission="r", expiry=expiry, start=soon(hours=-1)), "bare": None})
        found = self.table.get_table_access_policy()
        self.assertEqual({"readers", "bare"}, set(found))
        self.assertEqual(("r", expiry), (found["readers"].permission, found["readers"].expiry))
        self.table.set_table_access_policy({})
        self.assertEqual({}, self.table.get_table_access_policy())

    def test_token_by_policy(self):
        """A token that names a policy follows it, and ends when the policy goes"""
        self.table.create_entity({"PartitionKey": "p", "RowKey": "policy", "n": 1})
        self.table.set_table_access_policy({"mine": TableAccessPolicy(permission="r", expiry=soon(hours=1))})
        token = generate_table_sas(CREDENTIAL, self.table.table_name, policy_id="mine")
        client = TableClient(ENDPOINT, self.table.table_name, credential=AzureSasCredential(token))
        self.assertEqual(1, client.get_entity("p", "policy")["n"])
        with self.assertRaises(HttpResponseError):
            client.delete_entity("p", "policy")
        self.table.set_table_access_policy({})
        with self.assertRaises(ClientAuthenticationError):
            client.get_entity("p", "policy")

    def test_missing_table(self):
        """Policies of a missing table are 404 TableNotFound"""
        table = self.service.get_table_client(fresh_table_name("missing"))
        self.refused(404, "TableNotFound", table.get_table_access_policy)
        self.refused(404, "TableNotFound", table.set_table_access_policy, {})


class Properties(PythonCase):
    section = "16.1"

    def test_round_trip(self):
        """Logging, metrics and CORS rules come back as they were set"""
        keep = TableRetentionPolicy(enabled=True, days=7)
        self.service.set_service_properties(
            analytics_logging=TableAnalyticsLogging(read=True, write=True, delete=False, retention_policy=keep),
            hour_metrics=TableMetrics(enabled=True, include_apis=True, retention_policy=keep),
            minute_metrics=TableMetrics(enabled=False),
            cors=[TableCorsRule(["https://example.com"], ["GET", "PUT"], allowed_headers=["x-ms-meta*"],
                                exposed_headers=["x-ms-version"], max_age_in_seconds=60)])
        found = self.service.get_service_properties()
        self.assertEqual((True, True, False, 7), (found["analytics_logging"].read, found["analytics_logging"].write,
                                                  found["analytics_logging"].delete,
                                                  found["analytics_logging"].retention_policy.days))
        self.assertEqual((True, True), (found["hour_metrics"].enabled, found["hour_metrics"].include_apis))
        self.assertFalse(found["minute_metrics"].enabled)
        rule = found["cors"][0]
        self.assertEqual((["https://example.com"], ["GET", "PUT"], 60),
                         (rule.allowed_origins, rule.allowed_methods, rule.max_age_in_seconds))
        self.service.set_service_properties(
            analytics_logging=TableAnalyticsLogging(), hour_metrics=TableMetrics(), minute_metrics=TableMetrics(), cors=[])
        self.assertEqual([], self.service.get_service_properties()["cors"])

    def test_days(self):
        """A retention of more than 365 days is refused"""
        with self.assertRaises(HttpResponseError) as caught:
            self.service.set_service_properties(
                hour_metrics=TableMetrics(enabled=True, include_apis=True,
                                          retention_policy=TableRetentionPolicy(enabled=True, days=366)))
        self.assertEqual(400, caught.exception.status_code)


class Stats(PythonCase):
    section = "16.2"

    def test_stats(self):
        """Statistics are answered on the secondary address, as the SDK writes it in path style"""
        stats = self.service.get_service_stats()
        self.assertEqual("live", stats["geo_replication"]["status"])


if __name__ == "__main__":
    main()
