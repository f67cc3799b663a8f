// The chat of one instance: chooses its engine, makes it anew for another instance and destroys the one before, falls
// back when an engine cannot work, and sees to the dual write.
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo, useState, useSyncExternalStore } from 'react';
import { INSTANCES, SUMMARY, type Instance } from '../instances-query';
import { PROFILE } from '../profile-query';
import { makeEngine } from './engine/make';
import type { ChatEngine, EngineKind, EngineState, Hop } from './engine/types';
import { localThreads } from './local-threads';
import { storedPreference, storePreference, type Preference } from './preference';
import { Saver, type Unsaved } from './saver';

export interface Chat {
  engine: ChatEngine;
  state: EngineState;
  unsaved: Unsaved;
  retrySave: (id: string) => void;
  preference: Preference;
  prefer: (preference: Preference) => void;
  /** Why the engine in use is not the preferred one. */
  fallback: Hop | null;
}

export function useChat(account: string, instance: Instance): Chat {
  const queries = useQueryClient();
  const { id } = instance;
  const [choice, setChoice] = useState(() => fresh(id));
  // Another instance starts with its own choice.
  const current = choice.id === id ? choice : fresh(id);
  const { preference, hop } = current;
  const kind: EngineKind = hop !== null ? 'gateway' : preference === 'auto' ? 'socket' : preference;

  const { gateway_url, gateway_token } = instance;
  const { engine, saver } = useMemo(() => {
    const where = { id, gateway_url, gateway_token };
    const made = new Saver(id);
    const settle = () => {
      // The log has the request a moment after the reply.
      setTimeout(() => {
        for (const queryKey of [INSTANCES, SUMMARY, PROFILE]) void queries.invalidateQueries({ queryKey });
      }, 2500);
    };
    return {
      saver: made,
      engine: makeEngine(kind, account, where, {
        onPrompt: (message, conversation) => made.save(message, conversation),
        onFinal: (message, conversation) => {
          made.save(message, conversation);
          settle();
        },
        onUnusable: (broken) => setChoice({ id, preference, hop: broken }),
      }),
    };
  }, [kind, account, id, gateway_url, gateway_token, preference, queries]);

  useEffect(() => {
    engine.start();
    return () => engine.destroy();
  }, [engine]);

  const state = useSyncExternalStore(engine.subscribe, engine.state);
  const { connection } = state;
  const isLive = engine.kind === 'socket' && connection.state === 'live';
  useEffect(() => {
    // What waited over the platform is not seen here, and is not to go out behind anybody's back some other day.
    if (isLive) localThreads(account, id).release();
  }, [isLive, account, id]);
  const gone = connection.state === 'readonly' && connection.hop === 'not-yours';
  useEffect(() => {
    if (gone) void queries.invalidateQueries({ queryKey: INSTANCES });
  }, [gone, queries]);

  return {
    engine,
    state,
    unsaved: useSyncExternalStore(saver.subscribe, saver.state),
    retrySave: saver.retry,
    preference,
    prefer: (next) => {
      storePreference(id, next);
      setChoice({ id, preference: next, hop: null });
    },
    fallback: hop,
  };
}

interface Choice {
  id: string;
  preference: Preference;
  /** Why the preferred engine is not used. */
  hop: Hop | null;
}

function fresh(id: string): Choice {
  return { id, preference: storedPreference(id), hop: null };
}
