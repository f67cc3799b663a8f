// Markdown as a list of blocks with stable identity: while a reply grows, only its last block changes, and only that one
// is drawn anew.
import { lexer, type Token } from 'marked';

export interface Block {
  /** The block's own source; equal sources draw equal. */
  raw: string;
  token: Token;
}

export function blocksOf(text: string): Block[] {
  return lexer(text, { gfm: true, breaks: false })
    .filter((token) => token.type !== 'space' && token.type !== 'def')
    .map((token) => ({ raw: token.raw, token }));
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
