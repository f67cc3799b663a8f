// Draws markdown as elements, never as HTML: what a model writes cannot become a script, a frame or a foreign image.
import type { Token, Tokens } from 'marked';
import { memo, useState, type ReactNode } from 'react';
import { useText } from '../../messages';
import { GrowingMarkdown, safeHref, unescaped, type Block, type Part } from './blocks';
import { CodeBlock } from './code-block';
import { Formula } from './formula';
import { isMath, type MathToken } from './math';
import { Scroller } from './scroller';

/** `growing` while its last block may go on. */
export default function Markdown({ text, growing = false }: { text: string; growing?: boolean }) {
  const [reader] = useState(() => new GrowingMarkdown());
  // A text that grew here has shown every part of it once: the browser knows their heights and may leave out those far away.
  const [grew] = useState(growing);
  const parts = reader.read(text);
  return (
    <div className={`prose-chat ${grew ? 'grew' : ''}`}>
      {parts.map((part, index) => (
        // Blocks are only added at the end while a reply grows, so their place is their identity.
        <PartView key={index} part={part} growing={growing && index === parts.length - 1} />
      ))}
    </div>
  );
}

const PartView = memo(function PartView({ part, growing }: { part: Part; growing: boolean }) {
  return (
    <div className="prose-part">
      {part.map((block, index) => (
        <BlockView key={index} {...block} growing={growing && index === part.length - 1} />
      ))}
    </div>
  );
});

const BlockView = memo(
  function BlockView({ token, level, growing }: Block & { growing: boolean }) {
    return <BlockToken token={token} level={level} growing={growing} />;
  },
  (before, after) =>
    before.raw === after.raw &&
    before.level === after.level &&
    before.links === after.links &&
    before.growing === after.growing,
);

interface BlockTokenProps {
  token: Token;
  /** Headings inside lists and quotes only look like headings. */
  level?: number;
  growing?: boolean;
}

function BlockToken({ token, level = 0, growing = false }: BlockTokenProps): ReactNode {
  switch (token.type) {
    case 'heading': {
      const { depth, tokens } = token as Tokens.Heading;
      return (
        <p {...(level > 0 && { role: 'heading', 'aria-level': level })} data-depth={depth}>
          <Inline tokens={tokens} />
        </p>
      );
    }
    case 'paragraph':
      return (
        <p>
          <Inline tokens={(token as Tokens.Paragraph).tokens} />
        </p>
      );
    case 'text': {
      const { tokens, text } = token as Tokens.Text;
      return tokens ? <Inline tokens={tokens} /> : unescaped(text);
    }
    case 'code': {
      const { text, lang } = token as Tokens.Code;
      return <CodeBlock text={text} language={lang?.split(/\s/)[0] ?? ''} growing={growing} />;
    }
    case 'blockquote':
      return (
        <blockquote>
          <Blocks tokens={(token as Tokens.Blockquote).tokens} />
        </blockquote>
      );
    case 'list':
      return <List list={token as Tokens.List} />;
    case 'table':
      return <Table table={token as Tokens.Table} />;
    case 'math':
      return isMath(token) ? (
        <div>
          <MathView {...token} />
        </div>
      ) : null;
    case 'hr':
      return <hr />;
    case 'html':
      return <p>{(token as Tokens.HTML).text.trim()}</p>;
    default:
      return token.type === 'space' ? null : token.raw;
  }
}

function Blocks({ tokens }: { tokens: readonly Token[] }) {
  return tokens.map((token, index) => <BlockToken key={index} token={token} />);
}

function List({ list }: { list: Tokens.List }) {
  const items = list.items.map((item, index) => (
    <li key={index} className={item.task ? 'task' : undefined}>
      {item.task && <TaskMark done={item.checked === true} />}
      {/* A task's own box is drawn above. */}
      <Blocks tokens={item.tokens.filter((token) => token.type !== 'checkbox')} />
    </li>
  ));
  return list.ordered ? <ol start={list.start === '' ? 1 : list.start}>{items}</ol> : <ul>{items}</ul>;
}

function TaskMark({ done }: { done: boolean }) {
  const { t } = useText();
  return (
    <span role="img" aria-label={t(done ? 'markdown.done' : 'markdown.open')}>
      {done ? '☑' : '☐'}{' '}
    </span>
  );
}

function Table({ table }: { table: Tokens.Table }) {
  const { t } = useText();
  return (
    <Scroller role="region" label={t('markdown.table')}>
      <table>
        <thead>
          <tr>
            {table.header.map((cell, index) => (
              <th key={index} scope="col" style={{ textAlign: cell.align ?? undefined }}>
                <Inline tokens={cell.tokens} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => (
                <td key={column} style={{ textAlign: cell.align ?? undefined }}>
                  <Inline tokens={cell.tokens} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroller>
  );
}

function MathView({ raw, tex, display }: MathToken) {
  if (tex === null) return <span className="whitespace-pre-wrap">{raw.trim()}</span>;
  return <Formula source={raw} tex={tex} display={display} />;
}

function Inline({ tokens }: { tokens: readonly Token[] | undefined }) {
  return tokens?.map((token, index) => <InlineToken key={index} token={token} />);
}

function InlineToken({ token }: { token: Token }): ReactNode {
  switch (token.type) {
    case 'strong':
      return (
        <strong>
          <Inline tokens={(token as Tokens.Strong).tokens} />
        </strong>
      );
    case 'em':
      return (
        <em>
          <Inline tokens={(token as Tokens.Em).tokens} />
        </em>
      );
    case 'del':
      return (
        <del>
          <Inline tokens={(token as Tokens.Del).tokens} />
        </del>
      );
    case 'codespan':
      return <code>{unescaped((token as Tokens.Codespan).text)}</code>;
    case 'math':
      return isMath(token) ? <MathView {...token} /> : null;
    case 'br':
      return <br />;
    case 'escape':
      return (token as Tokens.Escape).text;
    case 'link': {
      const { href, tokens } = token as Tokens.Link;
      return (
        <Anchor href={href}>
          <Inline tokens={tokens} />
        </Anchor>
      );
    }
    case 'image': {
      // Pictures of other origins are not fetched: whoever is meant to see them follows the link.
      const { href, text } = token as Tokens.Image;
      return <Anchor href={href}>{text || href}</Anchor>;
    }
    case 'text': {
      const { tokens, text } = token as Tokens.Text;
      return tokens ? <Inline tokens={tokens} /> : unescaped(text);
    }
    default:
      return token.raw;
  }
}

function Anchor({ href, children }: { href: string; children: ReactNode }) {
  const safe = safeHref(href);
  if (safe === null) return children;
  return (
    <a href={safe} target="_blank" rel="noreferrer noopener">
      {children}
    </a>
  );
}
