// What an entity of 12 properties and about 1 KiB costs to encode, check, read and merge.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "engine/base/entity_record.h"
#include "engine/base/text.h"

namespace partita {
namespace {

// As a customer record might be: four texts of 40 bytes, one of 640, and one of each other type.
std::vector<Property> TwelveProperties() {
  std::vector<Property> properties;
  for (const char* name : {"FirstName", "LastName", "City", "Email"})
    properties.push_back({name, std::string(40, 'x')});
  properties.push_back({"Description", std::string(640, 'd')});
  properties.push_back({"Age", 42});
  properties.push_back({"Balance", int64_t{1} << 40});
  properties.push_back({"Score", 0.75});
  properties.push_back({"Active", true});
  properties.push_back({"Joined", DateTime{133'500'000'000'000'000}});
  properties.push_back({"Session", Guid{}});
  properties.push_back({"Digest", Binary{std::string(32, '\xAB')}});
  return properties;
}

std::vector<Property> PatchOfTwo() { return {{"Age", 43}, {"City", std::string(30, 'y')}}; }

void BM_Encode(benchmark::State& state) {
  const std::vector<Property> properties = TwelveProperties();
  for (auto _ : state) benchmark::DoNotOptimize(EncodeEntityRecord(properties));
  state.counters["bytes"] = static_cast<double>(EncodeEntityRecord(properties).size());
}
BENCHMARK(BM_Encode);

void BM_Check(benchmark::State& state) {
  const std::string content = EncodeEntityRecord(TwelveProperties());
  for (auto _ : state) benchmark::DoNotOptimize(EntityRecordView(content).Check());
}
BENCHMARK(BM_Check);

// The whole entity into values that own their bytes.
void BM_DecodeAll(benchmark::State& state) {
  const std::string content = EncodeEntityRecord(TwelveProperties());
  for (auto _ : state) {
    const EntityRecordView view(content);
    std::vector<Property> properties;
    properties.reserve(view.property_count());
    for (size_t k = 0; k < view.property_count(); ++k) {
      properties.push_back({std::string(view.inserted(k).name()), view.inserted(k).ToValue()});
    }
    benchmark::DoNotOptimize(properties);
  }
}
BENCHMARK(BM_DecodeAll);

// One property as a predicate reads it, each of the twelve in turn.
void BM_FindCode(benchmark::State& state) {
  const std::vector<Property> properties = TwelveProperties();
  const std::string content = EncodeEntityRecord(properties);
  const EntityRecordView view(content);
  size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(view.Find(properties[next].name)->code());
    next = next + 1 == properties.size() ? 0 : next + 1;
  }
}
BENCHMARK(BM_FindCode);

void BM_FindAbsent(benchmark::State& state) {
  const std::string content = EncodeEntityRecord(TwelveProperties());
  const EntityRecordView view(content);
  for (auto _ : state) benchmark::DoNotOptimize(view.Find("Country"));
}
BENCHMARK(BM_FindAbsent);

void BM_MergeTwoOfTwelve(benchmark::State& state) {
  const std::string base = EncodeEntityRecord(TwelveProperties());
  const std::string patch = EncodeEntityRecord(PatchOfTwo());
  for (auto _ : state) benchmark::DoNotOptimize(MergeEntityRecords(base, patch));
}
BENCHMARK(BM_MergeTwoOfTwelve);

void BM_ZoneCodes(benchmark::State& state) {
  const std::string content = EncodeEntityRecord(TwelveProperties());
  for (auto _ : state) {
    uint64_t sum = 0;
    ZoneCodes(content, nullptr, [&](std::string_view, PropertyType, uint64_t code) { sum += code; });
    benchmark::DoNotOptimize(sum);
  }
}
BENCHMARK(BM_ZoneCodes);

void BM_BilledSize(benchmark::State& state) {
  const std::string content = EncodeEntityRecord(TwelveProperties());
  for (auto _ : state) benchmark::DoNotOptimize(EntityRecordView(content).BilledSize());
}
BENCHMARK(BM_BilledSize);

void BM_ValidateUtf8(benchmark::State& state) {
  std::string text;
  while (text.size() < 1024) text += state.range(0) == 0 ? "plain ascii text" : "\xC3\xBC\xE6\x9D\xB1";
  for (auto _ : state) benchmark::DoNotOptimize(IsValidUtf8(text));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
}
BENCHMARK(BM_ValidateUtf8)->Arg(0)->Arg(1);

}  // namespace
}  // namespace partita
