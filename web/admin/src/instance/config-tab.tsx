// The instance's configuration: the stored document with a diff before it is saved, the one on the server with what
// differs, the older ones that are kept there, and who changed what so far.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Badge } from '@tidepool/shared/ui/badge';
import { Button } from '@tidepool/shared/ui/button';
import { Confirm } from '@tidepool/shared/ui/confirm';
import { EmptyState } from '@tidepool/shared/ui/states';
import { TextArea } from '@tidepool/shared/ui/text-area';
import { toast } from '@tidepool/shared/ui/toast';
import { useRef, useState, type RefObject } from 'react';
import { api } from '../api';
import { useRights } from '../me';
import { useText } from '../messages';
import { ChangeList } from '../parts/change-list';
import { DetailLines } from '../parts/detail-lines';
import { DiffView } from '../parts/diff-view';
import { QueryState } from '../parts/query-state';
import type { InstanceDetail } from '../records';
import { useTaskToast } from '../task-drawer';
import { ConfigVersions } from './config-versions';
import { isMasked, type TakenOver } from './take-over';

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}

function problemOf(text: string): string | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? null : '{…}';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function hasMasks(json: string): boolean {
  try {
    return isMasked(JSON.parse(json));
  } catch {
    return false;
  }
}

/** What was typed is about one stored document: when that is another one, it begins anew. */
export function ConfigTab({ instance }: { instance: InstanceDetail }) {
  return <Configuration key={instance.config_json} instance={instance} />;
}

function Configuration({ instance }: { instance: InstanceDetail }) {
  const { t, number } = useText();
  const stored = pretty(instance.config_json);
  const [text, setText] = useState(stored);
  const editor = useRef<HTMLTextAreaElement>(null);
  const problem = problemOf(text);
  const { may } = useRights();
  const mayChange = may('instances.manage');
  // Where secrets are masked, saving the text would put the masks in their place.
  const hidden = !may('instances.secrets') && hasMasks(stored);
  const editable = mayChange && !hidden;
  const take = ({ text: next, taken }: TakenOver) => {
    setText(next);
    editor.current?.focus();
    toast('success', t('config.taken', { count: number(taken.length) }));
  };
  return (
    <div className="space-y-8">
      <Stored
        instance={instance}
        editor={editor}
        stored={stored}
        text={text}
        problem={problem}
        onText={editable ? setText : undefined}
        hint={t(hidden && mayChange ? 'config.masked' : 'config.storedHint')}
      />
      <OnServer instance={instance} />
      <ConfigVersions
        instanceId={instance.id}
        stored={problem === null ? text : null}
        onTake={editable ? take : undefined}
      />
      {may('audit.read') && <Changes instance={instance} />}
    </div>
  );
}

interface StoredProps {
  instance: InstanceDetail;
  editor: RefObject<HTMLTextAreaElement | null>;
  stored: string;
  text: string;
  problem: string | null;
  /** Absent where it cannot be changed. */
  onText?: (text: string) => void;
  hint: string;
}

function Stored({ instance, editor, stored, text, problem, onText, hint }: StoredProps) {
  const { t } = useText();
  const client = useQueryClient();
  const notify = useTaskToast();
  const [asking, setAsking] = useState(false);
  const changed = text !== stored;
  const save = async () => {
    const body = { config_json: text };
    const answer = await unwrap(
      api.PATCH('/instances/{id}/config', { params: { path: { id: instance.id } }, body }),
    );
    notify(answer.task_id, t('config.saved'));
  };
  return (
    <section className="space-y-3">
      <TextArea
        label={t('config.stored')}
        hint={hint}
        error={problem && t('config.problem', { problem })}
        mono
        ref={editor}
        rows={Math.min(24, Math.max(6, text.split('\n').length))}
        value={text}
        readOnly={onText === undefined}
        onChange={(event) => onText?.(event.target.value)}
      />
      {onText && (
        <div className="flex gap-2">
          <Button look="primary" disabled={!changed || problem !== null} onClick={() => setAsking(true)}>
            {t('config.review')}
          </Button>
          {changed && <Button onClick={() => onText(stored)}>{t('config.revert')}</Button>}
        </div>
      )}
      {asking && (
        <Confirm
          title={t('config.reviewTitle', { name: instance.name })}
          confirm={t('dialog.save')}
          danger={false}
          run={save}
          onDone={() => {
            void client.invalidateQueries({ queryKey: ['instances'] });
            void client.invalidateQueries({ queryKey: ['tasks'] });
          }}
          onClose={() => setAsking(false)}
        >
          <p>{t('config.reviewText')}</p>
          <DiffView before={stored} after={text} />
        </Confirm>
      )}
    </section>
  );
}

function OnServer({ instance }: { instance: InstanceDetail }) {
  const { t } = useText();
  const config = useQuery({
    queryKey: ['config', instance.id],
    queryFn: () => unwrap(api.GET('/instances/{id}/config', { params: { path: { id: instance.id } } })),
    retry: false,
    staleTime: 60_000,
  });
  return (
    <section>
      <h3 className="mb-2 text-sm font-semibold">{t('config.onServer')}</h3>
      <QueryState query={config}>
        {(found) => (
          <div className="space-y-3">
            <p className="flex flex-wrap items-center gap-2 text-sm text-muted">
              {found.version && <Badge>OpenClaw {found.version}</Badge>}
              <Badge tone={found.untouched ? 'good' : 'warn'}>
                {t(found.untouched ? 'config.untouched' : 'config.touched')}
              </Badge>
              <span>
                {t('config.hash')}{' '}
                <code className="font-mono text-xs" title={found.hash}>
                  {found.hash.slice(0, 12)}
                </code>
              </span>
            </p>
            {found.drift.length === 0 ? (
              <p className="text-sm text-muted">{t('config.noDrift')}</p>
            ) : (
              <>
                <p className="text-sm">{t('config.drift', { count: found.drift.length })}</p>
                <ChangeList changes={found.drift} is={t('config.is')} should={t('config.should')} />
              </>
            )}
            <details>
              <summary className="cursor-pointer rounded text-sm font-medium text-accent">
                {t('config.whole')}
              </summary>
              <pre className="mt-2 max-h-96 overflow-auto rounded-lg bg-sunken p-3 font-mono text-xs whitespace-pre-wrap">
                {JSON.stringify(found.config, null, 2)}
              </pre>
            </details>
          </div>
        )}
      </QueryState>
    </section>
  );
}

/** Each change of the configuration as the audit log has it. */
function Changes({ instance }: { instance: InstanceDetail }) {
  const { t } = useText();
  const changes = useQuery({
    queryKey: ['instances', 'config-changes', instance.id],
    queryFn: () =>
      unwrap(
        api.GET('/audit-logs', {
          params: { query: { target: instance.id, q: 'config', limit: 20, offset: 0 } },
        }),
      ),
  });
  return (
    <section>
      <h3 className="mb-2 text-sm font-semibold">{t('config.versions')}</h3>
      <QueryState query={changes}>
        {({ list }) =>
          list.length === 0 ? (
            <EmptyState title={t('config.noVersions')}>{t('config.noVersionsText')}</EmptyState>
          ) : (
            <ul className="divide-y divide-line rounded-lg border border-line text-sm">
              {list.map((entry) => (
                <li key={entry.id} className="px-3 py-2">
                  <span className="text-muted">
                    <RelativeTime at={entry.created_at} /> · {entry.operator}
                  </span>
                  <DetailLines detail={entry.detail} />
                </li>
              ))}
            </ul>
          )
        }
      </QueryState>
    </section>
  );
}
