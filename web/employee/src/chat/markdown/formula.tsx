// A formula: its source until KaTeX is there, and for good where that cannot read it or be fetched.
import { useEffect, useLayoutEffect, useRef, useState } from 'react';
import { useText } from '../../messages';
import { Scroller } from './scroller';

type Draw = typeof import('./katex').drawFormula;

let known: Draw | null = null;
let fetching: Promise<Draw | null> | null = null;

function fetchDraw(): Promise<Draw | null> {
  fetching ??= import('./katex').then(
    ({ drawFormula }) => (known = drawFormula),
    () => {
      // A formula can be read without it; the next one tries to fetch it again.
      fetching = null;
      return null;
    },
  );
  return fetching;
}

interface FormulaProps {
  source: string;
  tex: string;
  display: boolean;
}

export function Formula({ source, tex, display }: FormulaProps) {
  const { t } = useText();
  const [draw, setDraw] = useState(() => known);
  useEffect(() => {
    if (draw !== null) return;
    let left = false;
    void fetchDraw().then((fetched) => {
      if (!left) setDraw(() => fetched);
    });
    return () => {
      left = true;
    };
  }, [draw]);
  const content =
    draw === null ? (
      <span className="whitespace-pre-wrap">{source.trim()}</span>
    ) : (
      <Drawn draw={draw} source={source.trim()} tex={tex} display={display} />
    );
  return display ? (
    <Scroller role="group" label={t('markdown.formula')}>
      {content}
    </Scroller>
  ) : (
    content
  );
}

function Drawn({ draw, source, tex, display }: FormulaProps & { draw: Draw }) {
  const holder = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    const element = holder.current;
    if (element !== null && !draw(element, tex, display)) element.textContent = source;
  }, [draw, source, tex, display]);
  return <span ref={holder} className={display ? 'block w-max min-w-full' : undefined} />;
}
