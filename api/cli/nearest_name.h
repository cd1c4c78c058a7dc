#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace partita {

// The name that a mistyped one most likely meant; empty when none is near (more than a third of its
// characters would have to change).
std::string NearestName(std::string_view typed, const std::vector<std::string>& names);

// The end of a message on it: "; did you mean NAME?"; empty when none is near.
std::string DidYouMean(std::string_view typed, const std::vector<std::string>& names);

}  // namespace partita
