// What a model writes is drawn as text and known elements, whatever it tries.
import { renderToStaticMarkup } from 'react-dom/server';
import { I18nProvider } from '@tidepool/shared/i18n/i18n';
import { describe, expect, it } from 'vitest';
import { en } from '../../messages/en';
import { dictionaries } from '../../messages';
import { blocksOf, safeHref } from './blocks';
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

  it('keeps earlier blocks as they are while a reply grows', () => {
    const before = blocksOf('First.\n\nSecond');
    const after = blocksOf('First.\n\nSecond and more');
    expect(after[0]?.raw).toBe(before[0]?.raw);
    expect(after).toHaveLength(2);
  });
});
