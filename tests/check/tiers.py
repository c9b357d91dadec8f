"""The forced tiers of Vulkan, and of OpenCL: what each switches off in the driver's answers, and what `tuff devices`
then shows. Read by tiers_test.py and conformance.py."""

FLOOR = "core12,bda,timeline,sync2,f16,i8,i16,i64,f64,storage,sub"

# name -> environment
TIERS = {
    "floor": {"TUFF_VK_DISABLE": FLOOR, "TUFF_VK_LIMIT": "ssbo:4,range:33554432"},
    "descriptors": {"TUFF_VK_DISABLE": "bda"},
    "four_buffers": {"TUFF_VK_DISABLE": "bda", "TUFF_VK_LIMIT": "ssbo:4"},
    "tiny_range": {"TUFF_VK_DISABLE": "bda", "TUFF_VK_LIMIT": "range:131072"},
    "fences": {"TUFF_VK_DISABLE": "timeline"},
    "fences_legacy": {"TUFF_VK_DISABLE": "timeline,sync2"},
    "vulkan11": {"TUFF_VK_DISABLE": "core12"},
    "f16": {"TUFF_VK_DISABLE": "f16"},
    "i8": {"TUFF_VK_DISABLE": "i8"},
    "i16": {"TUFF_VK_DISABLE": "i16"},
    "i64": {"TUFF_VK_DISABLE": "i64"},
    "f64": {"TUFF_VK_DISABLE": "f64"},
    "storage": {"TUFF_VK_DISABLE": "storage"},
    "no_subgroups": {"TUFF_VK_DISABLE": "sub"},
    # lavapipe's subgroups are as wide as its vectors.
    "subgroup4": {"LP_NATIVE_VECTOR_WIDTH": "128"},
    "subgroup8": {"LP_NATIVE_VECTOR_WIDTH": "256"},
    "subgroup16": {"LP_NATIVE_VECTOR_WIDTH": "512"},
    # Of OpenCL: no shared virtual memory; none that the host reaches.
    "buffers": {"TUFF_CL_DISABLE": "svm"},
    "coarse": {"TUFF_CL_DISABLE": "fine-svm"},
}

# What a tier refuses besides expected_unsupported.def, by these words of the message.
REFUSED = {"tiny_range": "maxStorageBufferRange"}

# Features that a tier's listing has to show; what the driver has is the rest.
SHOWN = {
    "floor": {"sync": "fences", "buffers": "descriptors", "ssbo": "4", "range": "33554432", "shaderInt64": "no"},
    "descriptors": {"buffers": "descriptors", "bufferDeviceAddress": "no"},
    "four_buffers": {"buffers": "descriptors", "ssbo": "4"},
    "tiny_range": {"buffers": "descriptors", "range": "131072"},
    "fences": {"sync": "fences", "buffers": "addresses"},
    "fences_legacy": {"sync": "fences", "synchronization2": "no"},
    # Addresses or descriptors: not every driver of 1.2 also lists the extension that 1.2 took in.
    "vulkan11": {"vulkan12": "no", "sync": "timeline"},
    "f16": {"shaderFloat16": "no"},
    "i8": {"shaderInt8": "no"},
    "i16": {"shaderInt16": "no"},
    "i64": {"shaderInt64": "no"},
    "f64": {"shaderFloat64": "no"},
    "storage": {"storageBuffer8BitAccess": "no", "storageBuffer16BitAccess": "no"},
    "no_subgroups": {"subgroupArithmetic": "no", "subgroupShuffle": "no"},
    "subgroup4": {"subgroup size": "4"},
    "subgroup8": {"subgroup size": "8"},
    "subgroup16": {"subgroup size": "16"},
    "buffers": {"memory": "buffers"},
    "coarse": {"memory": "coarse-svm"},
}
assert SHOWN.keys() == TIERS.keys()
