// `tuff docs NAME`.
#include <array>
#include <memory>
#include <vector>

#include "base/check.h"
#include "cli/command.h"
#include "docs/docs.h"

namespace tuff::cli {
namespace {

struct DocsRow {
  const char* name;
  std::string (*text)();  // null: the help, which needs the parsed application
};
constexpr std::array<DocsRow, 8> kRows{{{"env", docs::env_table},
                                        {"budgets", docs::budget_table},
                                        {"ops", docs::op_table},
                                        {"devices", docs::device_table},
                                        {"limits", docs::limit_table},
                                        {"help", nullptr},
                                        {"walk", docs::walk_text},
                                        {"kernels", docs::kernel_table}}};

int print_docs(const std::string& name, const CLI::App& app) {
  for (const DocsRow& row : kRows) {
    if (name == row.name) fmt::print("{}", row.text ? row.text() : docs::help_text(app));
  }
  return kExitOk;
}

}  // namespace

void add_docs_command(CLI::App& app, Action& chosen) {
  CLI::App* command = app.add_subcommand("docs", "Prints a generated piece of the documents");
  auto name = std::make_shared<std::string>();
  std::vector<std::string> names;
  for (const DocsRow& row : kRows) names.push_back(row.name);
  command->add_option("name", *name, fmt::format("One of {}", fmt::join(names, ", ")))
      ->required()
      ->type_name("NAME")
      ->check([names](const std::string& given) {
        const bool known = std::find(names.begin(), names.end(), given) != names.end();
        return known ? std::string()
                     : fmt::format("{} is none of {}", given, fmt::join(names, ", "));
      });
  command->footer(
      "Examples:\n"
      "  tuff docs env");
  command->callback(
      [name, &app, &chosen] { chosen = [name, &app] { return print_docs(*name, app); }; });
}

}  // namespace tuff::cli
