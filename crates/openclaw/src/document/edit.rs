//! How an edit changes a document's text: a few bytes are removed or inserted, everything else stays as it is.

use serde_json::Value;

use super::json5::{Item, Node, is_line_end, is_space};
use super::{Segment, node_at};

/// The layout of the text, so that an addition looks like the existing text.
struct Style {
    newline: &'static str,
    /// One step of indentation.
    unit: String,
    /// All on one line.
    compact: bool,
    /// What follows a comma and a colon on one line.
    gap: &'static str,
}

fn style(text: &str, root: &Node) -> Style {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let unit = match root.items().and_then(|items| items.first()) {
        Some(first) => own_indent(text, first.start).filter(|indent| !indent.is_empty()).unwrap_or("  "),
        None => "  ",
    };
    let compact = !text.trim_end().contains('\n');
    let gap = if text.contains(": ") { " " } else { "" };
    Style { newline, unit: unit.to_owned(), compact, gap }
}

/// The text with the value at `path` replaced. The caller has checked that it exists.
pub(super) fn replace(text: &str, root: &Node, path: &[Segment], value: &Value) -> String {
    let Some(node) = node_at(root, path) else { return text.to_owned() };
    let style = style(text, root);
    let rendered = render(value, line_indent(text, node.span.start), &style);
    format!("{}{rendered}{}", &text[..node.span.start], &text[node.span.end..])
}

/// The text with a new item at the end of the object or list at `parent`.
pub(super) fn insert(text: &str, root: &Node, parent: &[Segment], key: Option<&str>, value: &Value) -> String {
    let Some(node) = node_at(root, parent) else { return text.to_owned() };
    let style = style(text, root);
    let outer = line_indent(text, node.span.start);
    let item = |indent: &str| {
        let value = render(value, indent, &style);
        match key {
            Some(key) => format!("{}:{}{value}", Value::from(key), if style.compact { style.gap } else { " " }),
            None => value,
        }
    };
    let Some(last) = node.items().and_then(|items| items.last()) else {
        return insert_first(text, node, outer, &style, &item);
    };
    let (behind, line_comment) = same_line_comments(text, last.end());
    let own = own_indent(text, last.start);
    let (comma, trailing) = if last.comma.is_some() { ("", ",") } else { (",", "") };
    // A comma goes directly after its value, before any comment about that value.
    let (head, between, tail) = (&text[..last.value.span.end], &text[last.value.span.end..behind], &text[behind..]);
    if own.is_some() || line_comment {
        let indent = own.map_or_else(|| format!("{outer}{}", style.unit), str::to_owned);
        let item = item(&indent);
        return format!("{head}{comma}{between}{}{indent}{item}{trailing}{tail}", style.newline);
    }
    let item = item(outer);
    format!("{head}{comma}{between}{}{item}{trailing}{tail}", style.gap)
}

fn insert_first(text: &str, node: &Node, outer: &str, style: &Style, item: &dyn Fn(&str) -> String) -> String {
    let (open, close) = (node.span.start + 1, node.span.end - 1);
    let (head, inside, tail) = (&text[..open], &text[open..close], &text[close..]);
    // Comments inside stay where they are, after the new item.
    let empty = inside.chars().all(is_space);
    if style.compact {
        return format!("{head}{}{}{tail}", item(outer), if empty { "" } else { inside });
    }
    let indent = format!("{outer}{}", style.unit);
    let item = item(&indent);
    let newline = style.newline;
    if empty {
        format!("{head}{newline}{indent}{item}{newline}{outer}{tail}")
    } else {
        format!("{head}{newline}{indent}{item}{inside}{tail}")
    }
}

/// The text without the item at `index`, its comma, and its line if nothing else is on it.
pub(super) fn remove(text: &str, items: &[Item], index: usize) -> String {
    let item = &items[index];
    let (mut start, mut end) = (item.start, item.end());
    let (behind, _) = same_line_comments(text, end);
    let rest = &text[behind..];
    let line_rest = rest.trim_start_matches(|c| is_space(c) && !is_line_end(c));
    match (own_indent(text, start), line_rest.strip_prefix("\r\n").or_else(|| line_rest.strip_prefix('\n'))) {
        (Some(indent), Some(after)) => {
            start -= indent.len();
            end = text.len() - after.len();
        }
        _ if item.comma.is_some() => end += leading_blanks(&text[end..]),
        _ => start = text[..start].trim_end_matches([' ', '\t']).len(),
    }
    // If the last item had no comma, remove that of the item before, which is the last one now.
    let left_over = if item.comma.is_none() { index.checked_sub(1).and_then(|i| items[i].comma) } else { None };
    match left_over {
        Some(comma) => {
            let start = start.max(comma + 1);
            format!("{}{}{}", &text[..comma], &text[comma + 1..start], &text[end..])
        }
        None => format!("{}{}", &text[..start], &text[end..]),
    }
}

fn leading_blanks(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\t']).len()
}

/// The blanks before `at`, if nothing else is before it on its line and the line is not the first.
fn own_indent(text: &str, at: usize) -> Option<&str> {
    let begin = text[..at].rfind('\n')? + 1;
    let before = &text[begin..at];
    before.chars().all(|c| matches!(c, ' ' | '\t')).then_some(before)
}

/// The blanks that the line of `at` begins with.
fn line_indent(text: &str, at: usize) -> &str {
    let begin = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[begin..at];
    &line[..leading_blanks(line)]
}

/// The position after the comments that follow `from` on the same line, and whether the last of them is a line comment.
fn same_line_comments(text: &str, from: usize) -> (usize, bool) {
    let mut behind = from;
    loop {
        let rest = text[behind..].trim_start_matches(|c| is_space(c) && !is_line_end(c));
        let at = text.len() - rest.len();
        if let Some(inside) = rest.strip_prefix("//") {
            let end = inside.find(is_line_end).unwrap_or(inside.len());
            return (at + 2 + end, true);
        }
        match rest.strip_prefix("/*").and_then(|inside| inside.find("*/")) {
            Some(length) if !rest[..length + 4].contains(is_line_end) => behind = at + length + 4,
            _ => return (behind, false),
        }
    }
}

fn render(value: &Value, indent: &str, style: &Style) -> String {
    let mut out = String::new();
    write(value, indent, style, &mut out);
    out
}

fn write(value: &Value, indent: &str, style: &Style, out: &mut String) {
    let deeper = format!("{indent}{}", style.unit);
    let (open, close, items): (_, _, Vec<(Option<&str>, &Value)>) = match value {
        Value::Object(map) => ('{', '}', map.iter().map(|(key, value)| (Some(key.as_str()), value)).collect()),
        Value::Array(list) => ('[', ']', list.iter().map(|value| (None, value)).collect()),
        plain => return out.push_str(&plain.to_string()),
    };
    out.push(open);
    for (i, (key, value)) in items.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        if !style.compact {
            out.push_str(style.newline);
            out.push_str(&deeper);
        } else if i > 0 {
            out.push_str(style.gap);
        }
        if let Some(key) = key {
            out.push_str(&Value::from(*key).to_string());
            out.push(':');
            out.push_str(if style.compact { style.gap } else { " " });
        }
        write(value, &deeper, style, out);
    }
    if !style.compact && !items.is_empty() {
        out.push_str(style.newline);
        out.push_str(indent);
    }
    out.push(close);
}
