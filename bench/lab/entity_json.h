#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "api/entity.h"
#include "bench/lab/experiment.h"
#include "bench/lab/table_store.h"

namespace partita::lab {

// Entities as the table service writes them, without metadata.

// A body that writes it, with the types of properties that JSON has not.
std::string EntityJson(const Entity& entity);

// The entities of an answer to a query. Their properties are there when they are wanted: those that are
// fields of the experiment, in the fields' types. kIoError: it is no such answer.
Result<std::vector<Entity>> ReadEntities(std::string_view body, const std::vector<Field>& fields,
                                         bool wants_properties);
// The same of one entity, with its properties.
Result<Entity> ReadEntity(std::string_view body, const std::vector<Field>& fields);

// The names in an answer to a query of Tables.
Result<std::vector<std::string>> ReadTableNames(std::string_view body);

}  // namespace partita::lab
