// The page of a report, as page.html, page.css and page.js have it. Made by the build.
#ifndef DEJA_CLI_REPORT_PAGE_PARTS_H_
#define DEJA_CLI_REPORT_PAGE_PARTS_H_

#include <string_view>

namespace deja::cli {

extern const std::string_view kPageHtml;
extern const std::string_view kPageCss;
extern const std::string_view kPageJs;

}  // namespace deja::cli

#endif  // DEJA_CLI_REPORT_PAGE_PARTS_H_
