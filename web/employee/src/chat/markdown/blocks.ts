// Markdown as a list of blocks with stable identity: while a reply grows, only its last block changes, and only that one
// is drawn anew.
import { lexer, type Token, type Tokens } from 'marked';

export interface Block {
  /** The block's own source; equal sources draw equal. */
  raw: string;
  token: Token;
  /** A heading's level on the page; other blocks have none. */
  level: number;
}

export function blocksOf(text: string): Block[] {
  // The page's own heading is the first; below it no level is left out, whatever the model wrote.
  let last = 1;
  return lexer(text, { gfm: true, breaks: false })
    .filter((token) => token.type !== 'space' && token.type !== 'def')
    .map((token) => {
      if (token.type !== 'heading') return { raw: token.raw, token, level: 0 };
      last = Math.min((token as Tokens.Heading).depth + 1, last + 1, 6);
      return { raw: token.raw, token, level: last };
    });
}

/** Where a link may lead; everything else is shown as text. */
export function safeHref(href: string): string | null {
  return /^(https?:\/\/|mailto:)/i.test(href.trim()) ? href.trim() : null;
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };

/** The lexer escapes for HTML; React escapes by itself. */
export function unescaped(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => ENTITIES[name] ?? '');
}
