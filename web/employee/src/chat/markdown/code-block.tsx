// A block of code: its language, a button that copies it, and colours once the highlighter is there.
import { useEffect, useState, type ReactNode } from 'react';
import { CopyButton } from '../copy-button';
import { useText } from '../../messages';

type Paint = (text: string, language: string) => ReactNode | null;

let painter: Paint | null = null;
let loading: Promise<Paint> | null = null;

function load(): Promise<Paint> {
  loading ??= import('./highlight').then((module) => (painter = module.paint));
  return loading;
}

/** The highlighter, null until it is fetched; code is readable without it. */
function usePainter(): Paint | null {
  const [ready, setReady] = useState(() => painter);
  useEffect(() => {
    if (ready !== null) return;
    let wanted = true;
    load().then(
      (loaded) => wanted && setReady(() => loaded),
      () => null,
    );
    return () => {
      wanted = false;
    };
  }, [ready]);
  return ready;
}

export function CodeBlock({ text, language }: { text: string; language: string }) {
  const { t } = useText();
  const paint = usePainter();
  return (
    <div className="code-block overflow-hidden rounded-lg border border-line bg-sunken">
      <div className="flex items-center justify-between gap-2 border-b border-line ps-3.5 pe-1.5 text-xs text-muted">
        <span className="font-mono">{language || t('markdown.code')}</span>
        <CopyButton text={text} label={t('markdown.copyCode')} showLabel />
      </div>
      <pre
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a region that scrolls has to be reachable
        tabIndex={0}
        role="region"
        aria-label={t('markdown.codeOf', { language: language || t('markdown.code') })}
      >
        <code>{paint?.(text, language) ?? text}</code>
      </pre>
    </div>
  );
}
