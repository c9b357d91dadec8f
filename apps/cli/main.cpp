#include "cli/application.h"

int main(int argc, char** argv) { return tuff::cli::run_program(argc, argv); }
