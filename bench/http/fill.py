"""Fills the table `load` for bench/http/run with the number of entities given, by transactions of 100."""
import http.client
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test", "clients", "raw"))

from raw_client import HOST, PORT, PREFIX, ask

FILLER = "The quick brown fox jumps over the lazy dog 0123456789 " * 16


def transaction(partition, first):
    parts = ["--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n"]
    for i in range(first, first + 100):
        body = ('{"PartitionKey":"%s","RowKey":"r%03d","Note":"%s","Count":%d,"Total":%d.5}' % (partition, i, FILLER, i, i))
        parts.append("--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
                     "POST http://%s:%d%s/load HTTP/1.1\r\nContent-Type: application/json\r\n"
                     "Accept: application/json;odata=nometadata\r\nPrefer: return-no-content\r\n\r\n%s\r\n"
                     % (HOST, PORT, PREFIX, body))
    parts.append("--changeset_1--\r\n--batch_1--\r\n")
    return "".join(parts).encode()


def main(count):
    made = ask("POST", "/Tables", {"TableName": "load"})
    assert made.status == 201, made
    connection = http.client.HTTPConnection(HOST, PORT)
    query = os.environ["LOAD_SAS"]
    for start in range(0, count, 100):
        connection.request("POST", PREFIX + "/$batch?" + query, transaction("p%06d" % (start // 1000), start % 1000),
                           {"Content-Type": "multipart/mixed; boundary=batch_1", "x-ms-version": "2019-02-02",
                            "Accept": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status == 202 and text.count(b"HTTP/1.1 204") == 100, text[:1000]


if __name__ == "__main__":
    main(int(sys.argv[1]))
