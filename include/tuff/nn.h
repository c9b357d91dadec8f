// All layers: layers.h, window_layers.h, recurrent.h, transformer.h; module.h is their base.
#pragma once

#include <tuff/layers.h>
#include <tuff/module.h>
#include <tuff/recurrent.h>
#include <tuff/transformer.h>
#include <tuff/window_layers.h>
