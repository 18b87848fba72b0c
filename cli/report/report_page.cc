#include "cli/report/report_page.h"

#include <string_view>

#include "cli/programs/sha256.h"
#include "cli/report/packed_numbers.h"
#include "cli/report/page_parts.h"
#include "common/text/plain_text.h"

namespace deja::cli {
namespace {

// "'sha256-…'", as a policy names an element by its text.
std::string SourceOf(std::string_view text) {
  Sha256 sha256;
  sha256.Update(text);
  const std::string digits = sha256.Finish();
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return "'sha256-" + Base64(bytes) + "'";
}

// The JSON document without "<", which occurs in its strings alone.
std::string JsonBlock(const nlohmann::json& data) {
  const std::string text =
      PlainJson(data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  std::string block;
  block.reserve(text.size());
  for (const char c : text) {
    if (c == '<')
      block += "\\u003c";
    else
      block += c;
  }
  return block;
}

}  // namespace

std::string ReportPage(const nlohmann::json& data) {
  const std::string policy = "default-src 'none'; script-src " + SourceOf(kPageJs) +
                             "; style-src " + SourceOf(kPageCss) +
                             "; base-uri 'none'; form-action 'none'";
  // Each place of the page, and what comes there. What was put in is not searched again.
  const std::string json = JsonBlock(data);
  std::string page;
  std::string_view rest = kPageHtml;
  for (size_t begin = rest.find("{{"); begin != std::string_view::npos; begin = rest.find("{{")) {
    const size_t end = rest.find("}}", begin);
    const std::string_view name = rest.substr(begin + 2, end - begin - 2);
    page += rest.substr(0, begin);
    if (name == "policy") page += policy;
    if (name == "css") page += kPageCss;
    if (name == "js") page += kPageJs;
    if (name == "data") page += json;
    rest = rest.substr(end + 2);
  }
  page += rest;
  return page;
}

}  // namespace deja::cli
