// @vitest-environment happy-dom
// A button without words is named for everybody.
import { X } from 'lucide-react';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, it } from 'vitest';
import { IconButton } from './icon-button';

it('has its name, shows it or a fuller hint on hover, and submits nothing', () => {
  const holder = document.createElement('div');
  holder.innerHTML = renderToStaticMarkup(<IconButton icon={X} label="Close" disabled />);
  const button = holder.querySelector('button');
  expect(button?.getAttribute('aria-label')).toBe('Close');
  expect(button?.title).toBe('Close');
  expect(button?.type).toBe('button');
  expect(button?.disabled).toBe(true);
  expect(button?.querySelector('svg')?.getAttribute('aria-hidden')).toBe('true');
  holder.innerHTML = renderToStaticMarkup(<IconButton icon={X} label="Close" hint="Close (Esc)" />);
  expect(holder.querySelector('button')?.title).toBe('Close (Esc)');
});
