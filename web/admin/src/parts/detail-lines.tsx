// What an audit entry tells. A change of many settings is told setting by setting, and folded when there are more than a few.
import { useText } from '../messages';

const SHOWN = 4;

export function DetailLines({ detail }: { detail: string }) {
  const { t } = useText();
  const lines = detail.split(/; (?=[\w.$:/[\]"-]+: )/);
  if (lines.length === 1) return detail && <p className="mt-1">{detail}</p>;
  const more = lines.slice(SHOWN);
  return (
    <>
      <Lines lines={lines.slice(0, SHOWN)} />
      {more.length > 0 && (
        <details>
          <summary className="mt-1 cursor-pointer rounded text-sm font-medium text-accent">
            {t('config.moreLines', { count: more.length })}
          </summary>
          <Lines lines={more} />
        </details>
      )}
    </>
  );
}

function Lines({ lines }: { lines: readonly string[] }) {
  return (
    <ul className="mt-1 space-y-0.5 font-mono text-xs wrap-anywhere">
      {lines.map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
  );
}
