#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "api/cli/command_words.h"
#include "api/cli/nearest_name.h"

// What is said of words that make no command, and of --help.
namespace partita {

std::vector<std::string> CommandNamesOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

namespace {

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// What other programs call a command; empty: nothing known.
std::string OursFor(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kOthers[] = {
      {"drop-table", "delete-table"}, {"insert", "put"},   {"upsert", "put"},
      {"remove", "delete"},           {"select", "query"}, {"list-tables", "tables"}};
  for (const auto& [theirs, ours] : kOthers) {
    if (name == theirs) return std::string(ours);
  }
  return "";
}

// The innermost command that was chosen, or the program.
const CLI::App& ChosenIn(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return chosen.empty() ? app : ChosenIn(*chosen.front());
}

// The first word that nothing took; empty: none.
std::string FirstUnknownWord(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining(/*recurse=*/true);
  const auto word = std::find_if(words.begin(), words.end(), [](const std::string& w) { return w != "--"; });
  return word == words.end() ? "" : *word;
}

// "unknown option '--tabel'; did you mean --table?" for the first word that nothing took.
std::string UnknownWord(const CLI::App& app) {
  const std::string word = FirstUnknownWord(app);
  if (word.empty()) return "";
  const CLI::App& chosen = ChosenIn(app);
  std::vector<std::string> known = OptionNames(app);
  std::string what = "option";
  std::string nearest;
  const std::string name = word.substr(0, word.find('='));
  if (!word.starts_with("-")) {
    known = CommandNamesOf(chosen);
    what = known.empty() ? "word" : "command";
    nearest = OursFor(name);
  } else if (&chosen != &app) {
    for (std::string& option : OptionNames(chosen)) known.push_back(std::move(option));
  }
  if (std::find(known.begin(), known.end(), nearest) == known.end()) nearest = NearestName(name, known);
  std::string advice = nearest.empty() ? "" : "; did you mean " + nearest + "?";
  if (nearest == name) advice = "; behind -- there are no options, give them before";
  // Without what stands behind =, which may be a key.
  return "unknown " + what + " '" + (word.starts_with("-") ? name : word) + "'" + advice;
}

// Whether a command was to be named, and another word stands there.
bool HasUnknownCommand(const CLI::App& app) {
  const std::string word = FirstUnknownWord(app);
  return !word.empty() && !word.starts_with("-") && !CommandNamesOf(ChosenIn(app)).empty();
}

}  // namespace

ExitCode Explain(CLI::App& app, const CLI::ParseError& error, Console& console) {
  std::ostringstream out, err;
  const int code = app.exit(error, out, err);
  // Help on what does not exist would pass for an answer.
  if (code == 0 && !HasUnknownCommand(app)) {
    console.out << out.str();
    return ExitCode::kOk;
  }
  const std::vector<CLI::App*> commands = app.get_subcommands();
  const std::string of = app.get_name() + (commands.empty() ? "" : " " + commands[0]->get_name());
  const std::string unknown = UnknownWord(app);
  const std::string what = !unknown.empty()   ? unknown
                           : commands.empty() ? "which command? There are: " +
                                                    [&app] {
                                                      std::string names;
                                                      for (const std::string& name : CommandNamesOf(app))
                                                        names += " " + name;
                                                      return names.substr(1);
                                                    }()
                                              : std::string(error.what());
  console.err << of << ": " << what << "\nTry: " << of << " --help\n";
  return ExitCode::kUsage;
}

}  // namespace partita
