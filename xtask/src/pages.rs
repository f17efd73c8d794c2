//! The pages of documentation: their links, their length, and the site that `book.toml` makes of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use rpd_tests::install::source_root;
use rpd_tests::sources::{files_below, workspace_files};

/// Lines of a page of `docs`.
const MOST_LINES: usize = 250;

/// Lines of a paragraph of `docs`. Lists of words in code spans are no paragraphs.
const LONGEST_PARAGRAPH: usize = 14;

/// Directory of the site's pages.
const DOCS: &str = "docs";

/// The table of contents of the site.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Links that lead out of `docs`, which the site does not have: page and target.
const OUT_OF_THE_SITE: [(&str, &str); 1] = [("docs/troubleshooting.md", "SECURITY.md")];

/// A link: number of its line, from 1, and where it leads.
type Link = (usize, String);

/// Whether each line of a page is text: neither in a block of code nor empty.
fn text_lines(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    let mut is_code = false;
    let mut was_empty = true;
    (1..).zip(page.lines()).filter(move |(_, line)| {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
            return false;
        }
        let is_empty = line.trim().is_empty();
        // Indented lines are code behind an empty line, and as long as there are only such lines.
        is_code = line.starts_with("    ") && (was_empty || is_code) || is_code && is_empty;
        was_empty = is_empty;
        !is_fenced && !is_code && !is_empty
    })
}

/// A line without what stands between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// The links of a page. The text of a link, and code in backticks, may go on in the next line; the target of a link may not.
fn links(page: &str) -> Vec<Link> {
    let mut found = Vec::new();
    let mut is_code_open = false;
    let mut last = 0;
    for (number, line) in text_lines(page) {
        is_code_open &= number == last + 1 && !line.starts_with(['|', '#']);
        last = number;
        let parts = line.split('`').skip(usize::from(is_code_open));
        let text: String = parts.step_by(2).collect();
        is_code_open ^= line.matches('`').count() % 2 == 1;
        for part in text.split("](").skip(1) {
            if let Some((target, _)) = part.split_once(')') {
                found.push((number, target.to_owned()));
            }
        }
    }
    found
}

/// The name by which links find a heading, as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    let text = heading.split("<a ").next().unwrap_or_default();
    let letters = text.trim().chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        _ if letter.is_alphanumeric() => Some(letter),
        _ => None,
    });
    letters.flat_map(char::to_lowercase).collect()
}

/// The anchors of a page: its headings, and those that are written out.
///
/// # Panics
/// When an anchor is there twice, which links cannot tell apart.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (number, line) in text_lines(page) {
        let mut found = Vec::new();
        let heading = line.trim_start_matches('#');
        if heading.len() < line.len() && heading.starts_with(' ') {
            found.push(anchor(heading));
        }
        for part in without_code(line).split("<a name=\"").skip(1) {
            found.extend(part.split('"').next().map(str::to_owned));
        }
        found.dedup();
        for anchor in found {
            assert!(
                anchors.insert(anchor.clone()),
                "line {number}: the anchor {anchor} is there twice"
            );
        }
    }
    anchors
}

/// The path that a link of `page` leads to, both from the root of the sources, and the anchor there.
///
/// Nothing for links to other machines. A path that leaves the sources keeps a `..` in front.
fn target(page: &Path, link: &str) -> Option<(PathBuf, Option<String>)> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = match link.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor.to_owned())),
        None => (link, None),
    };
    if path.is_empty() {
        return Some((page.to_owned(), anchor));
    }
    let mut to = page.parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir if to.pop() => {}
            Component::CurDir => {}
            other => to.push(other),
        }
    }
    Some((to, anchor))
}

/// All files of the sources in Markdown, from the root, with their texts.
fn markdown() -> Vec<(PathBuf, String)> {
    let files = workspace_files(&["md"]).into_iter();
    files
        .map(|file| {
            let text = fs::read_to_string(&file).expect("a page");
            let name = file.strip_prefix(source_root()).expect("a file below");
            (name.to_owned(), text)
        })
        .collect()
}

/// The pages of the site, without its table of contents.
fn pages() -> Vec<(PathBuf, String)> {
    let mut pages = markdown();
    pages.retain(|(name, _)| name.starts_with(DOCS) && name != Path::new(SUMMARY));
    pages
}

/// The paragraphs of a page that have more lines than `most`: number of the first line, and how many they have.
fn long_paragraphs(page: &str, most: usize) -> Vec<(usize, usize)> {
    let mut paragraphs: Vec<Vec<(usize, &str)>> = Vec::new();
    let mut last = 0;
    for (number, line) in text_lines(page) {
        let line = line.trim_start();
        let (mark, rest) = line.split_once(' ').unwrap_or((line, ""));
        let digits = mark.strip_suffix('.').unwrap_or_default();
        let is_numbered = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let is_item = !rest.is_empty() && (mark == "-" || mark == "*" || is_numbered);
        let is_other = line.starts_with(['#', '|', '<']);
        match paragraphs.last_mut() {
            Some(paragraph) if number == last + 1 && !is_item && !is_other => {
                paragraph.push((number, line));
            }
            _ if is_other => {}
            _ => paragraphs.push(vec![(number, line)]),
        }
        // What follows a heading or a row begins a paragraph.
        last = if is_other { 0 } else { number };
    }
    let is_list =
        |(_, line): &(usize, &str)| line.starts_with('`') && without_code(line).trim().is_empty();
    paragraphs
        .into_iter()
        .filter(|lines| lines.len() > most && !lines.iter().all(is_list))
        .map(|lines| (lines[0].0, lines.len()))
        .collect()
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (name, text) in markdown() {
        for (line, link) in links(&text) {
            let Some((to, anchor)) = target(&name, &link) else {
                continue;
            };
            count += 1;
            let file = source_root().join(&to);
            let is_there = match &anchor {
                _ if !file.exists() => false,
                Some(anchor) => {
                    let page = fs::read_to_string(&file).expect("a page with anchors");
                    anchors(&page).contains(anchor)
                }
                None => true,
            };
            if !is_there {
                wrong.push(format!("{}:{line}: {link}", name.display()));
            }
        }
    }
    assert!(count > 300, "only {count} links were found");
    assert!(
        wrong.is_empty(),
        "links that lead nowhere:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn links_of_the_site_lead_to_its_pages() {
    for (name, text) in pages() {
        for (line, link) in links(&text) {
            let Some((to, _)) = target(&name, &link) else {
                continue;
            };
            let is_known = OUT_OF_THE_SITE
                .iter()
                .any(|(page, target)| name == Path::new(page) && to == Path::new(target));
            assert!(
                to.starts_with(DOCS) || is_known,
                "{}:{line}: {link} leads out of {DOCS}, where the site has nothing; name the file instead",
                name.display()
            );
        }
    }
}

#[test]
fn pages_that_are_named_anywhere_exist() {
    let begin = format!("{DOCS}/");
    let mut wrong = Vec::new();
    for file in workspace_files(&["rs", "md", "toml", "py", "sh", "yml", "hip", "c"]) {
        let text = fs::read_to_string(&file).expect("a source file");
        for (number, line) in (1..).zip(text.lines()) {
            for part in line.split(&begin).skip(1) {
                let is_part =
                    |letter: char| letter.is_ascii_alphanumeric() || "/-_.".contains(letter);
                let length = part.find(|letter| !is_part(letter)).unwrap_or(part.len());
                let Some((path, _)) = part[..length].rsplit_once(".md") else {
                    continue;
                };
                if !source_root().join(format!("{begin}{path}.md")).exists() {
                    wrong.push(format!("{}:{number}: {begin}{path}.md", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "no such pages:\n{}", wrong.join("\n"));
}

#[test]
fn pages_have_a_length_that_can_be_read() {
    let mut wrong = Vec::new();
    for (name, text) in pages() {
        let name = name.display();
        let lines = text.lines().count();
        if lines > MOST_LINES {
            wrong.push(format!(
                "{name}: {lines} lines, more than {MOST_LINES}: split it by subject"
            ));
        }
        for (line, lines) in long_paragraphs(&text, LONGEST_PARAGRAPH) {
            wrong.push(format!(
                "{name}:{line}: a paragraph of {lines} lines, more than {LONGEST_PARAGRAPH}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn summary_lists_every_page_once() {
    let text = fs::read_to_string(source_root().join(SUMMARY)).expect("the table of contents");
    let listed = links(&text).into_iter().map(|(_, link)| {
        let (path, _) = target(Path::new(SUMMARY), &link).expect("a page");
        path
    });
    let mut listed: Vec<PathBuf> = listed.collect();
    listed.sort();
    let mut there: Vec<PathBuf> = pages().into_iter().map(|(name, _)| name).collect();
    there.sort();
    assert_eq!(listed, there, "{SUMMARY} and the pages of {DOCS} differ");
}

/// mdBook writes `README.md` as `index.html`, and leaves links to it as they are.
#[test]
fn book_redirects_links_to_directories() {
    let book = fs::read_to_string(source_root().join("book.toml")).expect("book.toml");
    let docs = source_root().join(DOCS);
    for page in files_below(&docs, &["md"]) {
        if page.file_name().is_some_and(|name| name == "README.md") {
            let page = page
                .strip_prefix(&docs)
                .expect("a page")
                .with_extension("html");
            let redirect = format!("\"/{}\" = \"index.html\"", page.display());
            assert!(
                book.lines().any(|line| line == redirect),
                "book.toml lacks {redirect}"
            );
        }
    }
}

#[test]
fn links_anchors_and_paragraphs_are_found() {
    let page = "# A `b` page: what's it?\n\nSee [a\nb](c.md#d), ![e](f.png) and [`g`](#h); not `[i](j)\nor [i](j)`.\n\n    [k](l)\n\n\
                ```\n[m](n)\n```\n## Two <a name=\"two\"></a>\n- one\n  more\n- two\n| [o](p) |\n\n`q` `r`\n`s`\n";
    let targets: Vec<String> = links(page).into_iter().map(|(_, link)| link).collect();
    assert_eq!(targets, ["c.md#d", "f.png", "#h", "p"]);
    let anchors: Vec<String> = anchors(page).into_iter().collect();
    assert_eq!(anchors, ["a-b-page-whats-it", "two"]);
    assert_eq!(long_paragraphs(page, 1), [(3, 3), (13, 2)]);

    let page = Path::new("docs/recipes/sql.md");
    let leads = |link: &str| target(page, link).map(|(path, _)| path.display().to_string());
    assert_eq!(leads("../stacks.md#d").as_deref(), Some("docs/stacks.md"));
    assert_eq!(leads("../../README.md").as_deref(), Some("README.md"));
    assert_eq!(leads("#d").as_deref(), Some("docs/recipes/sql.md"));
    assert_eq!(leads("https://example.com/a.md"), None);
}
