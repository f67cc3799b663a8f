//! Estimates the tokens of a request's input before a provider has counted them.
//!
//! Text is one token for every two bytes of the body. Providers bill images, documents and recordings by picture, page
//! and second, so their base64 is left out and these numbers are used instead. Each is the maximum by the provider's
//! own rules:
//!
//! | | tokens |
//! |---|---|
//! | image, Anthropic | 5,000 (28-pixel patches, at most 4,784) |
//! | image, OpenAI | 11,000 (32-pixel patches, at most 10,000 and their factor; tiles: at most 1,445) |
//! | image, `gpt-4o-mini` | 48,500 (2,833 and 5,667 for each of 8 tiles) |
//! | image, Google | 2,500 (at most 2,240) |
//! | page of a document | an image and 3,000 of text |
//! | second of sound | 32 |
//! | second of film | 300 |

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{self, GeneralPurpose, GeneralPurposeConfig};
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;
use store::model::ProviderKind;

const PAGE_TEXT: i64 = 3_000;
const SOUND_SECOND: i64 = 32;
const FILM_SECOND: i64 = 300;
/// Assumed bytes per second if the file does not say: 16 kbit/s of speech, 128 kbit/s of film.
const SOUND_RATE: u64 = 2_000;
const FILM_RATE: u64 = 16_000;
/// Assumed bytes per page of a document whose pages cannot be counted.
const PAGE_BYTES: usize = 32 * 1024;
/// Assumed pages of a document that the request only names.
const UNSEEN_PAGES: i64 = 20;

/// The estimate if no count is known: one token for every two bytes, rounded up. English has about four bytes per
/// token, Chinese about three, single letters and digits between blanks two. So the estimate is rather too high.
pub fn text_tokens(bytes: usize) -> i64 {
    i64::try_from(bytes.div_ceil(2)).unwrap_or(i64::MAX)
}

/// The input of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Input {
    /// Bytes of the body without images, documents and recordings.
    text: usize,
    images: i64,
    pages: i64,
    sound_seconds: i64,
    film_seconds: i64,
}

impl Input {
    pub fn of(body: &[u8]) -> Input {
        let mut input = Input { text: body.len(), ..Input::default() };
        // Most bodies are only text. Do not parse those.
        if MEDIA.iter().any(|word| memmem::find(body, word).is_some())
            && let Ok(body) = serde_json::from_slice::<Body<'_>>(body)
        {
            let items: Vec<Message<'_>> =
                body.input.and_then(|items| serde_json::from_str(items.get()).ok()).unwrap_or_default();
            for message in body.messages.iter().chain(&items) {
                input.take_all(message.content, 0);
                input.take_all(message.output, 0);
            }
        }
        input
    }

    /// The most tokens that a model may bill for it.
    pub fn tokens(&self, kind: ProviderKind, model: &str) -> i64 {
        let image = image(kind, model);
        let media = [
            (self.images, image),
            (self.pages, image + PAGE_TEXT),
            (self.sound_seconds, SOUND_SECOND),
            (self.film_seconds, FILM_SECOND),
        ];
        let media = media.into_iter().fold(0i64, |sum, (count, each)| sum.saturating_add(count.saturating_mul(each)));
        text_tokens(self.text).saturating_add(media)
    }

    /// Counts the parts of a message's content, or one that stands alone.
    fn take_all(&mut self, content: Option<&RawValue>, depth: usize) {
        let Some(json) = content.map(RawValue::get).filter(|_| depth < MOST_DEPTH) else { return };
        if json.starts_with('{') {
            return self.take(json, depth);
        }
        if json.starts_with('[') {
            let parts: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
            parts.iter().for_each(|part| self.take(part.get(), depth));
        }
    }

    /// Counts a part of a message as media instead of text, if it is media.
    fn take(&mut self, part: &str, depth: usize) {
        // A part that cannot be parsed stays text: that is a higher estimate, or the provider refuses it.
        let Ok(part) = serde_json::from_str::<Part<'_>>(part) else { return };
        let (field, media) = match &*part.kind {
            "image_url" | "input_image" | "computer_screenshot" => (part.image_url, Media::Image),
            "video_url" => (part.video_url, Media::Film),
            "input_audio" => (part.input_audio, Media::Sound),
            "file" => (part.file, Media::Document),
            "input_file" => (part.file_data.or(part.file_url).or(part.file), Media::Document),
            "image" => return self.take_source(part.source, Media::Image, depth),
            "document" => return self.take_source(part.source, Media::Document, depth),
            // What a tool answered may have images.
            "tool_result" => return self.take_all(part.content, depth + 1),
            _ => return,
        };
        let Some(field) = field else { return };
        let Ok(data) = serde_json::from_str::<Data<'_>>(field.get()) else { return };
        let text = match data {
            Data::Text(text) | Data::Field(Field { text: Some(text) }) => text,
            Data::Field(Field { text: None }) => Cow::Borrowed(""),
        };
        self.count(media, &text);
    }

    /// Counts the source of an image or a document, as Anthropic's API has it.
    fn take_source(&mut self, source: Option<&RawValue>, media: Media, depth: usize) {
        let Some(source) = source.and_then(|source| serde_json::from_str::<Source<'_>>(source.get()).ok()) else {
            return;
        };
        let media_type = source.media_type.as_deref().unwrap_or_default();
        match &*source.kind {
            "base64" => self.count_base64(media, media_type, &source.data.unwrap_or_default()),
            "content" => self.take_all(source.content, depth + 1),
            // Text is text.
            "text" => {}
            _ => self.unseen(media),
        }
    }

    fn count(&mut self, media: Media, text: &str) {
        let (kind, base64) = match text.strip_prefix("data:").and_then(|rest| rest.split_once(',')) {
            Some((kind, base64)) => (kind, base64),
            // An address, an id, or base64 without a media type.
            None if media != Media::Image && text.len() > 1_000 => ("", text),
            None => return self.unseen(media),
        };
        self.count_base64(media, kind, base64);
    }

    fn count_base64(&mut self, media: Media, kind: &str, base64: &str) {
        self.text = self.text.saturating_sub(base64.len());
        let media = match kind.split(['/', ';']).next().unwrap_or_default() {
            "image" => Media::Image,
            "audio" => Media::Sound,
            "video" => Media::Film,
            "text" => return self.text += base64.len() / 4 * 3,
            _ => media,
        };
        match media {
            Media::Image => self.images += 1,
            Media::Document => self.pages += pages(base64),
            Media::Sound => self.sound_seconds += seconds(base64.len(), sound_rate(base64)),
            Media::Film => self.film_seconds += seconds(base64.len(), FILM_RATE),
        }
    }

    /// Counts media that the request only names and the provider fetches.
    fn unseen(&mut self, media: Media) {
        match media {
            Media::Image => self.images += 1,
            Media::Document => self.pages += UNSEEN_PAGES,
            Media::Sound => self.sound_seconds += 600,
            Media::Film => self.film_seconds += 600,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Media {
    Image,
    Document,
    Sound,
    Film,
}

/// If a body has none of these, it is only text. `\u00` is here because an escape can hide any of the other words.
const MEDIA: [&[u8]; 10] = [
    b"\"image_url\"",
    b"\"input_image\"",
    b"\"video_url\"",
    b"\"input_audio\"",
    b"\"file\"",
    b"\"input_file\"",
    b"\"image\"",
    b"\"document\"",
    b"\"computer_screenshot\"",
    b"\\u00",
];

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default)]
    messages: Vec<Message<'a>>,
    /// The items of the Responses API, or a string.
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    /// What a tool answered, in the Responses API.
    #[serde(borrow, default)]
    output: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    image_url: Option<&'a RawValue>,
    #[serde(borrow, default)]
    video_url: Option<&'a RawValue>,
    #[serde(borrow, default)]
    input_audio: Option<&'a RawValue>,
    #[serde(borrow, default)]
    file: Option<&'a RawValue>,
    #[serde(borrow, default)]
    file_data: Option<&'a RawValue>,
    #[serde(borrow, default)]
    file_url: Option<&'a RawValue>,
    #[serde(borrow, default)]
    source: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Source<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    media_type: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    data: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

/// Contents within contents are not nested deeper than this.
const MOST_DEPTH: usize = 4;

/// The data of a part: the value itself, or one of its fields.
#[derive(Deserialize)]
#[serde(untagged)]
enum Data<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Field(#[serde(borrow)] Field<'a>),
}

#[derive(Deserialize)]
struct Field<'a> {
    #[serde(borrow, default, alias = "url", alias = "data", alias = "file_data", alias = "file_url")]
    text: Option<Cow<'a, str>>,
}

fn image(kind: ProviderKind, model: &str) -> i64 {
    match kind {
        ProviderKind::Openai if model.starts_with("gpt-4o-mini") => 48_500,
        // What others bill is unknown: the most that is known of anybody.
        ProviderKind::Openai | ProviderKind::Ollama | ProviderKind::Compatible => 11_000,
        ProviderKind::Google => 2_500,
        ProviderKind::Anthropic | ProviderKind::Echo => 5_000,
    }
}

/// Base64 with or without padding, as providers accept it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The pages of a document: those that can be counted in a PDF, or an estimate by its size, whichever is more.
fn pages(base64: &str) -> i64 {
    let bytes = BASE64.decode(base64).unwrap_or_default();
    let shown = memmem::find_iter(&bytes, b"/Type").filter(|at| {
        let kind = bytes[at + 5..].trim_ascii_start();
        kind.strip_prefix(b"/Page").is_some_and(|rest| !rest.first().is_some_and(u8::is_ascii_alphanumeric))
    });
    let by_size = (base64.len() / 4 * 3).div_ceil(PAGE_BYTES).max(1);
    shown.count().max(by_size) as i64
}

fn seconds(base64: usize, rate: u64) -> i64 {
    (base64 as u64 / 4 * 3).div_ceil(rate.max(1)) as i64
}

/// Bytes per second of sound: computed for a WAV file, otherwise the lowest usual rate.
fn sound_rate(base64: &str) -> u64 {
    let head = base64.get(..64).and_then(|head| general_purpose::STANDARD.decode(head).ok()).unwrap_or_default();
    if !head.starts_with(b"RIFF") || head.get(8..16) != Some(b"WAVEfmt ") {
        return SOUND_RATE;
    }
    // Do not trust the byte rate of the header: players compute it from channels, sample rate and sample size.
    let number = |at: usize, size: usize| {
        head.get(at..at + size).map_or(0, |bytes| bytes.iter().rev().fold(0u64, |n, byte| n << 8 | u64::from(*byte)))
    };
    let (channels, samples, bits) = (number(22, 2), number(24, 4), number(34, 2));
    match channels.saturating_mul(samples).saturating_mul(bits) / 8 {
        0 => SOUND_RATE,
        // The highest rate of real recordings: 192 kHz, 24 bits, two channels.
        rate => rate.min(1_152_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(parts: serde_json::Value) -> (Input, usize) {
        let body = json!({"model": "a", "messages": [{"role": "user", "content": parts}]}).to_string();
        (Input::of(body.as_bytes()), body.len())
    }

    fn base64(bytes: &[u8]) -> String {
        general_purpose::STANDARD.encode(bytes)
    }

    #[test]
    fn text_is_two_bytes_a_token() {
        assert_eq!([0, 4, 5].map(text_tokens), [0, 2, 3]);
        let (input, length) = of(json!("hello"));
        assert_eq!(input.tokens(ProviderKind::Openai, "gpt-4o"), (length as i64 + 1) / 2);
        // These words in a text do not make it an image.
        let text = json!([{"type": "text", "text": "an \"image_url\": data:image/png;base64,AAAA"}]);
        let (input, length) = of(text);
        assert_eq!(input, Input { text: length, ..Input::default() });
        let parts =
            json!([{"type": "text", "image_url": {"url": format!("data:image/png;base64,{}", "A".repeat(9_000))}}]);
        let (input, length) = of(parts);
        assert_eq!(input.text, length, "the provider reads it as text, or refuses it");
    }

    #[test]
    fn an_image_is_a_number_of_its_provider_however_large_it_is() {
        for data in [base64(&[7; 30]), base64(&[7; 3_000_000])] {
            let (input, length) =
                of(json!([{"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{data}")}}]));
            assert_eq!(input, Input { text: length - data.len(), images: 1, ..Input::default() });
        }
        let url = json!({"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "high"}});
        let (input, length) = of(json!([url, url]));
        assert_eq!(input, Input { text: length, images: 2, ..Input::default() });
        let text = (length as i64 + 1) / 2;
        assert_eq!(input.tokens(ProviderKind::Anthropic, "claude-opus-4-6"), text + 2 * 5_000);
        assert_eq!(input.tokens(ProviderKind::Openai, "gpt-4o"), text + 2 * 11_000);
        assert_eq!(input.tokens(ProviderKind::Openai, "gpt-4o-mini"), text + 2 * 48_500);
        assert_eq!(input.tokens(ProviderKind::Google, "gemini-2.5-pro"), text + 2 * 2_500);
    }

    #[test]
    fn media_of_every_protocol_are_found() {
        let data = base64(&[7; 90_000]);
        let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}});
        let (input, length) = of(json!([image]));
        assert_eq!(input, Input { text: length - data.len(), images: 1, ..Input::default() });
        let result =
            json!([{"type": "tool_result", "tool_use_id": "t", "content": [image, {"type": "text", "text": "x"}]}]);
        assert_eq!(of(result).0.images, 1, "what a tool answered");
        let pdf = json!({"type": "base64", "media_type": "application/pdf", "data": data});
        let (input, length) = of(json!([{"type": "document", "source": pdf}]));
        assert_eq!((input.pages, input.text), (3, length - data.len()));
        let unseen = json!([{"type": "document", "source": {"type": "url", "url": "https://a/b"}}]);
        assert_eq!(of(unseen).0.pages, UNSEEN_PAGES);
        let text = json!({"type": "text", "media_type": "text/plain", "data": "x".repeat(900)});
        let (input, length) = of(json!([{"type": "document", "source": text}]));
        assert_eq!(input, Input { text: length, ..Input::default() });
        let inner = json!([{"type": "document", "source": {"type": "content", "content": [image]}}]);
        assert_eq!(of(inner).0.images, 1);
        // The Responses API.
        let (url, file) = (format!("data:image/png;base64,{data}"), format!("data:application/pdf;base64,{data}"));
        let parts = json!([{"type": "input_image", "image_url": url}, {"type": "input_file", "file_data": file}]);
        let items = json!({"model": "a", "input": [
            {"role": "user", "content": parts},
            {"type": "function_call_output", "output": [{"type": "input_image", "image_url": url}]},
            {"type": "computer_call_output", "output": {"type": "computer_screenshot", "image_url": url}},
        ]});
        let items = items.to_string();
        let input = Input::of(items.as_bytes());
        assert_eq!((input.images, input.pages, input.text), (3, 3, items.len() - 4 * data.len()));
        assert_eq!(Input::of(br#"{"input":"an \"image\"" ,"x":"image"}"#).images, 0);
    }

    #[test]
    fn escaped_words_hide_no_image() {
        let body = r#"{"model":"a","messages":[{"content":[{"type":"im\u0061ge_url","im\u0061ge_url":{"url":"https://a/b"}}]}]}"#;
        assert_eq!(Input::of(body.as_bytes()).images, 1);
    }

    #[test]
    fn a_document_is_its_pages() {
        let file = |bytes: &[u8]| {
            let data = format!("data:application/pdf;base64,{}", base64(bytes));
            of(json!([{"type": "file", "file": {"filename": "a.pdf", "file_data": data}}])).0
        };
        let page = b"<< /Type /Page >> << /Type/Pages >>\n".as_slice();
        assert_eq!(file(&page.repeat(12)).pages, 12);
        assert_eq!(file(&[9; 100]).pages, 1);
        assert_eq!(file(&[9; 100_000]).pages, 4, "by its size, where no page is to be seen");
        assert!(file(&[9; 100_000]).text < 300, "not by its base64");
        assert_eq!(of(json!([{"type": "file", "file": {"file_id": "file-1"}}])).0.pages, UNSEEN_PAGES);
        // A text file counts as text.
        let data = format!("data:text/plain;base64,{}", base64(&[b'a'; 3_000]));
        let (input, length) = of(json!([{"type": "file", "file": {"file_data": data}}]));
        assert_eq!(
            input,
            Input { text: length - 1_000, ..Input::default() },
            "3,000 bytes of text are 4,000 of base64"
        );
    }

    #[test]
    fn sound_is_seconds() {
        let sound = |bytes: &[u8], format: &str| {
            of(json!([{"type": "input_audio", "input_audio": {"data": base64(bytes), "format": format}}])).0
        };
        let mut wav = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
        wav.extend(24_000u32.to_le_bytes());
        // A false byte rate, by which ten seconds would be one.
        wav.extend(480_000u32.to_le_bytes());
        wav.extend([2, 0, 16, 0]);
        wav.resize(480_000, 0);
        assert_eq!(sound(&wav, "wav").sound_seconds, 10);
        assert_eq!(sound(&[3; 60_000], "mp3").sound_seconds, 30);
        assert!(sound(&[3; 60_000], "mp3").text < 300, "not by its base64");
    }

    #[test]
    fn what_no_provider_would_take_is_text() {
        for body in [
            r#"{"messages":"image_url"}"#,
            r#"{"messages":[{"content":[{"type":"image_url"}]}]}"#,
            r#"{"messages":[{"content":[{"type":"image_url","type":"text","image_url":{"url":"data:,"}}]}]}"#,
            r#"{"messages":[{"content":[7,"image_url",{"type":"image_url","image_url":7}]}]}"#,
        ] {
            assert_eq!(Input::of(body.as_bytes()), Input { text: body.len(), ..Input::default() }, "{body}");
        }
    }
}
