//! What is JSON5 and what is not, as the json5 package sees it.

use super::*;
use serde_json::json;

fn value(text: &str) -> Value {
    parse(text).map(|node| node.value()).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

#[test]
fn json5_is_read_as_javascript_reads_it() {
    for (text, expected) in [
        ("{}", json!({})),
        ("\u{feff}{a:1,}", json!({"a": 1})),
        ("// c\n{/* d */'a' : [1,2,],}//e", json!({"a": [1, 2]})),
        ("{a:1,a:2}", json!({"a": 2})),
        ("{$_x9:null, ünï:true, \\u0061b:false}", json!({"$_x9": null, "ünï": true, "ab": false})),
        ("[.5, 5., +1, -2, 0x1F, -0X10, 1e3, 1E-2, 18789.0]", json!([0.5, 5, 1, -2, 31, -16, 1000, 0.01, 18789])),
        ("[Infinity, -Infinity, NaN, +NaN]", json!([null, null, null, null])),
        ("[123456789012345678901234567890]", json!([1.2345678901234568e29])),
        (r#"['it\'s', "a\nb\x41\u0042\v\0", '\q', "\/"]"#, json!(["it's", "a\nbAB\u{b}\0", "q", "/"])),
        ("['a\\\nb', 'c\\\r\nd', 'e\u{2028}f']", json!(["ab", "cd", "e\u{2028}f"])),
        (r#"["\ud83d\ude00", "\ud83d", "\ude00x", "\ud83dx"]"#, json!(["😀", "\u{fffd}", "\u{fffd}x", "\u{fffd}x"])),
        ("{\"\":1, null:2, true:3}", json!({"": 1, "null": 2, "true": 3})),
        (" \u{a0}\u{3000}[\u{2029}]\u{b}", json!([])),
    ] {
        assert_eq!(value(text), expected, "{text:?}");
    }
}

#[test]
fn what_is_no_json5_is_refused_with_its_place() {
    for (text, line, column) in [
        ("", 1, 1),
        ("  \n // only a comment", 2, 19),
        ("{", 1, 2),
        ("{a}", 1, 3),
        ("{a:}", 1, 4),
        ("{a:1 b:2}", 1, 6),
        ("{,}", 1, 2),
        ("{a:1,,}", 1, 6),
        ("[1,,2]", 1, 4),
        ("{a:1}}", 1, 6),
        ("{a:\"x\ny\"}", 1, 6),
        ("{\n  ü: 'abc\n}", 2, 10),
        ("{a:'x}", 1, 4),
        ("/* x", 1, 1),
        ("{a:01}", 1, 4),
        ("{a:0x}", 1, 4),
        ("{a:1e}", 1, 6),
        ("{a:+}", 1, 5),
        ("{a:.}", 1, 5),
        ("{1a:1}", 1, 2),
        ("{a-b:1}", 1, 3),
        (r#"{a:"\1"}"#, 1, 5),
        (r#"{a:"\01"}"#, 1, 5),
        (r#"{a:"\u12g4"}"#, 1, 5),
        (r#"{a:"\u+123"}"#, 1, 5),
        (r#"{a:"\x4"}"#, 1, 5),
        (r#"{\u0020a:1}"#, 1, 2),
        ("{a:nul}", 1, 4),
        ("{a:truex}", 1, 8),
    ] {
        let error = parse(text).map(|node| node.value()).expect_err(text);
        assert_eq!((error.line, error.column), (line, column), "{text:?}: {error}");
    }
}

#[test]
fn depth_is_limited_and_never_overflows() {
    let deep = |n: usize| "[".repeat(n) + &"]".repeat(n);
    assert!(parse(&deep(MAX_DEPTH)).is_ok());
    let error = parse(&deep(100_000)).map(|_| ()).expect_err("too deep");
    assert!(error.problem.contains("deep"), "{error}");
}

#[test]
fn spans_are_exact() {
    let text = "{ a: [1 , 'x'], /*c*/ 'b' :{} , }";
    let root = parse(text).unwrap();
    let items = root.items().unwrap();
    assert_eq!(&text[root.span.clone()], text);
    assert_eq!(&text[items[0].value.span.clone()], "[1 , 'x']");
    assert_eq!(&text[items[0].start..items[0].end()], "a: [1 , 'x'],");
    assert_eq!(&text[items[1].start..items[1].end()], "'b' :{} ,");
    let inner = items[0].value.items().unwrap();
    assert_eq!(&text[inner[0].start..inner[0].end()], "1 ,");
    assert_eq!((inner[1].comma, &text[inner[1].start..inner[1].end()]), (None, "'x'"));
}
