// Colours for code, as elements; a file of its own, because it is large and most replies have no code.
import { common, createLowlight } from 'lowlight';
import { createElement, type ReactNode } from 'react';

const lowlight = createLowlight(common);

interface Node {
  type: string;
  value?: string;
  properties?: { className?: unknown };
  children?: Node[];
}

/** Null for a language it does not know. */
export function paint(text: string, language: string): ReactNode | null {
  if (!lowlight.registered(language)) return null;
  const root = lowlight.highlight(language, text) as unknown as Node;
  return elements(root.children ?? []);
}

function elements(nodes: readonly Node[]): ReactNode {
  return nodes.map((node, index) => {
    if (node.type === 'text') return node.value ?? '';
    const { className } = node.properties ?? {};
    const names = Array.isArray(className) ? className.join(' ') : undefined;
    return createElement('span', { key: index, className: names }, elements(node.children ?? []));
  });
}
