// Makes the engine of a kind for an instance; nothing is connected before it is started.
import type { Instance } from '../../instances-query';
import { localThreads } from '../local-threads';
import { diagnose, dialler } from './dial';
import { EmbeddedWindow } from './embed';
import { gatewayApi } from './gateway-api';
import { GatewayChat } from './gateway-chat';
import { GatewaySocket } from './gateway-socket';
import { requestCosts } from './request-costs';
import type { ChatEngine, EngineEvents, EngineKind } from './types';
import { unfinishedOf } from './unfinished';

type Where = Pick<Instance, 'id' | 'gateway_url' | 'gateway_token'>;

export function makeEngine(
  kind: EngineKind,
  account: string,
  instance: Where,
  events: EngineEvents,
): ChatEngine {
  const unfinished = unfinishedOf(account, instance.id);
  switch (kind) {
    case 'gateway':
      return new GatewayChat(gatewayApi(instance.id), localThreads(account, instance.id), events, unfinished);
    case 'embed':
      return new EmbeddedWindow(instance.id, events);
    case 'socket':
      return new GatewaySocket(
        { dial: dialler(instance), open: (url) => new WebSocket(url), diagnose },
        events,
        requestCosts(instance.id),
        unfinished,
      );
  }
}
