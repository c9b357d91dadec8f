// All layers: layers.h, recurrent.h, transformer.h; module.h is their base.
#pragma once

#include <tuff/layers.h>
#include <tuff/module.h>
#include <tuff/recurrent.h>
#include <tuff/transformer.h>
