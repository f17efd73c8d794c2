//! The timeline of the page in a real browser: labels of its axis, and texts that can be read.

use std::process::Command;

use rpd_tests::skips::tool_for;

/// A script that watches what is drawn while the timeline is enlarged again and again.
const WATCHER: &str = r##"<script>
const drawing = CanvasRenderingContext2D.prototype;
const { fillRect, fillText } = drawing;
let box = "", texts = [];
drawing.fillRect = function (...place) { box = this.fillStyle; fillRect.apply(this, place); };
drawing.fillText = function (text, x, y, ...rest) {
    texts.push({ text, x, y, ink: this.fillStyle, box });
    fillText.call(this, text, x, y, ...rest);
};
const luminance = colour => {
    const [red, green, blue] = [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16) / 255)
        .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const contrast = (a, b) => {
    const [dark, light] = [luminance(a), luminance(b)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
};
const repeated = [];
let labels = 0, inBoxes = 0, least = 21;
for (let zoom = 0; zoom < 30; zoom++) {
    texts = [];
    document.getElementById("in").click();
    const axis = texts.filter(({ y }) => y === 3).map(({ text }) => text);
    labels += axis.length;
    repeated.push(...axis.filter((text, index) => axis.indexOf(text) !== index));
    // Names of tracks are at the left edge, and on no box.
    for (const { ink, box } of texts.filter(({ x, y }) => y !== 3 && x > 0)) {
        inBoxes++;
        least = Math.min(least, contrast(ink, box));
    }
}
document.body.dataset.seen = [labels > 30, inBoxes > 0, repeated.join() || "none", least >= 4.5].join("|");
</script></body>"##;

#[test]
fn the_timeline_has_no_label_twice_and_no_text_without_contrast() {
    let Some(chromium) = tool_for("the timeline of the page in a browser", "chromium") else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let (file, _) = crate::html::page(directory.path(), 1_000);
    let page = std::fs::read_to_string(&file).expect("a page");
    std::fs::write(&file, page.replace("</body>", WATCHER)).expect("written");
    let output = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg("--window-size=1000,800")
        .arg(format!(
            "--user-data-dir={}/profile",
            directory.path().display()
        ))
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("chromium starts");
    let dom = String::from_utf8_lossy(&output.stdout);
    let seen = dom.split_once("data-seen=\"").map(|(_, rest)| rest);
    let seen = seen
        .and_then(|rest| rest.split_once('"'))
        .map(|(seen, _)| seen);
    assert_eq!(
        seen,
        Some("true|true|none|true"),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
