#pragma once
#include <array>
#include <istream>
#include <string>

namespace partita {

// All that is left of a stream. False: reading failed (errno tells why, where it is not 0). By read(), which
// notes an error in the stream; who takes from its buffer himself, as by iterators, is thrown one.
inline bool ReadWhole(std::istream& in, std::string* text) {
  std::array<char, 4096> part{};
  do {
    in.read(part.data(), part.size());
    text->append(part.data(), static_cast<size_t>(in.gcount()));
  } while (in);
  return !in.bad();
}

}  // namespace partita
