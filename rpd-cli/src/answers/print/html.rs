//! An answer as a page for browsers: one file without scripts that loads nothing.

use std::io::Write;

use anyhow::Result;
use rpd_core::text::foreign;
use rpd_formats::table::TableFormat;

use super::Shown;

/// The page up to its title; nothing but its own style is allowed.
const HEAD: &str = "<!DOCTYPE html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">
<meta name=\"color-scheme\" content=\"light dark\">
";

const STYLE: &str = include_str!("page.css");

/// A text of the recording as text of the page.
fn escaped(text: &str) -> String {
    let text = foreign::shown(text);
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Writes the page.
pub(super) fn write(shown: &Shown<'_>, out: &mut dyn Write) -> Result<()> {
    let head = shown.head();
    let title = format!("rpd {}", shown.answer.command);
    let title = head.first().map_or(title.as_str(), String::as_str);
    write!(
        out,
        "{HEAD}<title>{0}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{0}</h1>\n",
        escaped(title)
    )?;
    for line in head.iter().skip(1) {
        writeln!(out, "<p>{}</p>", escaped(line))?;
    }
    for warning in &shown.answer.warnings {
        if warning.code != "simulated" {
            writeln!(out, "<p class=\"warning\">{}</p>", escaped(&warning.text))?;
        }
    }
    for section in &shown.sections {
        writeln!(out, "<section>\n<h2>{}</h2>", escaped(section.section.name))?;
        for paragraph in shown.paragraphs(section).unwrap_or_default() {
            let class = match paragraph.indent {
                0 => "text",
                _ => "text more",
            };
            writeln!(out, "<p class=\"{class}\">{}</p>", escaped(&paragraph.text))?;
        }
        writeln!(out, "<div class=\"scroll\">")?;
        if section.rows.is_empty() {
            writeln!(out, "<p>(none)</p>")?;
        } else {
            shown.write_table(section, TableFormat::Html, out)?;
        }
        writeln!(out, "</div>")?;
        if let Some(rest) = section.rest_line() {
            writeln!(out, "<p>{}</p>", escaped(&rest))?;
        }
        writeln!(out, "</section>")?;
    }
    for line in shown.missing() {
        writeln!(out, "<p class=\"missing\">{}</p>", escaped(&line))?;
    }
    writeln!(out, "</main>\n</body>\n</html>")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn markup_in_names_is_text() {
        assert_eq!(
            escaped("<b>\"a\"&'\u{1b}"),
            "&lt;b&gt;&quot;a&quot;&amp;&#39;\\u{1b}"
        );
    }
}
