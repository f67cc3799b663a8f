// One request to a model with all that is known of it: who asked, who answered, what it was made of, and how long it took.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { exact } from '@tidepool/shared/i18n/time';
import { Page } from '@tidepool/shared/shell/page';
import { Status } from '@tidepool/shared/ui/badge';
import { EstimatedMark } from '@tidepool/shared/ui/estimated';
import { Facts, Panel } from '@tidepool/shared/ui/panel';
import type { ReactNode } from 'react';
import { Link, useParams } from 'wouter';
import { api } from '../api';
import { useFormat } from '../format';
import { useText } from '../messages';
import { UserName } from '../usage/holder';

export default function RequestPage() {
  const { id } = useParams<{ id: string }>();
  return <OneRequest key={id} id={id} />;
}

/** What a provider, a gateway or an older release did not say: neither nothing nor zero. */
function useKnown() {
  const { t } = useText();
  const unknown = <span className="text-muted">{t('request.unknown')}</span>;
  return {
    text: (value: string) => value || unknown,
    of: (value: number | null | undefined, write: (value: number) => ReactNode) =>
      value === null || value === undefined ? unknown : write(value),
  };
}

function OneRequest({ id }: { id: string }) {
  const { t, number, locale } = useText();
  const format = useFormat();
  const known = useKnown();
  const request = useQuery({
    queryKey: ['requests', 'one', id],
    // What is no number names no request, which the server says as of every other one that is not there.
    queryFn: () => unwrap(api.GET('/llm-request-logs/{id}', { params: { path: { id: Number(id) || 0 } } })),
  });
  return (
    <Page
      wide
      title={t('request.title', { id })}
      lead={
        <Link href="/requests" className="rounded text-accent hover:underline">
          {t('nav.requests')}
        </Link>
      }
    >
      <div className="grid items-start gap-4 lg:grid-cols-2">
        <Panel title={t('request.asked')} query={request} skeletonLines={8}>
          {(one) => (
            <Facts
              rows={[
                {
                  name: t('requests.status'),
                  value: (
                    <Status tone={one.status === 'success' ? 'good' : 'bad'}>
                      {t(`requests.${one.status}`)}
                    </Status>
                  ),
                },
                ...(one.error_message
                  ? [
                      {
                        name: t('requests.error'),
                        value: <span className="wrap-anywhere whitespace-pre-wrap">{one.error_message}</span>,
                      },
                    ]
                  : []),
                { name: t('requests.time'), value: exact(new Date(one.created_at).getTime(), locale) },
                {
                  name: t('requests.instance'),
                  value: one.instance_id ? (
                    <Link
                      href={`/instances?open=${encodeURIComponent(one.instance_id)}`}
                      className="rounded text-accent hover:underline"
                    >
                      {one.instance_name}
                    </Link>
                  ) : (
                    one.instance_name
                  ),
                },
                {
                  name: t('requests.user'),
                  value: one.user_email ? (
                    <UserName email={one.user_email} former={one.former_employee} />
                  ) : (
                    t('overview.nobody')
                  ),
                },
                { name: t('request.id'), value: <Code>{one.request_id}</Code> },
                { name: t('request.subKey'), value: <Code>{one.gateway_token_name}</Code> },
              ]}
            />
          )}
        </Panel>
        <Panel title={t('request.answered')} query={request} skeletonLines={8}>
          {(one) => (
            <Facts
              rows={[
                { name: t('request.askedModel'), value: known.text(one.asked_model) },
                { name: t('request.model'), value: one.model },
                { name: t('requests.provider'), value: known.text(one.provider) },
                { name: t('request.key'), value: known.text(one.key_hint) },
                { name: t('request.protocol'), value: known.text(one.protocol) },
                { name: t('request.stream'), value: t(one.is_stream ? 'request.yes' : 'request.no') },
                { name: t('request.retries'), value: known.of(one.retries, number) },
                { name: t('request.firstByte'), value: known.of(one.first_byte_ms, format.duration) },
                { name: t('request.duration'), value: format.duration(one.duration_ms) },
              ]}
            />
          )}
        </Panel>
        <Panel title={t('request.counted')} query={request} skeletonLines={6} className="lg:col-span-2">
          {(one) => (
            <Facts
              rows={[
                { name: t('requests.in'), value: number(one.tokens_in) },
                { name: t('request.cacheRead'), value: known.of(one.cache_read_tokens, number) },
                { name: t('request.cacheWrite'), value: known.of(one.cache_write_tokens, number) },
                { name: t('requests.out'), value: number(one.tokens_out) },
                { name: t('request.reasoning'), value: known.of(one.reasoning_tokens, number) },
                {
                  name: t('usage.cost_usd'),
                  value: (
                    <span className="tabular-nums">
                      <EstimatedMark when={one.estimated} />
                      {`$${one.cost_exact}`}
                    </span>
                  ),
                },
              ]}
            />
          )}
        </Panel>
      </div>
    </Page>
  );
}

function Code({ children }: { children: string }) {
  return <code className="font-mono text-sm wrap-anywhere">{children}</code>;
}
