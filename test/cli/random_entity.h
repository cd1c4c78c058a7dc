#pragma once
#include <bit>
#include <random>
#include <string>

#include "api/entity.h"
#include "engine/base/text.h"

namespace partita {

// Text with every kind of character that a format could stumble over.
inline std::string RandomText(std::mt19937_64* random, size_t characters_max) {
  std::string text;
  for (size_t i = (*random)() % (characters_max + 1); i > 0; --i) {
    static constexpr std::string_view kSpecial = "\",\\\r\n\t \0/{}@'";
    switch ((*random)() % 4) {
      case 0:
        text.push_back(kSpecial[(*random)() % kSpecial.size()]);
        break;
      case 1:
        AppendUtf8Character(&text, 0xE000 + (*random)() % 0x1FFF);
        break;
      case 2:
        AppendUtf8Character(&text, 0x10000 + (*random)() % 0x100000);
        break;
      default:
        text.push_back(static_cast<char>('a' + (*random)() % 26));
    }
  }
  return text;
}

inline PropertyValue RandomValue(std::mt19937_64* random) {
  switch ((*random)() % 8) {
    case 0:
      return RandomText(random, 12);
    case 1:
      return static_cast<int32_t>((*random)());
    case 2:
      return static_cast<int64_t>((*random)());
    case 3: {
      // Any bits but a NaN's, which have no text of their own.
      const auto value = std::bit_cast<double>((*random)());
      return value == value ? value : std::numeric_limits<double>::quiet_NaN();
    }
    case 4:
      return ((*random)() & 1) != 0;
    case 5:
      return DateTime{(*random)() % (kDateTimeTicksMax + 1)};
    case 6: {
      Guid guid;
      for (uint8_t& byte : guid.bytes) byte = static_cast<uint8_t>((*random)());
      return guid;
    }
    default: {
      Binary binary;
      for (size_t i = (*random)() % 20; i > 0; --i) binary.bytes.push_back(static_cast<char>((*random)()));
      return binary;
    }
  }
}

// An entity that a table takes.
inline Entity RandomEntity(std::mt19937_64* random) {
  static constexpr const char* kKeys[] = {
      "", "plain", "a,b", "quote\"s", " lead and trail ", "\xE6\x9D\xB1\xF0\x9F\x98\x80"};
  static constexpr const char* kNames[] = {"a", "A", "Name", "_x", "\xC3\xBCx", "type", "n1", "n2", "n3"};
  Entity entity(kKeys[(*random)() % std::size(kKeys)], kKeys[(*random)() % std::size(kKeys)]);
  for (size_t i = (*random)() % 9; i > 0; --i) {
    entity.Set(kNames[(*random)() % std::size(kNames)], RandomValue(random));
  }
  return entity;
}

}  // namespace partita
