// The smallest embedding: open, write, read, scan, reopen. Built with nothing but
//
//   g++ -std=c++20 orders.cc -o orders $(pkg-config --cflags --libs partita)
#include <partita/partita.h>

#include <cstdio>
#include <memory>
#include <string>

namespace {

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "orders: %s\n", what.c_str());
  std::exit(1);
}

void Check(const partita::Status& status, const char* what) {
  if (!status.ok()) Fail(std::string(what) + ": " + status.ToString());
}

std::unique_ptr<partita::Database> Open(const char* directory) {
  partita::Options options;
  options.directory = directory;
  options.create_if_missing = true;
  options.memory_bytes = uint64_t{64} << 20;
  // Works everywhere, also in containers that forbid io_uring.
  options.io_backend = partita::IoBackend::kThreads;
  auto database = partita::Database::Open(options);
  Check(database.status(), "open");
  return std::move(database).value();
}

std::string WriteOrders(const char* directory) {
  const std::unique_ptr<partita::Database> database = Open(directory);
  auto orders = database->CreateTable("Orders");
  Check(orders.status(), "create table");
  std::string etag;
  for (int number = 0; number < 10; ++number) {
    partita::Entity order("customer-7", "order-000" + std::to_string(number));
    order.Set("Total", 129.5 + number).Set("Items", number).Set("Note", "leave at the door");
    const partita::WriteResult written = orders->Insert(order);
    Check(written.status, "insert");
    etag = written.etag;
  }
  Check(database->Close(), "close");
  return etag;
}

void ReadOrders(const char* directory, const std::string& etag) {
  const std::unique_ptr<partita::Database> database = Open(directory);
  auto orders = database->OpenTable("Orders");
  Check(orders.status(), "open table");

  auto order = orders->Get("customer-7", "order-0009");
  Check(order.status(), "get");
  if (*order->GetDouble("Total") != 138.5) Fail("the total of the last order is wrong");
  if (order->etag() != etag) Fail("the ETag of the last order is not the one its insert returned");

  partita::ScanOptions range;
  range.partition = "customer-7";
  range.row_lower = "order-0003";
  range.row_upper = "order-0006";
  auto page = orders->Scan(range);
  Check(page.status(), "scan");
  if (page->entities.size() != 3)
    Fail("the scan gave " + std::to_string(page->entities.size()) + " of 3 orders");

  auto late = orders->Query({.filter = "PartitionKey eq 'customer-7' and Total gt 135.0",
                             .select = {"Total"},
                             .order = partita::ScanOrder::kDescending,
                             .top = 2});
  Check(late.status(), "query");
  if (late->entities.size() != 2 || late->entities[0].row_key() != "order-0009" ||
      late->entities[0].property_count() != 1) {
    Fail("the query did not give the last two orders, and of them the total alone");
  }
  auto sums = orders->Aggregate({{}, {partita::AggregateKind::kSum, "Items"}}, {.filter = "Items ge 5"});
  Check(sums.status(), "aggregate");
  if (sums->count != 5 || *sums->values[1].value->if_int64() != 5 + 6 + 7 + 8 + 9) {
    Fail("the aggregate counts or sums wrongly");
  }
  if (orders->Explain({.filter = "RowKey eq 'a' and RowKey eq 'b'"})->kind != "empty") {
    Fail("a contradiction is not told as such");
  }

  partita::Entity changed("customer-7", "order-0009");
  changed.Set("Total", 1.0);
  Check(orders->Replace(changed, etag).status, "replace with the current ETag");
  if (orders->Replace(changed, etag).status.code() != partita::Code::kPreconditionFailed) {
    Fail("a stale ETag was accepted");
  }
  if (orders->Get("customer-7", "none").code() != partita::Code::kNotFound) Fail("a missing order was found");
  changed.Set("no name", 1);
  const partita::Status refused = orders->InsertOrReplace(changed).status;
  if (partita::ViolationOf(refused) != partita::Violation::kPropertyNameInvalid) {
    Fail("a property's bad name is not told as such: " + refused.ToString());
  }
  Check(database->Close(), "close");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) Fail("usage: orders DIRECTORY");
  const std::string etag = WriteOrders(argv[1]);
  ReadOrders(argv[1], etag);
  std::puts("orders: all answers are right");
}
