// The statements of a module: its head, variables, and functions up to their bodies.
#include <algorithm>
#include <bit>
#include <cstring>

#include "base/arith.h"
#include "emu/ptx/parse.h"
#include "emu/ptx/parser.h"

namespace tuff::emu::ptx {
namespace {

constexpr uint64_t kMostGlobalBytes = 256 << 20, kMostParameterBytes = 32764;
constexpr uint64_t kBetweenVariables = 256;  // so that what goes past one does not reach the next

class ModuleParser {
 public:
  explicit ModuleParser(std::string_view text)
      : cursor_(tokens_of(text)), module_(std::make_unique<Module>()) {}

  std::unique_ptr<Module> read() {
    read_head();
    while (!cursor_.done()) statement();
    resolve_calls();
    for (Function& f : module_->functions) {
      if (f.is_entry) finish_kernel(f);
    }
    module_->names.clear();  // nothing refers to the text any more
    return std::move(module_);
  }

 private:
  // 11.1: ".version", ".target" and ".address_size" come first.
  void read_head() {
    cursor_.expect(".version");
    module_->version_text = version();
    cursor_.expect(".target");
    if (!cursor_.peek().text.starts_with("sm_"))
      cursor_.wrong(fmt::format("target {} is no sm_NN", Cursor::shown(cursor_.peek())));
    module_->target_name = std::string(cursor_.name());
    while (cursor_.take_if(",")) cursor_.name();  // of debuggers and textures
    if (cursor_.take_if(".address_size") && cursor_.number(64) != 64)
      cursor_.wrong("addresses have 64 bits here");
  }

  // Written as a decimal, which is a constant of PTX too.
  std::string version() {
    const Token token = cursor_.take();
    if (token.kind != Token::Kind::Double) cursor_.wrong("a version like 7.8 is wanted");
    return std::string(token.text);
  }

  void statement() {
    if (cursor_.take_if(";")) return;
    const Token token = cursor_.take();
    if (token.is(".file") || token.is(".loc")) return skip_rest(token.line);
    if (token.is(".pragma")) return skip_to_semicolon();
    if (token.is(".section")) return skip_section();
    bool is_extern = false;
    Token what = token;
    while (what.is(".visible") || what.is(".extern") || what.is(".weak") || what.is(".common")) {
      is_extern |= what.is(".extern");
      what = cursor_.take();
    }
    if (what.is(".entry") || what.is(".func")) return function(what.is(".entry"), what.line);
    if (what.is(".global") || what.is(".const")) return global(what.is(".const"), is_extern);
    if (what.is(".shared")) return shared();
    fail<CompileError>("PTX line {}: {} is not known here", what.line, Cursor::shown(what));
  }

  void skip_rest(uint32_t line) {
    while (!cursor_.done() && cursor_.peek().line == line) cursor_.take();
  }
  void skip_to_semicolon() {
    while (!cursor_.done() && !cursor_.take_if(";")) cursor_.take();
  }
  // Debug information in braces.
  void skip_section() {
    while (!cursor_.done() && !cursor_.take_if("}")) cursor_.take();
  }

  // ---- variables

  void global(bool is_constant, bool is_extern) {
    const Declaration d = read_declaration(cursor_);
    if (d.unsized && !is_extern && !cursor_.peek().is("="))
      cursor_.wrong(fmt::format("'{}' has no size", d.name));
    std::vector<uint8_t> values = cursor_.take_if("=") ? initial_values(d) : std::vector<uint8_t>();
    cursor_.expect(";");
    if (is_extern) fail_extern(d.name);
    const uint64_t bytes = d.unsized ? values.size() : d.bytes();
    global_bytes_ += bytes;
    if (bytes == 0 || global_bytes_ > kMostGlobalBytes)
      cursor_.wrong(fmt::format("'{}' has {} bytes; {} are the most in all", d.name, bytes,
                                kMostGlobalBytes));
    values.resize(bytes);
    module_->storage.push_back(std::move(values));
    next_address_ = align_up(next_address_ + kBetweenVariables, std::max(256u, d.alignment));
    module_->globals.push_back(
        {std::string(d.name), next_address_, bytes, module_->storage.back().data(), is_constant});
    declare(d.name,
            {Symbol::Kind::Variable, 0, Constant::Source::Value, next_address_, uint32_t(bytes)});
    next_address_ += bytes;
  }

  [[noreturn]] void fail_extern(std::string_view variable) const {
    cursor_.wrong(fmt::format("'{}' is of another module: modules are not linked here", variable));
  }

  // "= 5", "= {1, 2}", "= {{1, 2}, {3, 4}}", with constants, names of variables and generic(name).
  std::vector<uint8_t> initial_values(const Declaration& d) {
    std::vector<uint8_t> out;
    const uint32_t size = bytes_of(d.type);
    size_t depth = 0;
    do {
      while (cursor_.take_if("{")) ++depth;
      if (!cursor_.peek().is("}")) {
        const uint64_t bits = initial_value(d.type);
        const size_t at = out.size();
        if (!d.unsized && at + size > d.bytes())
          cursor_.wrong(fmt::format("'{}' has fewer elements than values", d.name));
        if (at > kMostGlobalBytes) cursor_.wrong("too many values");
        out.resize(at + size);
        std::memcpy(out.data() + at, &bits, size);
      }
      while (depth > 0 && cursor_.take_if("}")) --depth;
    } while (depth > 0 && (cursor_.expect(","), true));
    return out;
  }

  uint64_t initial_value(Type type) {
    const bool negative = cursor_.take_if("-");
    const Token token = cursor_.take();
    switch (token.kind) {
      case Token::Kind::Integer: return negative ? 0 - token.bits : token.bits;
      case Token::Kind::Single:
        return type == Type::F64
                   ? std::bit_cast<uint64_t>(double(std::bit_cast<float>(uint32_t(token.bits))))
                   : token.bits ^ (negative ? 0x80000000u : 0);
      case Token::Kind::Double: {
        const double value = std::bit_cast<double>(token.bits) * (negative ? -1 : 1);
        return type == Type::F32 ? std::bit_cast<uint32_t>(float(value))
                                 : std::bit_cast<uint64_t>(value);
      }
      case Token::Kind::Word: return initial_address(token);
      default: cursor_.wrong(fmt::format("a value is wanted, not {}", Cursor::shown(token)));
    }
  }

  // Of global and constant memory, generic addresses are the same.
  uint64_t initial_address(const Token& token) {
    std::string_view variable = token.text;
    if (variable == "generic") {
      cursor_.expect("(");
      variable = cursor_.name();
      cursor_.expect(")");
    }
    const auto found = symbols_.find(variable);
    if (found == symbols_.end() || found->second.source != Constant::Source::Value)
      cursor_.wrong(fmt::format("'{}' is no variable of global memory", variable));
    const uint64_t offset = cursor_.take_if("+") ? cursor_.number(UINT32_MAX) : 0;
    return found->second.value + offset;
  }

  void shared() {
    const Declaration d = read_declaration(cursor_);
    cursor_.expect(";");
    declare(d.name, {Symbol::Kind::Variable, 0, Constant::Source::Shared, module_->shared.size(),
                     uint32_t(d.bytes())});
    module_->shared.push_back(
        {std::string(d.name), d.unsized ? 0 : d.bytes(), d.alignment, d.unsized});
  }

  void declare(std::string_view variable, const Symbol& symbol) {
    if (!symbols_.emplace(variable, symbol).second)
      cursor_.wrong(fmt::format("'{}' is declared twice", variable));
  }

  // ---- functions

  void function(bool is_entry, uint32_t line) {
    Function& f = module_->functions.emplace_back();
    f.is_entry = is_entry;
    f.line = line;
    BodyParser body(cursor_, *module_, f, symbols_);
    if (!is_entry && cursor_.take_if("(")) f.results = formals(body, f, false);
    f.name = std::string(cursor_.name());
    if (cursor_.take_if("(")) {
      std::vector<Passed> all = formals(body, f, is_entry);
      if (!is_entry) f.formals = std::move(all);
    }
    read_attributes(f);
    if (cursor_.take_if(";")) return;
    for (const Function& other : module_->functions) {
      if (&other != &f && other.is_defined && other.name == f.name)
        cursor_.wrong(fmt::format("function '{}' is defined twice", f.name));
    }
    body.read();
    f.is_defined = true;
  }

  // Behind the bracket; an entry's parameters are those of the launch.
  std::vector<Passed> formals(BodyParser& body, Function& f, bool is_entry) {
    std::vector<Passed> out;
    if (cursor_.take_if(")")) return out;
    do {
      const bool is_register = !is_entry && cursor_.take_if(".reg");
      if (!is_register) cursor_.expect(".param");
      const Declaration d = read_declaration(cursor_);
      if (is_entry)
        body.declare_parameter(d);
      else
        out.push_back(is_register ? body.declare_formal_register(d) : body.declare_formal(d));
      if (std::max(f.kernel.parameter_bytes, f.parameter_bytes) > kMostParameterBytes)
        cursor_.wrong(fmt::format("more than {} bytes of parameters", kMostParameterBytes));
    } while (cursor_.take_if(","));
    cursor_.expect(")");
    return out;
  }

  // 11.4: limits for the compiler, of which two are rules for launches.
  void read_attributes(Function& f) {
    while (cursor_.peek().kind == Token::Kind::Directive) {
      const Token token = cursor_.take();
      if (token.is(".noreturn") || token.is(".explicitcluster")) continue;
      if (token.is(".pragma")) {
        skip_to_semicolon();
        continue;
      }
      if (!(token.is(".maxntid") || token.is(".reqntid") || token.is(".minnctapersm") ||
            token.is(".maxnctapersm") || token.is(".maxnreg")))
        cursor_.wrong(fmt::format("{} is not known here", Cursor::shown(token)));
      std::array<uint32_t, 3> size{1, 1, 1};
      size_t axis = 0;
      do {
        const auto value = uint32_t(cursor_.number(1 << 16));
        if (axis < 3) size[axis++] = value;
      } while (cursor_.take_if(","));
      if (token.is(".reqntid")) f.kernel.required_block = size;
      if (token.is(".maxntid"))
        f.kernel.most_threads =
            uint32_t(std::min<uint64_t>(uint64_t(size[0]) * size[1] * size[2], UINT32_MAX));
    }
  }

  void resolve_calls() {
    std::unordered_map<std::string_view, uint32_t> defined;
    for (uint32_t k = 0; k < module_->functions.size(); ++k) {
      const Function& f = module_->functions[k];
      if (f.is_defined && !f.is_entry) defined.emplace(f.name, k);
    }
    for (Function& f : module_->functions) {
      for (CallSite& call : f.calls) {
        const auto found = defined.find(call.name);
        if (found == defined.end())
          fail<CompileError>("PTX: '{}' calls '{}', which the module does not define", f.name,
                             call.name);
        call.callee = found->second;
        const Function& callee = module_->functions[call.callee];
        if (!same(call.arguments, callee.formals) || !same(call.results, callee.results))
          fail<CompileError>("PTX: '{}' calls '{}' with other parameters than it has", f.name,
                             call.name);
      }
    }
  }

  static bool same(const std::vector<Passed>& given, const std::vector<Passed>& wanted) {
    return std::ranges::equal(given, wanted, [](const Passed& a, const Passed& b) {
      return a.bytes == b.bytes && a.predicate == b.predicate;
    });
  }

  void finish_kernel(Function& f) {
    if (!f.is_defined) return;
    f.kernel.name = f.name;
    f.kernel.shared_bytes = module_->shared_layout(f).static_bytes;
    f.kernel.local_bytes = f.local_bytes;
    for (const auto& variable : module_->globals)
      f.kernel.constant_bytes += variable.constant ? uint32_t(variable.bytes) : 0;
    module_->infos.push_back(f.kernel);
  }

  Cursor cursor_;
  std::unique_ptr<Module> module_;
  Symbols symbols_;
  uint64_t next_address_ = kModuleWindow, global_bytes_ = 0;
};

}  // namespace

Declaration read_declaration(Cursor& cursor) {
  constexpr uint64_t kMostElements = 1ull << 32;
  Declaration d;
  while (cursor.peek().kind == Token::Kind::Directive) {
    const Token token = cursor.take();
    const std::string_view word = token.text.substr(1);
    if (word == "align") {
      d.alignment = uint32_t(cursor.number(1 << 16));
      if (!std::has_single_bit(d.alignment)) cursor.wrong("an alignment is a power of two");
    } else if (word == "v2" || word == "v4") {
      d.vector = word == "v2" ? 2 : 4;
    } else if (const auto type = type_of(word)) {
      d.type = *type;
    } else if (word != "ptr" && word != "global" && word != "shared" && word != "local" &&
               word != "const" && word != "volatile") {
      cursor.wrong(fmt::format("'.{}' is not known in a declaration", word));
    }
  }
  if (d.type == Type::None) cursor.wrong("a declaration without a type");
  d.name = cursor.name();
  while (cursor.take_if("[")) {
    if (cursor.take_if("]")) {
      d.unsized = true;
      continue;
    }
    d.count *= cursor.number(kMostElements);
    cursor.expect("]");
    if (d.count > kMostElements) cursor.wrong(fmt::format("'{}' has too many elements", d.name));
  }
  if (d.alignment == 0) d.alignment = std::max(1u, bytes_of(d.type) * d.vector);
  return d;
}

std::unique_ptr<Module> parse(std::string_view text) {
  std::unique_ptr<Module> module = ModuleParser(text).read();
  module->text = text;
  return module;
}

}  // namespace tuff::emu::ptx
