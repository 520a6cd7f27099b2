//! Markdown as the rules use it: tables under a heading, and words in backticks.

/// The cells of each row of the first table under `heading` (a line's text without the hashes),
/// without its head, each row with its line number.
pub(super) fn rows<'a>(text: &'a str, heading: &str) -> Vec<(usize, Vec<&'a str>)> {
    let mut lines = text.lines().enumerate();
    let is_heading =
        |line: &str| line.starts_with('#') && line.trim_start_matches('#').trim() == heading;
    if !lines.any(|(_, line)| is_heading(line)) {
        return Vec::new();
    }
    lines
        .skip_while(|(_, line)| !line.starts_with('|') && !line.starts_with('#'))
        .take_while(|(_, line)| line.starts_with('|'))
        .skip(2)
        .map(|(index, line)| {
            let line = line.trim().trim_start_matches('|').trim_end_matches('|');
            (index + 1, line.split('|').map(str::trim).collect())
        })
        .collect()
}

/// What stands in backticks, in order.
pub(super) fn ticked(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_table_under_the_heading_only() {
        let text = "# A\n| no |\n|---|\n| no |\n## B c\ntext\n| h | i |\n|---|---|\n| `x` | y |\n| z |\n\n| no |";
        assert_eq!(rows(text, "B c"), [(9, vec!["`x`", "y"]), (10, vec!["z"])]);
        assert!(rows(text, "C").is_empty());
    }

    #[test]
    fn a_heading_without_table_has_no_rows() {
        assert!(rows("## B\ntext\n## C\n| h |\n|---|\n| x |", "B").is_empty());
    }

    #[test]
    fn words_in_backticks() {
        assert_eq!(ticked("a `b c` d, `e`").collect::<Vec<_>>(), ["b c", "e"]);
        assert_eq!(ticked("none").count(), 0);
    }
}
