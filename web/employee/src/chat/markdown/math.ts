// Formulas in markdown, as models write them: \(…\) in a line, \[…\] and $$…$$ on lines of their own. A single $ is money.
import { Marked, type Token, type TokenizerExtension, type TokensList } from 'marked';

export interface MathToken {
  type: 'math';
  raw: string;
  /** What stands between the delimiters; null as long as the closing one is missing. */
  tex: string | null;
  display: boolean;
}

// No formula goes on after an empty line.
const INLINE = /^\\(?:\(((?:(?!\n[ \t]*\n)[^])+?)\\\)|\[((?:(?!\n[ \t]*\n)[^])+?)\\\])/;
const BLOCK =
  /^ {0,3}(?:\\\[((?:(?!\n[ \t]*\n)[^])+?)\\\]|\$\$((?:(?!\n[ \t]*\n)[^])+?)\$\$)[ \t]*[.,;]?[ \t]*(?:\n|$)/;
/** A formula that is still being written is one block from its first line on: its lines must not become lists and headings. */
const OPEN = /^ {0,3}(?:\\\[|\$\$)[ \t]*(?:\n(?:(?!\n[ \t]*\n)[^])*|$)/;
const BEGINNING = /\n {0,3}(?:\\\[|\$\$)/;

const math = (raw: string, tex: string | null, display: boolean): MathToken => ({
  type: 'math',
  raw,
  tex: tex?.trim() ?? null,
  display,
});

const block: TokenizerExtension = {
  name: 'math',
  level: 'block',
  start(text) {
    // Only the paragraph at the beginning is to be cut: a search through all of a long text for each of them takes its time.
    const end = text.search(/\n[ \t]*\n/);
    const at = (end === -1 ? text : text.slice(0, end)).search(BEGINNING);
    return at === -1 ? undefined : at + 1;
  },
  tokenizer(text) {
    const whole = BLOCK.exec(text);
    if (whole !== null) return math(whole[0], whole[1] ?? whole[2] ?? '', true);
    const open = OPEN.exec(text);
    return open === null ? undefined : math(open[0], null, true);
  },
};

const inline: TokenizerExtension = {
  name: 'inlineMath',
  level: 'inline',
  start(text) {
    const at = text.search(/\\[([]/);
    return at === -1 ? undefined : at;
  },
  tokenizer(text) {
    const found = INLINE.exec(text);
    return found === null ? undefined : math(found[0], found[1] ?? found[2] ?? '', found[2] !== undefined);
  },
};

const reader = new Marked({ gfm: true, breaks: false, extensions: [block, inline] });

export const lexer = (text: string): TokensList => reader.lexer(text);

export const isMath = (token: Token): token is Token & MathToken => token.type === 'math';
