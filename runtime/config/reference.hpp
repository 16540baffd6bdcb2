#pragma once

/// The page docs/reference-keys.md, made from the schema.

#include <string>

namespace troupe {

/// The whole page as Markdown.
std::string key_reference();

} // namespace troupe
