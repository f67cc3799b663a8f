// What happened on the way to a reply, folded: the model's reasoning and the tools it called.
import { Brain, ChevronRight, LoaderCircle, TriangleAlert, Wrench } from 'lucide-react';
import { createContext, use, useState, type ReactNode } from 'react';
import { useText } from '../../messages';
import type { Message } from '../engine/types';

/** Which folds are open, by message and place: a message that leaves the page and comes back keeps them. */
export const OpenFolds = createContext(new Set<string>());

export function Folds({ message }: { message: Message }) {
  const { t } = useText();
  return (
    <>
      {message.reasoning && (
        <Fold
          name={`${message.id} reasoning`}
          icon={<Brain className="size-4" aria-hidden="true" />}
          title={t('chat.reasoning')}
        >
          <p className="text-sm whitespace-pre-wrap text-muted">{message.reasoning}</p>
        </Fold>
      )}
      {message.tools?.map((tool) => (
        <Fold
          key={tool.id}
          name={`${message.id} ${tool.id}`}
          icon={
            tool.state === 'running' ? (
              <LoaderCircle className="size-4 animate-spin" aria-hidden="true" />
            ) : tool.state === 'failed' ? (
              <TriangleAlert className="size-4 text-danger" aria-hidden="true" />
            ) : (
              <Wrench className="size-4" aria-hidden="true" />
            )
          }
          title={t(
            tool.state === 'running'
              ? 'chat.toolRuns'
              : tool.state === 'failed'
                ? 'chat.toolFailed'
                : 'chat.tool',
            { name: tool.name },
          )}
        >
          <Part label={t('chat.toolInput')} text={tool.input} />
          <Part label={t('chat.toolOutput')} text={tool.output} />
        </Fold>
      ))}
    </>
  );
}

interface FoldProps {
  name: string;
  icon: ReactNode;
  title: string;
  children: ReactNode;
}

function Fold({ name, icon, title, children }: FoldProps) {
  const all = use(OpenFolds);
  const [open, setOpen] = useState(() => all.has(name));
  return (
    <details
      open={open}
      onToggle={(event) => {
        const { open: now } = event.currentTarget;
        if (now) all.add(name);
        else all.delete(name);
        setOpen(now);
      }}
      className="group/fold mb-2 rounded-lg border border-line bg-surface"
    >
      <summary className="flex min-h-9 cursor-pointer list-none items-center gap-2 rounded-lg px-3 text-sm text-muted select-none hover:text-ink">
        {icon}
        <span className="min-w-0 flex-1 truncate">{title}</span>
        <ChevronRight className="size-4 transition-transform group-open/fold:rotate-90" aria-hidden="true" />
      </summary>
      <div className="space-y-2 border-t border-line px-3 py-2.5">{children}</div>
    </details>
  );
}

function Part({ label, text }: { label: string; text: string }) {
  if (text === '') return null;
  return (
    <div>
      <p className="text-xs text-muted">{label}</p>
      <pre
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a region that scrolls has to be reachable
        tabIndex={0}
        role="region"
        aria-label={label}
        className="mt-0.5 max-h-60 overflow-auto font-mono text-xs whitespace-pre-wrap"
      >
        {text}
      </pre>
    </div>
  );
}
