// What the HTTP face spends on text: reading the body of an insert, writing an entity, parsing an address.
// The entity has 10 properties and about 1 KiB of values.
#include <benchmark/benchmark.h>

#include <string>

#include "api/entity.h"
#include "api/http/json_reader.h"
#include "api/http/json_writer.h"
#include "api/http/query_parameters.h"
#include "api/http/resource.h"

namespace partita::http {
namespace {

constexpr uint64_t kTicks = 133'812'876'301'234'567;
const UrlBase kBase{.secure = false, .host = "127.0.0.1:10002", .account_prefix = "/devstoreaccount1"};

// As an order might be: six texts of 8 to 400 bytes, and one of each frequent other type.
Entity TenProperties() {
  Entity entity("customer-000017", "2025-01-15T10:20:30.1234567Z");
  entity.Set("FirstName", "Margarethe").Set("LastName", "von Hohenstein").Set("City", "Friedrichshafen");
  entity.Set("Email", "margarethe.von.hohenstein@example.com").Set("Address", std::string(300, 'a'));
  entity.Set("Description", std::string(500, 'd')).Set("Items", 42).Set("Balance", int64_t{1} << 40);
  entity.Set("Total", 129.95).Set("Ordered", DateTime{kTicks});
  return entity;
}

std::string Json(MetadataLevel level) {
  const std::string record = EncodeEntityRecord(TenProperties().properties());
  const EntityFormat format(EntityFormat::Shape::kLone, level, kBase, "devstoreaccount1", "orders",
                            Selection());
  std::string out;
  format.AppendEntity(&out,
                      {"customer-000017", "2025-01-15T10:20:30.1234567Z", kTicks, EntityRecordView(record)});
  return out;
}

void BM_ReadBody(benchmark::State& state) {
  std::string body = Json(MetadataLevel::kMinimal);
  const size_t size = body.size();
  body.append(64, ' ');
  JsonBodyReader reader;
  for (auto _ : state) {
    Entity entity;
    benchmark::DoNotOptimize(reader.ReadInsert(std::string_view(body).substr(0, size), &entity));
    benchmark::DoNotOptimize(entity);
  }
  state.counters["bytes"] = static_cast<double>(size);
}
BENCHMARK(BM_ReadBody);

void BM_WriteEntity(benchmark::State& state) {
  const auto level = static_cast<MetadataLevel>(state.range(0));
  const std::string record = EncodeEntityRecord(TenProperties().properties());
  const EntityFormat format(EntityFormat::Shape::kLone, level, kBase, "devstoreaccount1", "orders",
                            Selection());
  const EntityRow row{"customer-000017", "2025-01-15T10:20:30.1234567Z", kTicks, EntityRecordView(record)};
  std::string out;
  for (auto _ : state) {
    out.clear();
    format.AppendEntity(&out, row);
    benchmark::DoNotOptimize(out.data());
  }
  state.counters["bytes"] = static_cast<double>(out.size());
}
BENCHMARK(BM_WriteEntity)->Arg(0)->Arg(1)->Arg(2);

void BM_MakeFormat(benchmark::State& state) {
  for (auto _ : state) {
    const EntityFormat format(EntityFormat::Shape::kLone, MetadataLevel::kMinimal, kBase, "devstoreaccount1",
                              "orders", Selection());
    benchmark::DoNotOptimize(&format);
  }
}
BENCHMARK(BM_MakeFormat);

// Per byte: text that needs no escape, and text with a quote every 16 bytes.
void BM_WriteText(benchmark::State& state) {
  std::string text(4096, 'x');
  if (state.range(0) != 0) {
    for (size_t i = 0; i < text.size(); i += 16) text[i] = '"';
  }
  std::string out;
  for (auto _ : state) {
    out.clear();
    AppendJsonString(&out, text);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
}
BENCHMARK(BM_WriteText)->Arg(0)->Arg(1);

void BM_ParseAddress(benchmark::State& state) {
  const std::string_view target =
      "/devstoreaccount1/orders(PartitionKey='customer%2D000017',RowKey='2025-01-15T10%3A20%3A30.1234567Z')"
      "?sv=2019-02-02&se=2030-01-01T00%3A00%3A00Z&sp=raud&tn=orders&sig=SGP9IYMkMmRdfFCMIUWAjJUeFtwsLdx7%"
      "2FhI%3D";
  const AddressRules rules;
  for (auto _ : state) {
    Resource resource;
    QueryParameters parameters;
    benchmark::DoNotOptimize(ParseResource(target, "127.0.0.1:10002", false, rules, &resource));
    benchmark::DoNotOptimize(parameters.Parse(resource.query));
  }
}
BENCHMARK(BM_ParseAddress);

}  // namespace
}  // namespace partita::http
