"""Asks the table service that api/run started, through the Azure SDK for Python: a package by its key, a whole
partition, its count, and a write under a stale ETag. Exit code 0 only if every answer is right."""
import sys

from azure.core import MatchConditions
from azure.core.exceptions import ResourceModifiedError
from azure.data.tables import TableClient


def check(what, right):
    print("   %-70s %s" % (what, "ok" if right else "WRONG"))
    if not right:
        sys.exit(1)


def main(connection, partition, rows):
    table = TableClient.from_connection_string(connection, "Packages")
    packages = list(table.query_entities("PartitionKey eq '%s'" % partition))
    check("partition %s has %d packages, as the command line counts" % (partition, rows), len(packages) == rows > 0)
    keys = [p["RowKey"] for p in packages]
    check("in order of their keys, each once", keys == sorted(set(keys)))

    chosen = packages[len(packages) // 2]
    found = table.get_entity(partition, chosen["RowKey"])
    check("package %s by its key" % chosen["RowKey"], dict(found) == dict(chosen))

    def note(text, etag):
        return table.update_entity({"PartitionKey": partition, "RowKey": chosen["RowKey"], "Note": text}, etag=etag,
                                   match_condition=MatchConditions.IfNotModified)

    first = note("seen", found.metadata["etag"])
    check("an update under its ETag gives a new one", first["etag"] != found.metadata["etag"])
    try:
        note("lost", found.metadata["etag"])
        refused = 0
    except ResourceModifiedError as error:
        refused = error.status_code
    check("the same again, with the ETag now stale: 412", refused == 412)
    check("and nothing was lost", table.get_entity(partition, chosen["RowKey"])["Note"] == "seen")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3].replace(",", "")))
