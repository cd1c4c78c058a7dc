#pragma once
#include <span>
#include <string>

#include "engine/base/entity_record.h"

namespace partita {

// As EncodeEntityRecord, behind what `out` holds: for who gathers many records in one piece of memory.
void AppendEntityRecord(std::string* out, std::span<const Property> properties,
                        const PropertyNames* names = nullptr);

}  // namespace partita
