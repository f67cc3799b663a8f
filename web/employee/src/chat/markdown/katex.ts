// Draws formulas; a file of its own, because it is large and most replies have none.
import katex from 'katex';
import 'katex/dist/katex.min.css';

/** False for what is no formula; then `into` is left to the caller. What a model writes gets no links, pictures or attributes of its own. */
export function drawFormula(into: HTMLElement, tex: string, display: boolean): boolean {
  try {
    katex.render(tex, into, {
      displayMode: display,
      throwOnError: true,
      trust: false,
      strict: false,
      maxExpand: 500,
      maxSize: 50,
    });
    return true;
  } catch {
    return false;
  }
}
