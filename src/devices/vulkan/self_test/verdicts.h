// Verdicts: what the self-tests said about one driver and device, kept in the cache folder, so that
// they are run once. Called by vulkan_open, which runs what has no verdict yet, and vulkan_probe,
// which only asks. A capability without a good verdict is switched off in the Facts as if it had
// been masked.
//
// The file names the test under way before it begins: one that ended the process, or was ended with
// it, is found there at the next start and counts as failed. A damaged file is as none.
// Must never know what a test does.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "devices/vulkan/facts/facts.h"
#include "hcq/device.h"

namespace tuff::devices::vulkan {

// By names of self-tests: "passed", or what came out; "running" in the file alone.
using Verdicts = std::map<std::string, std::string>;

// What a verdict is about: driver, its version, the device, the capabilities in force, and
// kSelfTestVersion.
std::string self_test_identity(const Facts& facts);
// In the cache folder; empty if TUFF_CACHE is 0.
std::string verdict_path(const Facts& facts);

// The file's text and back; nothing if it is damaged or about something else.
std::string verdict_text(const std::string& identity, const Verdicts& verdicts);
Verdicts verdicts_from_text(const std::string& identity, const std::string& text);

// Applies the verdicts that there are; runs nothing, writes nothing.
void recall_verdicts(Facts& facts);

// A device of these Facts for the tests alone: what a test does to it does not outlive it.
using OpenTrial = std::function<std::unique_ptr<hcq::Device>(const Facts& facts)>;

// Runs the tests that have no verdict, one warning for each that fails, then applies all verdicts.
// `name` is the device's. A test that cannot be run for want of memory or the like has no verdict
// and switches nothing off.
void settle_verdicts(Facts& facts, const std::string& name, const OpenTrial& open);

}  // namespace tuff::devices::vulkan
