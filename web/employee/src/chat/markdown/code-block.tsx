// A block of code: its language, a button that copies it, and colours once it is whole.
import { CopyButton } from '../copy-button';
import { useText } from '../../messages';
import { usePainted } from './painted';

interface CodeBlockProps {
  text: string;
  language: string;
  growing: boolean;
}

export function CodeBlock({ text, language, growing }: CodeBlockProps) {
  const { t } = useText();
  const painted = usePainted(text, language, growing);
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
        <code>{painted ?? text}</code>
      </pre>
    </div>
  );
}
