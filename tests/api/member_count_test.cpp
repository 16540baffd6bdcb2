/// How many members of a class can be counted is known while it is compiled, so this has no test that runs.

#include <any>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <troupe/runtime/api/member_count.hpp>

namespace {

using troupe::detail::member_count;

struct one_text {
  std::string text;
};
struct three {
  int a;
  std::string b;
  double c;
};
struct with_array {
  int a[3];
  int b;
};
struct nested {
  three first;
  with_array second[2];
  one_text third;
};
struct with_values {
  int a = 3;
  std::vector<int> b{1, 2};
  std::optional<int> c;
  std::map<int, std::string> d;
};
struct with_union {
  int a;
  union {
    int b;
    float c;
  };
};
struct with_bits {
  unsigned a : 3;
  unsigned b : 4;
};
struct itself {
  std::vector<itself> children;
  itself* parent;
};
struct twenty_one {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u;
};
struct sixty_three {
  int m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24,
      m25, m26, m27, m28, m29, m30, m31, m32, m33, m34, m35, m36, m37, m38, m39, m40, m41, m42, m43, m44, m45, m46, m47,
      m48, m49, m50, m51, m52, m53, m54, m55, m56, m57, m58, m59, m60, m61, m62;
};
static_assert(member_count<one_text> == 1 && member_count<three> == 3 && member_count<with_array> == 2);
static_assert(member_count<nested> == 3 && member_count<with_values> == 4 && member_count<with_union> == 2);
static_assert(member_count<with_bits> == 2 && member_count<itself> == 2 && member_count<twenty_one> == 21);
static_assert(member_count<sixty_three> == 60, "the most that is counted");

// What cannot be counted for certain has no count.
struct nothing {};
struct of_nothing : nothing {
  int a, b;
};
struct of_three : three {
  int d;
};
struct with_constructor {
  with_constructor(int, int);
  int a, b;
};
class with_private_member {
  int a;

public:
  int get() const { return a; }
};
struct with_anything {
  std::any a;
  int b;
};
static_assert(member_count<of_nothing> == 0 && member_count<of_three> == 0 && member_count<with_constructor> == 0);
static_assert(member_count<with_private_member> == 0 && member_count<with_anything> == 0);
static_assert(member_count<nothing> == 0 && member_count<int> == 0);

} // namespace
