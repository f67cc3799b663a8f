// @vitest-environment happy-dom
// What models write as formulas is read and drawn as such, and what is none stays as it was written. What is wider than the
// thread shows that it goes on.
import { I18nProvider } from '@tidepool/shared/i18n/i18n';
import { act } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { dictionaries } from '../../messages';
import { en } from '../../messages/en';
import Markdown from './markdown';

let root: Root;
let place: HTMLElement;

beforeAll(() => {
  // happy-dom's documents are in quirks mode, which KaTeX refuses; the apps' have a doctype.
  Object.defineProperty(document, 'compatMode', { value: 'CSS1Compat' });
});

beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  place = document.body.appendChild(document.createElement('main'));
  root = createRoot(place);
});

afterEach(() => {
  act(() => root.unmount());
  place.remove();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

function draw(text: string, growing = false) {
  act(() =>
    root.render(
      <I18nProvider dictionaries={dictionaries} initial={{ language: 'en', messages: en }}>
        <Markdown text={text} growing={growing} />
      </I18nProvider>,
    ),
  );
}

/** The sources of the formulas as they are drawn. */
const formulas = () => [...place.querySelectorAll('annotation')].map(({ textContent }) => textContent);

async function drawn(count: number) {
  for (let turn = 0; turn < 500 && formulas().length < count; turn += 1)
    await act(() => new Promise((next) => setTimeout(next, 10)));
}

it('draws \\(…\\), \\[…\\] and $$…$$ as formulas', async () => {
  const text =
    'Area \\(a^2 *b*\\).\n\n\\[\nx *y* z_1\n- 3\n\\]\nso\n\n$$\n\\frac{1}{2}\n$$\n\n- one \\[z\\] more';
  draw(text);
  // Undamaged while KaTeX is on its way.
  expect(place.textContent).toContain('Area \\(a^2 *b*\\).');
  await drawn(4);
  expect(formulas()).toEqual(['a^2 *b*', 'x *y* z_1\n- 3', '\\frac{1}{2}', 'z']);
  expect(place.querySelector('em, li li, [data-depth]')).toBeNull();
  expect(place.querySelectorAll('.katex-display')).toHaveLength(3);
});

it('leaves money, code and escaped brackets alone', () => {
  draw('It is $5 and $6, `\\(a\\)`, \\[1] and x\\\\(b\\\\).');
  expect(place.textContent).toBe('It is $5 and $6, \\(a\\), [1] and x\\(b\\).');
});

it('shows what is no formula as it was written', async () => {
  draw('First \\(a\\), then \\(\\frac{\\).');
  await drawn(1);
  expect(formulas()).toEqual(['a']);
  expect(place.textContent).toContain('then \\(\\frac{\\).');
});

it('gives a formula neither links nor pictures', async () => {
  draw('\\(\\href{javascript:alert(1)}{a}\\) \\(\\includegraphics{https://x.invalid/p.png}\\) \\(b\\)');
  await drawn(3);
  expect(place.querySelector('a, img')).toBeNull();
});

it('a formula that is still being written is no list', () => {
  draw('\\[\na\n- b\n- c', true);
  expect(place.querySelector('li')).toBeNull();
  expect(place.textContent).toBe('\\[\na\n- b\n- c');
});

it('a wide table shows on which side it goes on', () => {
  vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockReturnValue(300);
  vi.spyOn(HTMLElement.prototype, 'scrollWidth', 'get').mockReturnValue(900);
  draw('| a | b |\n|---|---|\n| 1 | 2 |');
  const edges = () =>
    [...place.querySelectorAll('[data-edge]')].map((edge) => edge.getAttribute('data-edge'));
  const region = place.querySelector('[role=region]');
  expect(region?.getAttribute('aria-label')).toBe(en['markdown.table']);
  expect(edges()).toEqual(['after']);
  const scroll = (to: number) =>
    act(() => {
      if (region !== null) region.scrollLeft = to;
      region?.dispatchEvent(new Event('scroll'));
    });
  scroll(200);
  expect(edges()).toEqual(['before', 'after']);
  scroll(600);
  expect(edges()).toEqual(['before']);
});
