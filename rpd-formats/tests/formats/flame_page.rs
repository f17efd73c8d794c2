//! The page with a flame graph, in a real browser.

use std::process::Command;

use rpd_formats::flame::{Format, Frame, Kind, Profile, Unit};
use rpd_tests::skips::tool_for;

/// A script that acts as a reader of the page: it looks, searches, enlarges, and goes back.
const READER: &str = r##"<script>
const seen = [];
const boxes = () => [...document.querySelectorAll("#graph div")];
const box = name => boxes().find(box => box.textContent === name);
const share = name => Math.round(100 * parseFloat(box(name).style.width) / element.clientWidth);
const element = document.getElementById("graph");
seen.push(document.getElementById("total").textContent);
seen.push(`${boxes().length} ${share("all")} ${share("main()")} ${share("left<int>")} ${share("right")}`);
box("left<int>").dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
seen.push(document.getElementById("detail").textContent);
const search = document.getElementById("search");
search.value = "RIGHT";
search.dispatchEvent(new Event("input"));
seen.push(document.getElementById("found").textContent);
seen.push(boxes().filter(box => box.classList.contains("match")).map(box => box.textContent).join());
box("right").click();
seen.push(`${share("right")} ${boxes().map(box => box.textContent).join()}`);
document.getElementById("reset").click();
seen.push(`${share("right")} ${document.getElementById("found").textContent}`);
const weight = document.getElementById("weight");
seen.push([...weight.options].map(option => option.textContent).join());
weight.value = 1;
weight.dispatchEvent(new Event("change"));
seen.push(document.getElementById("total").textContent);
seen.push(`${boxes().map(box => box.textContent).join()} ${share("left<int>")} ${share("right")}`);
document.title = "read";
document.body.dataset.seen = seen.join("|");
</script></body>"##;

fn frame(name: &str) -> Frame {
    Frame {
        kind: Kind::Native,
        name: name.to_owned(),
        file: "/home/u/a.cpp".to_owned(),
        line: 7,
    }
}

#[test]
fn flame_graph_page_can_be_searched_and_enlarged_in_a_browser() {
    let Some(chromium) = tool_for("the page of a flame graph in a browser", "chromium") else {
        return;
    };
    let kinds = [
        ("calls", Unit::Count),
        ("GPU time", Unit::Nanoseconds),
        ("bytes", Unit::Bytes),
    ];
    let mut profile = Profile::new(&kinds);
    profile.add(["main()", "left<int>"].map(frame), &[30, 1000, 0]);
    profile.add(["main()", "right", "call"].map(frame), &[10, 3000, 0]);
    let mut page = Vec::new();
    profile
        .write(Format::Html, "a run", None, &mut page)
        .expect("written");
    let page = String::from_utf8(page).expect("text");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("page.html");
    std::fs::write(&path, page.replace("</body>", READER)).expect("written");
    let output = Command::new(chromium)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=1000,800",
        ])
        .arg(format!(
            "--user-data-dir={}/profile",
            directory.path().display()
        ))
        .args(["--dump-dom", &format!("file://{}", path.display())])
        .output()
        .expect("chromium starts");
    let dom = String::from_utf8_lossy(&output.stdout);
    let seen = dom
        .split_once("data-seen=\"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .unwrap_or_else(|| panic!("{dom}\n{}", String::from_utf8_lossy(&output.stderr)))
        .0
        .replace("&lt;", "<")
        .replace("&gt;", ">");
    assert_eq!(
        seen.split('|').collect::<Vec<_>>(),
        [
            "calls: 40",
            "5 100 100 75 25",
            "left<int> at /home/u/a.cpp:7: 30, 75.00 % of all",
            "1 found: 10, 25.00 %",
            "right",
            "100 main(),all,right,call",
            "25 ",
            // No stack has bytes.
            "calls,GPU time",
            "GPU time: 4.00 us",
            "all,main(),right,call,left<int> 25 75",
        ]
    );
}
