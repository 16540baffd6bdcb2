#include <troupe/runtime/execution/build_id.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include <elf.h>
#include <link.h>
#include <xxhash.h>

namespace troupe {
namespace {

std::string note_of(const dl_phdr_info& object) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const auto& header = object.dlpi_phdr[i];
    if (header.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const char*>(object.dlpi_addr + header.p_vaddr);
    const auto* end = at + header.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const auto* name = at + sizeof note;
      const auto* content = name + ((note.n_namesz + 3) & ~3u);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0)
        return {content, note.n_descsz};
      at = content + ((note.n_descsz + 3) & ~3u);
    }
  }
  return {};
}

std::string content_of(const char* path) {
  std::ifstream file{*path ? path : "/proc/self/exe", std::ios::binary};
  const std::string bytes{std::istreambuf_iterator<char>{file}, {}};
  const auto hash = XXH3_64bits(bytes.data(), bytes.size());
  return {reinterpret_cast<const char*>(&hash), sizeof hash};
}

int collect(dl_phdr_info* object, std::size_t, void* out) {
  // The kernel's own object is no part of the build and differs between machines.
  if (std::strstr(object->dlpi_name, "linux-vdso")) return 0;
  auto id = note_of(*object);
  if (id.empty()) id = content_of(object->dlpi_name);
  static_cast<std::vector<std::string>*>(out)->push_back(std::move(id));
  return 0;
}

std::string compute() {
  std::vector<std::string> parts;
  dl_iterate_phdr(collect, &parts);
  std::sort(parts.begin(), parts.end());
  std::string all;
  for (const auto& part : parts) all += part;
  const auto hash = XXH3_128bits(all.data(), all.size());
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}

} // namespace

const std::string& build_id() {
  static const std::string id = compute();
  return id;
}

} // namespace troupe
