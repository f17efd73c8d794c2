//! The page: served, or written as one file.

/// The style.
pub const STYLE: &str = include_str!("page/page.css");

/// The program of the page.
pub const SCRIPT: &str = concat!(
    "\"use strict\";\n(() => {\n",
    include_str!("page/units.js"),
    include_str!("page/source.js"),
    include_str!("page/model.js"),
    include_str!("page/paint.js"),
    include_str!("page/panel.js"),
    include_str!("page/control.js"),
    "})();\n"
);

const PAGE: &str = include_str!("page/page.html");
const HEAD: &str = "%head%";
const END: &str = "%end%";

/// The page that loads its style, program and data from the server.
pub(crate) fn served() -> String {
    PAGE.replace(HEAD, "<link rel=\"stylesheet\" href=\"view.css\">")
        .replace(END, "<script src=\"view.js\"></script>")
}

/// The parts of a page that is one file: before and behind its data.
pub(crate) fn file() -> (String, String) {
    let policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";
    let head = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n<style>\n{STYLE}</style>"
    );
    let (before, behind) = PAGE.split_once(END).unwrap_or((PAGE, ""));
    let before = before.replace(HEAD, &head);
    (before, format!("<script>\n{SCRIPT}</script>{behind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_template_has_each_mark_once_and_loads_nothing() {
        for mark in [HEAD, END] {
            assert_eq!(PAGE.matches(mark).count(), 1, "{mark}");
        }
        for text in [PAGE, STYLE, SCRIPT] {
            for word in [
                "http:",
                "https:",
                "innerHTML",
                "insertAdjacent",
                "eval(",
                "document.write",
            ] {
                assert!(!text.contains(word), "{word}");
            }
        }
        assert!(!SCRIPT.contains("</script") && !STYLE.contains("</style"));
    }
}
