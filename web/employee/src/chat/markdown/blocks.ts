// Markdown as a list of blocks with stable identity: while a reply grows, only its end is read and drawn anew.
import type { Token, Tokens } from 'marked';
import { lexer } from './math';

export interface Block {
  /** The block's own source; equal sources draw equal, as far as they know the same definitions. */
  raw: string;
  token: Token;
  /** A heading's level on the page; other blocks have none. */
  level: number;
  /** How many definitions of links were known: another one may make a link of what was none. */
  links: number;
}

/** Blocks that are drawn together; a full part never changes again. */
export type Part = readonly Block[];

const PART = 24;
/** So many blocks at the end may still become others: a line below makes a paragraph a heading, a list goes on. */
const OPEN = 2;

/** Reads a text that grows at its end. A text that does not begin with the last one is read from its beginning. */
export class GrowingMarkdown {
  private text = '';
  /** What is closed, in full parts and the rest; where in the text the open end begins. */
  private parts: Part[] = [];
  private rest: Block[] = [];
  private at = 0;
  private level = 1;
  /** A definition of a link reaches back to every place that uses it: then all is read each time. */
  private links = 0;
  private drawn: readonly Part[] = [];

  read(source: string): readonly Part[] {
    // As the lexer does, so that its pieces are as long as ours.
    const text = source.replaceAll(/\r\n?/g, '\n');
    if (text === this.text) return this.drawn;
    if (this.links > 0 || !text.startsWith(this.text)) this.restart();
    this.text = text;
    let tokens = lexer(text.slice(this.at));
    if (Object.keys(tokens.links).length > 0 && this.at > 0) {
      this.restart();
      this.text = text;
      tokens = lexer(text);
    }
    this.links = Object.keys(tokens.links).length;
    let open = tokens.length;
    for (let left = OPEN; left > 0 && open > 0; open -= 1) if (isDrawn(tokens[open - 1])) left -= 1;
    for (const token of tokens.slice(0, open)) this.close(token);
    this.drawn = [...this.parts, [...this.rest, ...this.blocks(tokens.slice(open))]];
    return this.drawn;
  }

  private restart() {
    this.text = '';
    this.parts = [];
    this.rest = [];
    this.at = 0;
    this.level = 1;
    this.links = 0;
  }

  private close(token: Token) {
    this.at += token.raw.length;
    const [block] = this.blocks([token]);
    if (block === undefined) return;
    if (block.level > 0) this.level = block.level;
    this.rest.push(block);
    if (this.rest.length < PART) return;
    this.parts.push(this.rest);
    this.rest = [];
  }

  private blocks(tokens: readonly Token[]): Block[] {
    // The page's own heading is the first; below it no level is left out, whatever the model wrote.
    let last = this.level;
    return tokens.filter(isDrawn).map((token) => {
      const block = { raw: token.raw, token, level: 0, links: this.links };
      if (token.type !== 'heading') return block;
      last = Math.min((token as Tokens.Heading).depth + 1, last + 1, 6);
      return { ...block, level: last };
    });
  }
}

const isDrawn = (token: Token | undefined) => token?.type !== 'space' && token?.type !== 'def';

/** Where a link may lead; everything else is shown as text. */
export function safeHref(href: string): string | null {
  return /^(https?:\/\/|mailto:)/i.test(href.trim()) ? href.trim() : null;
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };

/** The lexer escapes for HTML; React escapes by itself. */
export function unescaped(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => ENTITIES[name] ?? '');
}
