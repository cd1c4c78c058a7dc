#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace partita {

// As files take it. A view.
inline std::span<const uint8_t> AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace partita
