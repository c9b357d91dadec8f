// The functions that opcodes.def names: each sets Instruction::execute, and what else the form
// says, for the forms of its rows. Called by the parser; each group has a file.
#pragma once

#include "emu/ptx/form.h"

namespace tuff::emu::ptx {

void make_integer(const Form& form, Instruction& i);             // integer.cpp
void make_carry(const Form& form, Instruction& i);               // integer.cpp
void make_bits(const Form& form, Instruction& i);                // bits.cpp
void make_float(const Form& form, Instruction& i);               // float.cpp
void make_test(const Form& form, Instruction& i);                // float.cpp
void make_approximation(const Form& form, Instruction& i);       // approximation.cpp
void make_half(const Form& form, Instruction& i);                // half.cpp
void make_setp(const Form& form, Instruction& i);                // compare.cpp
void make_set(const Form& form, Instruction& i);                 // compare.cpp
void make_select(const Form& form, Instruction& i);              // compare.cpp
void make_predicate(const Form& form, Instruction& i);           // compare.cpp
void make_move(const Form& form, Instruction& i);                // move.cpp
void make_nothing(const Form& form, Instruction& i);             // move.cpp
void make_address_conversion(const Form& form, Instruction& i);  // move.cpp
void make_space_test(const Form& form, Instruction& i);          // move.cpp
void make_convert(const Form& form, Instruction& i);             // convert.cpp
void make_convert_pair(const Form& form, Instruction& i);        // convert.cpp
void make_load(const Form& form, Instruction& i);                // memory_ops.cpp
void make_store(const Form& form, Instruction& i);               // memory_ops.cpp
void make_async_copy(const Form& form, Instruction& i);          // memory_ops.cpp
void make_atomic(const Form& form, Instruction& i);              // atomics.cpp
void make_fence(const Form& form, Instruction& i);               // atomics.cpp
void make_barrier(const Form& form, Instruction& i);             // barrier.cpp
void make_shuffle(const Form& form, Instruction& i);             // warp_ops.cpp
void make_vote(const Form& form, Instruction& i);                // warp_ops.cpp
void make_match(const Form& form, Instruction& i);               // warp_ops.cpp
void make_redux(const Form& form, Instruction& i);               // warp_ops.cpp
void make_active_mask(const Form& form, Instruction& i);         // warp_ops.cpp
void make_warp_barrier(const Form& form, Instruction& i);        // warp_ops.cpp
void make_matrix(const Form& form, Instruction& i);              // matrix.cpp
void make_matrix_load(const Form& form, Instruction& i);         // matrix.cpp

// `mov` between a register and a vector of narrower ones, which `opcodes.def` has no row for:
// `width` bits each.
void make_pack(Instruction& i, uint32_t width);    // move.cpp
void make_unpack(Instruction& i, uint32_t width);  // move.cpp
// Reads a clock: %clock, %clock64, %globaltimer.
void make_clock(Instruction& i);  // move.cpp

}  // namespace tuff::emu::ptx
