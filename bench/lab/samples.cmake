# Makes lab_samples.cc of the experiments that `partita lab new --sample` writes, so that the command needs no
# file beside it. `out` is the variable that is set to its path.
function(partita_lab_samples source out)
  file(GLOB files CONFIGURE_DEPENDS ${source}/bench/lab/samples/*.toml ${source}/bench/lab/traces/*.toml
       ${source}/bench/lab/ycsb/*.toml)
  set(entries "")
  foreach(file IN LISTS files)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} text)
    # What it is called within.
    string(REGEX MATCH "\nname = \"([^\"]+)\"" found "\n${text}")
    string(APPEND entries "    {\"${CMAKE_MATCH_1}\", R\"sample(${text})sample\"},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/lab_samples.cc @ONLY CONTENT
"#include \"bench/lab/samples.h\"

namespace partita::lab {
namespace {

constexpr Sample kSamples[] = {
@entries@};

}  // namespace

std::span<const Sample> Samples() { return kSamples; }

}  // namespace partita::lab
")
  set(${out} ${CMAKE_BINARY_DIR}/lab_samples.cc PARENT_SCOPE)
endfunction()
