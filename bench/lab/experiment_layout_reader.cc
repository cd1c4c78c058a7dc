#include <algorithm>

#include "bench/lab/experiment_checks.h"
#include "bench/lab/experiment_reader.h"

// Layouts: what becomes of records.
namespace partita::lab {

bool ExperimentReader::ReadTemplate(const TomlSection& section, std::string_view key, KeyTemplate* out) {
  if (!section.Require(key)) return false;
  std::string text;
  section.Text(key, &text);
  Result<KeyTemplate> parsed = KeyTemplate::Parse(text, experiment_.fields);
  if (!parsed.ok()) {
    section.Wrong(key, parsed.status().message());
    return false;
  }
  *out = std::move(*parsed);
  return true;
}

EntityPlan ExperimentReader::ReadEntity(const TomlSection& section, std::string_view default_table) {
  EntityPlan entity{.name = ReadName(section), .table = std::string(default_table)};
  section.Text("table", &entity.table);
  // Types may have keys of their own.
  const bool needs_keys = !section.Has("type");
  const bool has_partition_key =
      (needs_keys || section.Has("pk")) && ReadTemplate(section, "pk", &entity.partition_key);
  const bool has_row_key = (needs_keys || section.Has("rk")) && ReadTemplate(section, "rk", &entity.row_key);
  // Of a folded entity a record's own fields would be those of whoever wrote last.
  const bool has_own = !section.Has("fold") && !section.Has("list");
  entity.fields = ReadFields(section, "props", has_own);
  if (section.Has("list")) {
    std::string field;
    section.Text("list", &field);
    entity.list_of = FieldNamed(section, *section.Node("list"), field);
    if (section.Has("props")) section.Wrong("props", "a list is the one property of its entity");
  }
  if (makes_samples_ && has_partition_key && has_row_key && !section.Has("fold") && !section.Has("type")) {
    CheckEntityPlan(experiment_, entity, section);
  }
  return entity;
}

void ExperimentReader::ReadFold(const TomlSection& section, EntityPlan* entity) {
  KeyTemplate name;
  ReadTemplate(section, "property", &name);
  entity->fold_name = std::move(name);
  std::string from;
  if (section.Require("from")) section.Text("from", &from);
  if (section.Has("from")) {
    entity->fold_from = FieldNamed(section, *section.Node("from"), from).value_or(0);
  }
  section.Flag("pack", &entity->fold_packs);
  if (!entity->fold_packs || !section.sound()) return;
  if (experiment_.fields[entity->fold_from].type() != PropertyType::kString) {
    section.Wrong("from", "only texts are packed");
  }
  if (entity->fold_name->parts().size() != 1 || entity->fold_name->parts()[0].expression != nullptr) {
    section.Wrong("property", "is one name where values are packed");
  }
}

std::optional<EntityPlan::When> ExperimentReader::ReadWhen(const TomlSection& section) {
  if (!section.Require("when")) return std::nullopt;
  const toml::table* table = section.Node("when")->as_table();
  if (table == nullptr || table->size() != 1) {
    section.Wrong("when",
                  "is a table of one field, such as { type = \"employee\" } or { type = [\"a\", \"b\"] }");
    return std::nullopt;
  }
  const auto first = table->begin();  // What it points to is a part of it.
  const auto& [key, node] = *first;
  const auto field = FieldNamed(section, node, std::string(key.str()));
  if (!field) return std::nullopt;
  EntityPlan::When when{.field = *field, .values = {}};
  const toml::array* several = node.as_array();
  if (several == nullptr) {
    if (!ReadValue(section, node, experiment_.fields[*field], &when.values.emplace_back()))
      return std::nullopt;
    return when;
  }
  for (const toml::node& one : *several) {
    if (!ReadValue(section, one, experiment_.fields[*field], &when.values.emplace_back()))
      return std::nullopt;
  }
  return when;
}

EntityPlan ExperimentReader::ReadType(const TomlSection& section, const EntityPlan& base) {
  EntityPlan type{.name = ReadName(section),
                  .table = base.table,
                  .partition_key = base.partition_key,
                  .row_key = base.row_key};
  section.Text("table", &type.table);
  bool has_keys = true;
  if (section.Has("pk") || base.partition_key.parts().empty()) {
    has_keys = ReadTemplate(section, "pk", &type.partition_key);
  }
  if (section.Has("rk") || base.row_key.parts().empty()) {
    has_keys = ReadTemplate(section, "rk", &type.row_key) && has_keys;
  }
  type.fields = ReadFields(section, "props", true);
  type.when = ReadWhen(section);
  if (makes_samples_ && has_keys && type.when) CheckEntityPlan(experiment_, type, section);
  return type;
}

void ExperimentReader::ReadTypes(const TomlSection& section, const EntityPlan& base, Layout* layout) {
  if (section.Has("fold")) section.Wrong("fold", "goes with one type of entity only");
  if (section.Has("props")) section.Wrong("props", "each type has its own");
  section.Sections("type", "type", [&](const TomlSection& type) {
    EntityPlan plan = ReadType(type, base);
    for (const EntityPlan& other : layout->entities) {
      if (!plan.when || !other.when) continue;
      if (plan.when->field != other.when->field)
        type.Wrong("when", "all types are told apart by the same field");
      for (const PropertyValue& value : plan.when->values) {
        const auto& taken = other.when->values;
        if (std::find(taken.begin(), taken.end(), value) == taken.end()) continue;
        type.Wrong("when", "type '" + other.name + "' has this value too");
      }
    }
    layout->entities.push_back(std::move(plan));
  });
  layout->types = std::max<size_t>(layout->entities.size(), 1);
  if (layout->entities.empty()) layout->entities.push_back(base);
}

EntityPlan ExperimentReader::ReadCopy(const TomlSection& section, const std::string& table) {
  EntityPlan entity = ReadEntity(section, table);
  section.Flag("atomic", &entity.atomic);
  if (entity.atomic && entity.list_of) {
    section.Wrong("atomic", "a list is read before it is written, which no transaction does");
  }
  return entity;
}

void ExperimentReader::ReadLayout(const TomlSection& section) {
  Layout layout;
  EntityPlan base = ReadEntity(section, "Lab");
  layout.name = base.name;
  base.name.clear();
  const std::string table = base.table;
  size_t one_of = 0;
  if (section.Has("one_of")) section.Choice("one_of", {"points", "filter"}, &one_of);
  layout.joins_choices = one_of == 1;
  section.Section("arrival", "own arrival", [&](const TomlSection& own) { ReadOwnArrival(own, &layout); });
  if (section.Has("type")) {
    ReadTypes(section, base, &layout);
  } else {
    section.Section("fold", "fold", [&](const TomlSection& fold) { ReadFold(fold, &base); });
    layout.entities.push_back(std::move(base));
  }
  section.Sections("copy", "copy",
                   [&](const TomlSection& copy) { layout.entities.push_back(ReadCopy(copy, table)); });
  if (makes_samples_ && section.Has("fold")) CheckEntityPlan(experiment_, layout.entities[0], section);
  if (makes_samples_ && section.sound()) CheckLayout(experiment_, layout, section);
  for (const Layout& other : experiment_.layouts) {
    if (other.name == layout.name) section.Wrong("name", "there are two layouts '" + layout.name + "'");
  }
  experiment_.layouts.push_back(std::move(layout));
}

}  // namespace partita::lab
