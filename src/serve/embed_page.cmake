# cmake -D PAGE=page.html -D OUT=page.cpp -P embed_page.cmake: the bytes of a file as a C++ array.
file(READ ${PAGE} bytes HEX)
string(LENGTH "${bytes}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUT} "#include \"serve/page.h\"

namespace tuff::serve {
namespace {
constexpr unsigned char kBytes[] = {
${bytes}
};
}  // namespace
const std::string_view kPage(reinterpret_cast<const char*>(kBytes), ${size});
}  // namespace tuff::serve
")
