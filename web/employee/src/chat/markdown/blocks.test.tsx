// @vitest-environment happy-dom
// What a model writes is drawn as text and known elements, whatever it tries.
import { renderToStaticMarkup } from 'react-dom/server';
import { I18nProvider } from '@tidepool/shared/i18n/i18n';
import { describe, expect, it } from 'vitest';
import { en } from '../../messages/en';
import { dictionaries } from '../../messages';
import { GrowingMarkdown, safeHref, type Part } from './blocks';
import Markdown from './markdown';

function html(text: string): string {
  return renderToStaticMarkup(
    <I18nProvider dictionaries={dictionaries} initial={{ language: 'en', messages: en }}>
      <Markdown text={text} />
    </I18nProvider>,
  );
}

describe('markdown', () => {
  it.each([
    ['<script>alert(1)</script>', 'script'],
    ['a <img src=x onerror=alert(1)> b', 'img'],
    ['<iframe src="https://x.invalid"></iframe>', 'iframe'],
    ['![picture](https://x.invalid/p.png)', 'img'],
    ['<svg onload=alert(1)>', 'svg'],
  ])('%s becomes no %s', (source, tag) => {
    const holder = document.createElement('div');
    holder.innerHTML = html(source);
    expect(holder.querySelector(tag)).toBeNull();
  });

  it.each([
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'data:text/html,x',
    'vbscript:x',
    '//x.invalid',
    'file:///etc',
  ])('a link to %s is text', (href) => {
    expect(safeHref(href)).toBeNull();
    expect(html(`[click](${href})`)).not.toContain('href');
  });

  it('a link leads out without telling where from', () => {
    expect(html('[click](https://example.com)')).toContain(
      '<a href="https://example.com" target="_blank" rel="noreferrer noopener">click</a>',
    );
  });

  it('draws what people expect', () => {
    const drawn = html(
      '# Title\n\n**b** *i* ~~d~~ `a < b`\n\n- [x] done\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```js\nlet x = "<b>";\n```',
    );
    expect(drawn).toContain('role="heading"');
    expect(drawn).toContain('<strong>b</strong> <em>i</em> <del>d</del> <code>a &lt; b</code>');
    expect(drawn).toContain('aria-label="Done"');
    expect(drawn).toContain('text-align:right');
    expect(drawn).toContain('let x = &quot;&lt;b&gt;&quot;;');
    expect(drawn).not.toContain('&amp;lt;');
  });

  it.each([
    ['paragraphs, a heading below a line, a rule', 'One\n\nTwo\n===\n\nthree\nfour\n***\n\n## Five\nsix\n'],
    ['lists that go on after an empty line', '- a\n- b\n\n  more of b\n\n- c\n\n1. x\n2. y\n   - z\n\nend\n'],
    [
      'code, open and closed, with fences inside',
      'a\n\n```js\nlet x;\n\n\n~~~\n```\nb\n\n    indented\n\n    on\n\n~~~\n```',
    ],
    ['tables', 'x\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n| 3 | 4 |\n\nafter\n| no | table\n'],
    [
      'quotes, html and tasks',
      '> a\n> - b\n\n> c\nlazy\n\n<div>\nx\n\n</div>\n\n<script>\n\nx\n\n</script>\n\n- [x] done\n',
    ],
    [
      'links that are defined later',
      'see [one] and [two]\n\ntext\n\n[one]: https://one.example\n\nmore\n\n[two]: https://two.example\n',
    ],
    [
      'formulas',
      'a \\(x^2\\) b\n\n\\[\nx_1\n=\n- y\n\n\\]\n\n\\[\na\n=\n- b\n+ c\n\\]\nend\n$$\ny\n$$\n\n\\[ z \\]\n',
    ],
    ['Windows line ends', '# a\r\n\r\nb\r\nc\r\n\r\n- d\r\n- e\r\n\r\nf'],
  ])('a growing text is read as the whole: %s', (_, source) => {
    const text = source.repeat(3);
    const reader = new GrowingMarkdown();
    const plain = (parts: readonly Part[]) =>
      parts.flat().map(({ raw, level, token }) => [raw, level, token]);
    for (let end = 1; end <= text.length; end += 1) {
      const prefix = text.slice(0, end);
      expect(plain(reader.read(prefix))).toEqual(plain(new GrowingMarkdown().read(prefix)));
    }
  });

  it('a full part is never read again, so that it need not be drawn again', () => {
    const reader = new GrowingMarkdown();
    const text = Array.from({ length: 60 }, (_, index) => `Paragraph ${index}.`).join('\n\n');
    const [before] = reader.read(text);
    const [after, ...rest] = reader.read(`${text} More.\n\nAnd more.`);
    expect(after).toBe(before);
    expect(rest.at(-1)?.at(-1)?.raw).toBe('And more.');
    expect(reader.read('Another text').flat()).toHaveLength(1);
  });

  it('a definition that comes late makes a link of what was drawn before', () => {
    const reader = new GrowingMarkdown();
    const [before] = reader.read('see [one]\n\na\n\nb\n\nc\n\nd').flat();
    const [after] = reader.read('see [one]\n\na\n\nb\n\nc\n\nd\n\n[one]: https://one.example\n').flat();
    expect(after?.raw).toBe(before?.raw);
    expect(after?.links).not.toBe(before?.links);
  });
});
