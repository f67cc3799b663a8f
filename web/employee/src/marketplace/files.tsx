// An item's files: where each goes, how it begins, and the lines that deserve a second look.
import { Badge } from '@tidepool/shared/ui/badge';
import { ChevronRight, TriangleAlert } from 'lucide-react';
import { useText } from '../messages';
import type { ItemDetail } from './queries';

/** All findings of an item together, each with its file. */
export function FindingList({ files }: { files: ItemDetail['files'] }) {
  const { t } = useText();
  return (
    <ul className="space-y-2 rounded-lg bg-warning-soft px-3 py-2.5 text-warning">
      {files.flatMap(({ scope, path, findings }) =>
        findings.map((finding, index) => (
          <li key={`${scope}/${path} ${index}`}>
            <p className="font-medium break-words">
              {t('item.finding', { path, line: finding.line, what: t(`finding.${finding.kind}`) })}
            </p>
            <p>{finding.why}</p>
            <code className="font-mono text-xs break-all">{finding.excerpt}</code>
          </li>
        )),
      )}
    </ul>
  );
}

export function Files({ files }: { files: ItemDetail['files'] }) {
  const { t, number } = useText();
  return (
    <section aria-label={t('item.files')}>
      <h3 className="mb-2 font-semibold">{t('item.files')}</h3>
      <ul className="space-y-2">
        {files.map((file) => (
          <li key={`${file.scope}/${file.path}`}>
            <details className="group rounded-lg border border-line" open={file.findings.length > 0}>
              <summary className="flex min-h-10 cursor-pointer list-none flex-wrap items-center gap-x-2 gap-y-1 rounded-lg px-3 py-1.5 text-sm select-none hover:bg-sunken">
                <ChevronRight
                  className="size-4 shrink-0 text-muted transition-transform group-open:rotate-90"
                  aria-hidden="true"
                />
                <span className="min-w-0 flex-1 basis-48 font-mono text-xs break-all">{file.path}</span>
                {file.findings.length > 0 && (
                  <Badge tone="warn">
                    <TriangleAlert className="size-3.5" aria-hidden="true" />
                    {number(file.findings.length)}
                    <span className="sr-only">{t('item.warnings')}</span>
                  </Badge>
                )}
                <Badge>{t(`scope.${file.scope}`)}</Badge>
                <span className="text-xs whitespace-nowrap text-muted tabular-nums">
                  {t('item.bytes', { count: number(file.size) })}
                </span>
              </summary>
              {file.findings.length > 0 && (
                <ul className="space-y-1.5 border-t border-line bg-warning-soft px-3 py-2.5 text-sm text-warning">
                  {file.findings.map((finding, index) => (
                    <li key={index}>
                      <p className="font-medium">
                        {t('item.line', { line: finding.line, what: t(`finding.${finding.kind}`) })}
                      </p>
                      <p>{finding.why}</p>
                      <code className="font-mono text-xs break-all">{finding.excerpt}</code>
                    </li>
                  ))}
                </ul>
              )}
              <pre
                // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a region that scrolls has to be reachable
                tabIndex={0}
                role="region"
                aria-label={file.path}
                className="max-h-80 overflow-auto border-t border-line bg-sunken px-3 py-2.5 font-mono text-xs whitespace-pre-wrap -outline-offset-2"
              >
                {file.preview}
              </pre>
            </details>
          </li>
        ))}
      </ul>
    </section>
  );
}
