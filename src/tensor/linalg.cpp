#include <tuff/linalg.h>
